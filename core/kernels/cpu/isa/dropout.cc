#include "core/kernels/cpu/isa/kernels.h"
#include "core/kernels/cpu/philox_vec.h"
#include "core/kernels/cpu/vec.h"

namespace elastor {
inline namespace ELASTOR_ISA {
namespace {

// y = x * scale in the rows whose word is >= lowest, else 0.
ELASTOR_INLINE void Apply(WordVec words, uint32_t lowest, float scale, const float* x, float* y) {
  const IntVec kept = words >= lowest;
  Save(y, FromBits(kept & Bits(Load(x) * Broadcast(scale))));
}
ELASTOR_INLINE void Apply(WordVec words, uint32_t lowest, double scale, const double* x,
                          double* y) {
  for (int lane = 0; lane < kWordLanes; ++lane) {
    y[lane] = words[lane] >= lowest ? x[lane] * scale : 0.0;
  }
}

template <typename T>
void DropRows(const DropoutKey& key, KeptWords kept, Panels<const T> x, Panels<T> y) {
  const T scale = static_cast<T>(kept.scale);
  for (int64_t row = 0; row < x.panels() * kPanelRows; row += kWordLanes) {
    for (int64_t begin = 0; begin < x.features; begin += 4) {
      const PhiloxVec words = WordsOfRows(key, row, static_cast<uint32_t>(begin / 4));
      const int64_t count = Least(4, x.features - begin);
      for (int64_t i = 0; i < count; ++i) {
        Apply(words.word[i], kept.lowest, scale, &x.At(row, begin + i), &y.At(row, begin + i));
      }
    }
  }
}

}  // namespace

template <typename T>
constinit DropoutKernel<T>* const IsaKernels<T>::dropout = DropRows<T>;
ELASTOR_INSTANTIATE_KERNELS(dropout)

}  // namespace ELASTOR_ISA
}  // namespace elastor
