#include "core/kernels/cpu/isa/kernels.h"
#include "core/kernels/cpu/isa/lane_matrix.h"

namespace elastor {
inline namespace ELASTOR_ISA {
namespace {

// Matrix p of a vector of rows.
template <typename T>
ELASTOR_INLINE LaneMatrix<T> MatrixOf(const RowMatrices<T>& matrices, int64_t vector, int64_t p) {
  const int64_t stride = matrices.view.feature_stride;
  return {Line(matrices.view, vector, p * matrices.step), matrices.row_step * stride,
          matrices.column_step * stride};
}

template <typename T>
void RunMatrixProducts(const ProductShape& shape, const RowMatrices<const T>& a,
                       const RowMatrices<const T>& b, const RowMatrices<T>& c) {
  const int64_t vectors = c.view.panels() * kVectorsPerPanel<T>;
  for (int64_t vector = 0; vector < vectors; ++vector) {
    for (int64_t p = 0; p < shape.count; ++p) {
      Product<T>(shape.rows, shape.columns, shape.terms, MatrixOf(a, vector, p),
                 MatrixOf(b, vector, p), MatrixOf(c, vector, p),
                 c.step == 0 && p > 0 ? Store::kAdd : Store::kOverwrite);
    }
  }
}

}  // namespace

template <typename T>
constinit decltype(MatrixProducts<T>)* const IsaKernels<T>::matrix_products = RunMatrixProducts<T>;
ELASTOR_INSTANTIATE_KERNELS(matrix_products)

}  // namespace ELASTOR_ISA
}  // namespace elastor
