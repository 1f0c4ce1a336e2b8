#ifndef ELASTOR_CORE_OPS_MULTIPLY_H_
#define ELASTOR_CORE_OPS_MULTIPLY_H_

#include "core/ops/op.h"

namespace elastor {

// y = a * b element by element, values of as many features; y has a's shape. da = dy * b and
// db = dy * a.
struct MultiplyOp : OpBase {
  static constexpr const char* kName = "multiply";
  Shape OutputShape(std::span<const Shape> inputs) const {
    CHECK_EQ(inputs.size(), 2u);
    CHECK_EQ(inputs[0].features(), inputs[1].features());
    return inputs[0];
  }
};
ELASTOR_DECLARE_KERNELS(MultiplyOp)

}  // namespace elastor

#endif  // ELASTOR_CORE_OPS_MULTIPLY_H_
