#ifndef ELASTOR_CORE_OPS_MATRIX_PRODUCT_H_
#define ELASTOR_CORE_OPS_MATRIX_PRODUCT_H_

#include <vector>

#include "core/kernels/matmul.h"
#include "core/kernels/matrix_product.h"
#include "core/ops/op.h"

namespace elastor {

// Y_p = act(A_p B_p) for p in [0, count): a row has `count` pairs of matrices A_p [m, k] and B_p
// [k, n], stored row-major; a factor that is `transposed` is stored as its transpose. One factor
// may instead be a parameter, one matrix for all p and all rows, stored likewise.
//
// Inputs: the factors that are not a parameter, A first. Output: [count, m n]. Parameter: the
// shared factor, if there is one. Order of additions: core/kernels/matrix_product.h; the gradient
// of the parameter is a row's, one FMA chain over ascending (p, term), summed over the rows as a
// linear map's bias (BiasGradient).
struct MatrixProductOp : OpBase {
  static constexpr const char* kName = "matrix product";
  enum class Shared { kNone, kFirst, kSecond };
  ProductShape product;
  bool first_transposed = false;
  bool second_transposed = false;
  Shared shared = Shared::kNone;
  Activation activation = Activation::kIdentity;

  int64_t first_features() const { return product.rows * product.terms; }
  int64_t second_features() const { return product.terms * product.columns; }
  int64_t output_features() const { return product.rows * product.columns; }
  // Returns the shape of the parameter, the shared factor.
  std::vector<int64_t> shared_shape() const {
    const bool first = shared == Shared::kFirst;
    const int64_t rows = first ? product.rows : product.terms;
    const int64_t columns = first ? product.terms : product.columns;
    const bool transposed = first ? first_transposed : second_transposed;
    return transposed ? std::vector{columns, rows} : std::vector{rows, columns};
  }
  int64_t multiply_adds() const { return product.count * output_features() * product.terms; }
  Shape OutputShape(std::span<const Shape> inputs) const {
    CHECK_EQ(inputs.size(), shared == Shared::kNone ? 2u : 1u);
    if (shared != Shared::kFirst) {
      CHECK_EQ(inputs.front().features(), product.count * first_features());
    }
    if (shared != Shared::kSecond) {
      CHECK_EQ(inputs.back().features(), product.count * second_features());
    }
    return {product.count, output_features()};
  }
};
ELASTOR_DECLARE_KERNELS(MatrixProductOp)

}  // namespace elastor

#endif  // ELASTOR_CORE_OPS_MATRIX_PRODUCT_H_
