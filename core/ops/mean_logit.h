#ifndef ELASTOR_CORE_OPS_MEAN_LOGIT_H_
#define ELASTOR_CORE_OPS_MEAN_LOGIT_H_

#include "core/ops/op.h"

namespace elastor {

// The mean of the logits x = [z_1 .. z_S], and behind it they themselves: y of S + 1 features. The
// logits are added in ascending order, times 1/S. dx_s = dy_{s+1} + dy_1 (1/S).
struct MeanLogitOp : OpBase {
  static constexpr const char* kName = "mean logit";
  Shape OutputShape(std::span<const Shape> inputs) const {
    CHECK_GT(inputs[0].features(), 0);
    return {1, inputs[0].features() + 1};
  }
};
ELASTOR_DECLARE_KERNELS(MeanLogitOp)

}  // namespace elastor

#endif  // ELASTOR_CORE_OPS_MEAN_LOGIT_H_
