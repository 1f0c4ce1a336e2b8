#ifndef ELASTOR_CORE_KERNELS_MATRIX_PRODUCT_H_
#define ELASTOR_CORE_KERNELS_MATRIX_PRODUCT_H_

#include <cstdint>
#include <type_traits>

#include "core/tensor/panels.h"

namespace elastor {

// Matrices in the features of every row of a view: element (i, j) of matrix p is feature
// p * step + i * row_step + j * column_step. With step 0 one matrix stands for all of them; with
// panel_stride 0 one panel stands for all rows.
template <typename T>
struct RowMatrices {
  Panels<T> view;
  int64_t step = 0;
  int64_t row_step = 0;
  int64_t column_step = 1;

  RowMatrices Transposed() const { return {view, step, column_step, row_step}; }
  operator RowMatrices<const T>() const requires(!std::is_const_v<T>) {
    return {view, step, row_step, column_step};
  }
};

// count products [rows, terms] [terms, columns].
struct ProductShape {
  int64_t count = 1;
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t terms = 0;
};

// c_p = a_p b_p for p in [0, count) in every row by itself; with c.step 0 the sum over p. An
// element is one FMA chain from +0 over ascending terms; a sum over p is one chain over ascending
// (p, term). +0 is added to the result.
template <typename T>
void MatrixProducts(const ProductShape& shape, const RowMatrices<const T>& a,
                    const RowMatrices<const T>& b, const RowMatrices<T>& c);

}  // namespace elastor

#endif  // ELASTOR_CORE_KERNELS_MATRIX_PRODUCT_H_
