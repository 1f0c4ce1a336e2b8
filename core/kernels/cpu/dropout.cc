#include <algorithm>

#include "core/base/instantiate.h"
#include "core/base/log.h"
#include "core/kernels/cpu/philox_vec.h"
#include "core/kernels/elementwise.h"

namespace elastor {
namespace {

// Bit `lane` is set where the word of that row is >= threshold.
uint32_t KeptRows(Uint8 words, uint32_t threshold) {
  const __m256i w = reinterpret_cast<__m256i>(words);
  const __m256i t = _mm256_set1_epi32(static_cast<int>(threshold));
  const __m256i kept = _mm256_cmpeq_epi32(_mm256_max_epu32(w, t), w);
  return static_cast<uint32_t>(_mm256_movemask_ps(_mm256_castsi256_ps(kept)));
}

void Apply(uint32_t kept, float scale, const float* x, float* y) {
  const __m256i bits = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
  const __m256i mask = _mm256_and_si256(_mm256_set1_epi32(static_cast<int>(kept)), bits);
  const __m256 selected = _mm256_castsi256_ps(_mm256_cmpeq_epi32(mask, bits));
  Save(y, Float8(_mm256_and_ps(selected, Load(x) * Broadcast(scale))));
}
void Apply(uint32_t kept, double scale, const double* x, double* y) {
  for (int lane = 0; lane < 8; ++lane) y[lane] = (kept >> lane & 1) != 0 ? x[lane] * scale : 0.0;
}

}  // namespace

template <typename T>
void Dropout(const DropoutKey& key, Panels<const T> x, Panels<T> y) {
  CHECK(key.rate >= 0 && key.rate < 1);
  CHECK_EQ(x.features, y.features);
  CHECK_EQ(x.rows, y.rows);
  const KeptWords kept = KeptWordsOf(key.rate);
  if (kept.scale == 0) return Fill(T(0), y);
  const T scale = static_cast<T>(kept.scale);
  for (int64_t row = 0; row < x.panels() * kPanelRows; row += 8) {
    for (int64_t begin = 0; begin < x.features; begin += 4) {
      const PhiloxVec words = WordsOfRows(key, row, static_cast<uint32_t>(begin / 4));
      for (int64_t f = begin; f < std::min(begin + 4, x.features); ++f) {
        Apply(KeptRows(words.word[f - begin], kept.lowest), scale, &x.At(row, f), &y.At(row, f));
      }
    }
  }
}

ELASTOR_INSTANTIATE(Dropout, float, double)

}  // namespace elastor
