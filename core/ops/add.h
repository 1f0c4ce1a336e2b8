#ifndef ELASTOR_CORE_OPS_ADD_H_
#define ELASTOR_CORE_OPS_ADD_H_

#include "core/ops/op.h"

namespace elastor {

// y = a + b, values of as many features; y has a's shape and may lie where a or b lay. Both
// gradients are dy itself.
struct AddOp : OpBase {
  static constexpr const char* kName = "add";
  Shape OutputShape(std::span<const Shape> inputs) const {
    CHECK_EQ(inputs.size(), 2u);
    CHECK_EQ(inputs[0].features(), inputs[1].features());
    return inputs[0];
  }
  InputGradient gradient(int) const { return {.rule = InputGradient::Rule::kPassedOn}; }
};
ELASTOR_DECLARE_KERNELS(AddOp)

}  // namespace elastor

#endif  // ELASTOR_CORE_OPS_ADD_H_
