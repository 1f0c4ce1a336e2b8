#ifndef ELASTOR_CORE_KERNELS_DROPOUT_H_
#define ELASTOR_CORE_KERNELS_DROPOUT_H_

#include <cmath>
#include <cstdint>

namespace elastor {

// The rule of inverted dropout: element (row, f) is kept iff word f % 4 of Philox4x32-10 is >= rate
// * 2^32, with key = `key` and counter = {low word and high word of (first_row + row), step, f /
// 4}.
struct DropoutKey {
  uint64_t key = 0;  // MakeRandomKey(seed, purpose, layer)
  uint32_t step = 0;
  int64_t first_row = 0;  // epoch index of row 0 of the view
  double rate = 0;        // in [0, 1)
};

// Elements whose words are at least `lowest` are kept and multiplied by `scale` = 1 / (1 - rate);
// if the rate is so near 1 that no word is that high, the scale is 0.
struct KeptWords {
  uint32_t lowest = 0;
  double scale = 1;
};
inline KeptWords KeptWordsOf(double rate) {
  const double lowest = std::ceil(rate * 0x1p32);
  if (lowest > 0x1p32 - 1) return {0, 0};
  return {static_cast<uint32_t>(lowest), 1 / (1 - rate)};
}

}  // namespace elastor

#endif  // ELASTOR_CORE_KERNELS_DROPOUT_H_
