// The door of matrix_product.h: what is checked.
#include "core/kernels/matrix_product.h"

#include "core/base/instantiate.h"
#include "core/base/log.h"
#include "core/kernels/cpu/kernel_table.h"

namespace elastor {
namespace {

template <typename T>
void CheckMatrices(const RowMatrices<T>& matrices, int64_t count, int64_t rows, int64_t columns) {
  const int64_t last = (count - 1) * matrices.step + (rows - 1) * matrices.row_step +
                       (columns - 1) * matrices.column_step;
  CHECK_LT(last, matrices.view.features);
}

}  // namespace

template <typename T>
void MatrixProducts(const ProductShape& shape, const RowMatrices<const T>& a,
                    const RowMatrices<const T>& b, const RowMatrices<T>& c) {
  CHECK(a.view.rows == c.view.rows && b.view.rows == c.view.rows);
  CheckMatrices(a, shape.count, shape.rows, shape.terms);
  CheckMatrices(b, shape.count, shape.terms, shape.columns);
  CheckMatrices(c, shape.count, shape.rows, shape.columns);
  Kernels<T>().matrix_products(shape, a, b, c);
}

ELASTOR_INSTANTIATE(MatrixProducts, float, double)

}  // namespace elastor
