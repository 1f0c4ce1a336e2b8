#include <algorithm>

#include "core/base/instantiate.h"
#include "core/base/log.h"
#include "core/kernels/cpu/philox_vec.h"
#include "core/kernels/elementwise.h"

namespace elastor {
namespace {

// y = x * scale in the rows whose word is >= threshold, else 0.
void Apply(WordVec words, uint32_t threshold, float scale, const float* x, float* y) {
  const IntVec kept = words >= threshold;
  Save(y, FromBits(kept & Bits(Load(x) * Broadcast(scale))));
}
void Apply(WordVec words, uint32_t threshold, double scale, const double* x, double* y) {
  for (int lane = 0; lane < kWordLanes; ++lane) {
    y[lane] = words[lane] >= threshold ? x[lane] * scale : 0.0;
  }
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
  for (int64_t row = 0; row < x.panels() * kPanelRows; row += kWordLanes) {
    for (int64_t begin = 0; begin < x.features; begin += 4) {
      const PhiloxVec words = WordsOfRows(key, row, static_cast<uint32_t>(begin / 4));
      for (int64_t f = begin; f < std::min(begin + 4, x.features); ++f) {
        Apply(words.word[f - begin], kept.lowest, scale, &x.At(row, f), &y.At(row, f));
      }
    }
  }
}

ELASTOR_INSTANTIATE(Dropout, float, double)

}  // namespace elastor
