#ifndef ELASTOR_CORE_KERNELS_CPU_PHILOX_VEC_H_
#define ELASTOR_CORE_KERNELS_CPU_PHILOX_VEC_H_

#include <cstdint>

#include "core/kernels/cpu/vec.h"
#include "core/kernels/dropout.h"

namespace elastor {
inline namespace ELASTOR_ISA {

// Philox4x32-10 on kWordLanes counters at a time: each lane gives the result of Philox() of
// core/base/random.h.
inline constexpr int kWordLanes = sizeof(WordVec) / sizeof(uint32_t);
struct PhiloxVec {
  WordVec word[4];
};

ELASTOR_INLINE PhiloxVec PhiloxOf(uint64_t key, PhiloxVec counter) {
  uint32_t key0 = static_cast<uint32_t>(key);
  uint32_t key1 = static_cast<uint32_t>(key >> 32);
  PhiloxVec c = counter;
  for (int round = 0; round < 10; ++round) {
    WordVec high0;
    WordVec high1;
    const WordVec low0 = MultiplyWords(c.word[0], 0xD2511F53u, high0);
    const WordVec low1 = MultiplyWords(c.word[2], 0xCD9E8D57u, high1);
    c = {{high1 ^ c.word[1] ^ key0, low1, high0 ^ c.word[3] ^ key1, low0}};
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return c;
}

// Returns dropout's words of features 4 * quad .. 4 * quad + 3 for kWordLanes rows
// (core/kernels/dropout.h).
ELASTOR_INLINE PhiloxVec WordsOfRows(const DropoutKey& key, int64_t row, uint32_t quad) {
  const auto first = static_cast<uint64_t>(key.first_row + row);
  const WordVec low = WordNumbers() + static_cast<uint32_t>(first);
  // All bits where the low word of a row's number has gone beyond its end: -1.
  const auto carry = reinterpret_cast<WordVec>(low < static_cast<uint32_t>(first));
  const WordVec high = static_cast<uint32_t>(first >> 32) - carry;
  return PhiloxOf(key.key, {{low, high, WordVec{} + key.step, WordVec{} + quad}});
}

}  // namespace ELASTOR_ISA
}  // namespace elastor

#endif  // ELASTOR_CORE_KERNELS_CPU_PHILOX_VEC_H_
