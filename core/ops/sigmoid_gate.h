#ifndef ELASTOR_CORE_OPS_SIGMOID_GATE_H_
#define ELASTOR_CORE_OPS_SIGMOID_GATE_H_

#include "core/ops/op.h"

namespace elastor {

// y = a * sigmoid(b) element by element, values of as many features; y has a's shape. da = dy *
// sigmoid(b) and db = (dy * a) * sigmoid'(b). With b = LN(a) it is the public code's
// SwishLayerNorm.
struct SigmoidGateOp : OpBase {
  static constexpr const char* kName = "sigmoid gate";
  Shape OutputShape(std::span<const Shape> inputs) const {
    CHECK_EQ(inputs.size(), 2u);
    CHECK_EQ(inputs[0].features(), inputs[1].features());
    return inputs[0];
  }
};
ELASTOR_DECLARE_KERNELS(SigmoidGateOp)

}  // namespace elastor

#endif  // ELASTOR_CORE_OPS_SIGMOID_GATE_H_
