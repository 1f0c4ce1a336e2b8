#ifndef ELASTOR_CORE_OPS_MEAN_POOL_H_
#define ELASTOR_CORE_OPS_MEAN_POOL_H_

#include "core/ops/op.h"

namespace elastor {

// The mean over the tokens of x [T, D]: y [D], tokens added in ascending order, times 1/T.
struct MeanPoolOp : OpBase {
  static constexpr const char* kName = "mean pool";
  int64_t tokens = 1;
  int64_t width = 0;

  Shape OutputShape(std::span<const Shape> inputs) const {
    CHECK_EQ(inputs[0].features(), tokens * width);
    return {1, width};
  }
};
ELASTOR_DECLARE_KERNELS(MeanPoolOp)

}  // namespace elastor

#endif  // ELASTOR_CORE_OPS_MEAN_POOL_H_
