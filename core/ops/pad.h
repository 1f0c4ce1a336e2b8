#ifndef ELASTOR_CORE_OPS_PAD_H_
#define ELASTOR_CORE_OPS_PAD_H_

#include "core/ops/op.h"

namespace elastor {

// Cuts the features of x into `tokens` groups of `width`, the last filled up with zeros: x is the
// first features of y. The gradient of x is the first features of dy.
struct PadOp : OpBase {
  static constexpr const char* kName = "pad";
  int64_t tokens = 1;
  int64_t width = 0;

  Shape OutputShape(std::span<const Shape> inputs) const {
    CHECK_LE(inputs[0].features(), tokens * width);
    return {tokens, width};
  }
  InputGradient gradient(int) const { return {.rule = InputGradient::Rule::kPassedOn}; }
};
ELASTOR_DECLARE_KERNELS(PadOp)

}  // namespace elastor

#endif  // ELASTOR_CORE_OPS_PAD_H_
