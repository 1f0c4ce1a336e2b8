#ifndef ELASTOR_CORE_OPS_WEIGHTED_POOL_H_
#define ELASTOR_CORE_OPS_WEIGHTED_POOL_H_

#include "core/ops/op.h"

namespace elastor {

// Sums over tokens in which every feature has weights of its own, for each of G groups of T tokens
// by the same weights:
//   y_g[k] = sum over t of U[k][t] x_{gT + t}[k],   x [G T, K], y [G, K]
//   dx_{gT + t}[k] = U[k][t] dy_g[k],   dU[k][t] = sum over g of dy_g[k] x_{gT + t}[k]
// Behind a linear map that all tokens share, V x_t, it is the bilinear form u_k' X v_k of every
// group (MultiProbe in core/models/layers.h).
//
// Parameters: U [K, T]. Order of additions: ascending t as one product of core/kernels/matmul.h; dU
// is computed as its WeightGradient, and a leaf adds the groups' sums in ascending order.
struct WeightedPoolOp : OpBase {
  static constexpr const char* kName = "weighted pool";
  int64_t groups = 1;  // G
  int64_t tokens = 1;  // T
  int64_t width = 0;   // K

  int64_t multiply_adds() const { return groups * tokens * width; }
  Shape OutputShape(std::span<const Shape> inputs) const {
    CHECK_EQ(inputs[0].features(), groups * tokens * width);
    return {groups, width};
  }
};
ELASTOR_DECLARE_KERNELS(WeightedPoolOp)

}  // namespace elastor

#endif  // ELASTOR_CORE_OPS_WEIGHTED_POOL_H_
