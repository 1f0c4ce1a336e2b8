#ifndef ELASTOR_CORE_OPS_RELU_H_
#define ELASTOR_CORE_OPS_RELU_H_

#include "core/ops/op.h"

namespace elastor {

// y = max(x, 0). Where a linear map comes right before, its own activation is cheaper
// (LinearOp::activation); this op is for a ReLU behind a norm.
struct ReluOp : OpBase {
  static constexpr const char* kName = "relu";
  Shape OutputShape(std::span<const Shape> inputs) const { return inputs[0]; }
};
ELASTOR_DECLARE_KERNELS(ReluOp)

}  // namespace elastor

#endif  // ELASTOR_CORE_OPS_RELU_H_
