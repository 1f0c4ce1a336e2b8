#ifndef ELASTOR_CORE_KERNELS_CPU_SQUARE_H_
#define ELASTOR_CORE_KERNELS_CPU_SQUARE_H_

#include <cstdint>

#include "core/kernels/cpu/vec.h"

namespace elastor {
inline namespace ELASTOR_ISA {

// The side of a square of elements that is transposed in registers.
inline constexpr int64_t kSquare = 8;
struct Square {
  Float8 rows[kSquare];
  ELASTOR_INLINE Float8& operator[](int64_t i) { return rows[i]; }
  ELASTOR_INLINE const Float8& operator[](int64_t i) const { return rows[i]; }
};

ELASTOR_INLINE Square Transposed(const Square& in) {
  Square pairs;  // 2 x 2 blocks transposed, then blocks of 2, then of 4
  for (int i = 0; i < kSquare; i += 2) {
    pairs[i] = _mm256_unpacklo_ps(in[i], in[i + 1]);
    pairs[i + 1] = _mm256_unpackhi_ps(in[i], in[i + 1]);
  }
  Square quads;
  for (int i = 0; i < kSquare; i += 4) {
    quads[i] = _mm256_shuffle_ps(pairs[i], pairs[i + 2], 0x44);
    quads[i + 1] = _mm256_shuffle_ps(pairs[i], pairs[i + 2], 0xee);
    quads[i + 2] = _mm256_shuffle_ps(pairs[i + 1], pairs[i + 3], 0x44);
    quads[i + 3] = _mm256_shuffle_ps(pairs[i + 1], pairs[i + 3], 0xee);
  }
  Square out;
  for (int i = 0; i < 4; ++i) {
    out[i] = _mm256_permute2f128_ps(quads[i], quads[i + 4], 0x20);
    out[i + 4] = _mm256_permute2f128_ps(quads[i], quads[i + 4], 0x31);
  }
  return out;
}

}  // namespace ELASTOR_ISA
}  // namespace elastor

#endif  // ELASTOR_CORE_KERNELS_CPU_SQUARE_H_
