#ifndef ELASTOR_CORE_KERNELS_CPU_SQUARE_H_
#define ELASTOR_CORE_KERNELS_CPU_SQUARE_H_

#include <cstdint>

#include "core/kernels/cpu/vec.h"

namespace elastor {
inline namespace ELASTOR_ISA {

// kSquare rows of kSquare elements, which are transposed in registers.
struct Square {
  SquareRow rows[kSquare];
  ELASTOR_INLINE SquareRow& operator[](int64_t i) { return rows[i]; }
  ELASTOR_INLINE const SquareRow& operator[](int64_t i) const { return rows[i]; }
};

ELASTOR_INLINE Square Transposed(const Square& in) {
  Square out;
  Transpose(in.rows, out.rows);
  return out;
}

}  // namespace ELASTOR_ISA
}  // namespace elastor

#endif  // ELASTOR_CORE_KERNELS_CPU_SQUARE_H_
