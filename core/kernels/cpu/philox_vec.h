#ifndef ELASTOR_CORE_KERNELS_CPU_PHILOX_VEC_H_
#define ELASTOR_CORE_KERNELS_CPU_PHILOX_VEC_H_

#include <cstdint>

#include "core/kernels/cpu/vec.h"
#include "core/kernels/dropout.h"

namespace elastor {
inline namespace ELASTOR_ISA {

// Philox4x32-10 on eight counters at a time: each lane gives the result of Philox() of
// core/base/random.h.
struct PhiloxVec {
  Uint8 word[4];
};

ELASTOR_INLINE PhiloxVec Philox8(uint64_t key, PhiloxVec counter) {
  // The 64-bit products of all eight lanes, as low and high words.
  const auto multiply = [](Uint8 a, uint32_t factor, Uint8& high) {
    const __m256i f = _mm256_set1_epi64x(factor);
    const __m256i lanes = reinterpret_cast<__m256i>(a);
    const __m256i even = _mm256_mul_epu32(lanes, f);
    const __m256i odd = _mm256_mul_epu32(_mm256_srli_epi64(lanes, 32), f);
    high = reinterpret_cast<Uint8>(_mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xaa));
    return reinterpret_cast<Uint8>(_mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xaa));
  };
  uint32_t key0 = static_cast<uint32_t>(key);
  uint32_t key1 = static_cast<uint32_t>(key >> 32);
  PhiloxVec c = counter;
  for (int round = 0; round < 10; ++round) {
    Uint8 high0;
    Uint8 high1;
    const Uint8 low0 = multiply(c.word[0], 0xD2511F53u, high0);
    const Uint8 low1 = multiply(c.word[2], 0xCD9E8D57u, high1);
    c = {{high1 ^ c.word[1] ^ key0, low1, high0 ^ c.word[3] ^ key1, low0}};
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return c;
}

// Returns dropout's words of features 4 * quad .. 4 * quad + 3 for eight rows
// (core/kernels/dropout.h).
ELASTOR_INLINE PhiloxVec WordsOfRows(const DropoutKey& key, int64_t row, uint32_t quad) {
  const auto first = static_cast<uint64_t>(key.first_row + row);
  const Uint8 low = Uint8{0, 1, 2, 3, 4, 5, 6, 7} + static_cast<uint32_t>(first);
  // All bits where the low word of a row's number has gone beyond its end: -1.
  const auto carry = reinterpret_cast<Uint8>(low < static_cast<uint32_t>(first));
  const Uint8 high = static_cast<uint32_t>(first >> 32) - carry;
  return Philox8(key.key, {{low, high, Uint8{} + key.step, Uint8{} + quad}});
}

}  // namespace ELASTOR_ISA
}  // namespace elastor

#endif  // ELASTOR_CORE_KERNELS_CPU_PHILOX_VEC_H_
