#ifndef ELASTOR_CORE_KERNELS_ROW_MATRICES_H_
#define ELASTOR_CORE_KERNELS_ROW_MATRICES_H_

#include <cstdint>

#include "core/tensor/panels.h"

namespace elastor {

// A matrix in the features of every row of a view: element (i, j) is feature i * row_step + j *
// column_step.
template <typename T>
struct RowMatrix {
  Panels<T> view;
  int64_t row_step = 0;
  int64_t column_step = 1;

  RowMatrix Transposed() const { return {view, column_step, row_step}; }
};

// c = a b (+ addend) for every row by itself; a [m, k], b [k, n], c and addend [m, n]. An element
// is an FMA chain from +0 over ascending k. addend: like c, or empty; it may be c.
template <typename T>
void MultiplyRowMatrices(int64_t m, int64_t n, int64_t k, const RowMatrix<const T>& a,
                         const RowMatrix<const T>& b, Panels<const T> addend,
                         const RowMatrix<T>& c);

}  // namespace elastor

#endif  // ELASTOR_CORE_KERNELS_ROW_MATRICES_H_
