#ifndef ELASTOR_CORE_OPS_JOINT_LOGIT_H_
#define ELASTOR_CORE_OPS_JOINT_LOGIT_H_

#include "core/ops/op.h"

namespace elastor {

// The logits of an event, as a click, and of it together with a second one, as a conversion (ESMM,
// Ma et al. 2018), of x = [a, b], where b is the logit of the second event given the first:
//   y = [a, logit(p v)], p = sigmoid(a), v = sigmoid(b);  logit(p v) = -log(exp(l) + exp(-b)) with
//   l = log(exp(-a) + exp(-a - b)) = softplus(-b) - a
//   dx_1 = dy_1 + s dy_2, dx_2 = (s sigmoid(-b) + 1 - s) dy_2 with s = sigmoid(l + b)
struct JointLogitOp : OpBase {
  static constexpr const char* kName = "joint logit";
  Shape OutputShape(std::span<const Shape> inputs) const {
    CHECK_EQ(inputs[0].features(), 2);
    return {1, 2};
  }
};
ELASTOR_DECLARE_KERNELS(JointLogitOp)

}  // namespace elastor

#endif  // ELASTOR_CORE_OPS_JOINT_LOGIT_H_
