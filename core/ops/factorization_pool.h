#ifndef ELASTOR_CORE_OPS_FACTORIZATION_POOL_H_
#define ELASTOR_CORE_OPS_FACTORIZATION_POOL_H_

#include "core/ops/op.h"

namespace elastor {

// The products of every two tokens of x [T, D], summed (Rendle 2010): y [D],
//   y = sum over i < j of x_i * x_j = ((sum x)^2 - sum x^2) / 2,   dx_i = dy * (sum over j of x_j -
//   x_i)
// The forward pass adds x_t * (x_1 + .. + x_{t-1}) for ascending t, which cancels nothing.
struct FactorizationPoolOp : OpBase {
  static constexpr const char* kName = "factorization pool";
  int64_t tokens = 1;
  int64_t width = 0;

  Shape OutputShape(std::span<const Shape> inputs) const {
    CHECK_EQ(inputs[0].features(), tokens * width);
    return {1, width};
  }
};
ELASTOR_DECLARE_KERNELS(FactorizationPoolOp)

}  // namespace elastor

#endif  // ELASTOR_CORE_OPS_FACTORIZATION_POOL_H_
