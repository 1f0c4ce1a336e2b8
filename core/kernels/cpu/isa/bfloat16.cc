#include "core/kernels/cpu/bfloat16.h"

#include "core/kernels/cpu/isa/kernels.h"
#include "core/kernels/cpu/isa/microkernel.h"

namespace elastor {
inline namespace ELASTOR_ISA {
namespace {

// Both rounded to bfloat16, 16 numbers of each: the first's, then the second's.
ELASTOR_INLINE __m512i Rounded(Float16 first, Float16 second) {
  return reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(second, first));
}

// Word i = first[i] and second[i].
ELASTOR_INLINE Float16 Pair(Float16 first, Float16 second) {
  const __m512i order =
      _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8,  //
                       23, 7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
  return _mm512_castsi512_ps(_mm512_permutexvar_epi16(order, Rounded(first, second)));
}

void PairLines(const float* matrix, int64_t lines, int64_t width, float* words) {
  for (int64_t line = 0; line < lines; line += 2) {
    const float* first = matrix + line * width;
    for (int64_t i = 0; i < width; i += 16) {
      const auto some = static_cast<__mmask16>((1u << Least(width - i, 16)) - 1);
      const auto other = line + 1 < lines ? some : static_cast<__mmask16>(0);
      _mm512_mask_storeu_ps(words + i, some,
                            Pair(_mm512_maskz_loadu_ps(some, first + i),
                                 _mm512_maskz_loadu_ps(other, first + width + i)));
    }
    words += width;
  }
}

void PairFeatures(const Panels<const float>* segments, int64_t count, Panels<float> words) {
  for (int64_t panel = 0; panel < words.panels(); ++panel) {
    float* out = words.Panel(panel);
    const float* waiting = nullptr;  // the first of a pair that two segments share
    for (int64_t s = 0; s < count; ++s) {
      const int64_t stride = segments[s].feature_stride;
      const float* line = segments[s].Panel(panel);
      int64_t left = segments[s].features;
      if (waiting != nullptr && left > 0) {
        Save(out, Pair(Load(waiting), Load(line)));
        waiting = nullptr;
        out += kPanelRows;
        line += stride;
        --left;
      }
      for (; left > 1; left -= 2) {
        Save(out, Pair(Load(line), Load(line + stride)));
        out += kPanelRows;
        line += 2 * stride;
      }
      if (left > 0) waiting = line;
    }
    if (waiting != nullptr) Save(out, Pair(Load(waiting), Float16{}));
  }
}

// Rows lie side by side, so that rounding makes pairs of them as they are: a panel of x is half of
// one of words.
void PairRows(Panels<const float> x, Panels<float> words) {
  for (int64_t panel = 0; panel < words.panels(); ++panel) {
    const float* first = x.Panel(2 * panel);
    const bool whole = 2 * panel + 1 < x.panels();
    const float* second = whole ? x.Panel(2 * panel + 1) : first;
    const auto half = static_cast<__mmask16>(whole ? 0xffff : 0);
    float* out = words.Panel(panel);
    for (int64_t f = 0; f < x.features; ++f) {
      _mm512_storeu_si512(out, Rounded(Load(first), _mm512_maskz_loadu_ps(half, second)));
      first += x.feature_stride;
      second += x.feature_stride;
      out += kPanelRows;
    }
  }
}

}  // namespace

constinit const BFloat16Kernels kKernels = {
    .tile_rows = kTileRows,
    .matmul = IsaKernels<float>::matmul,
    .gated_up_projection = IsaKernels<float>::gated_up_projection,
    .gradient = IsaKernels<float>::gradient,
    .pair_lines = PairLines,
    .pair_features = PairFeatures,
    .pair_rows = PairRows,
};

}  // namespace ELASTOR_ISA
}  // namespace elastor
