#ifndef ELASTOR_CORE_OPS_POSITION_H_
#define ELASTOR_CORE_OPS_POSITION_H_

#include "core/ops/op.h"

namespace elastor {

// Learned positions: y is input_scale * x, x [tokens, width], with scale * p added to its last
// `positions` tokens, the same in every row. Without an input, x is 0 and y a learned constant.
// Parameter: p [positions, width]. dx = input_scale * dy; dp = scale * the sum over the rows as a
// linear map's bias (BiasGradient).
struct PositionOp : OpBase {
  static constexpr const char* kName = "position";
  int64_t tokens = 1;
  int64_t width = 0;
  int64_t positions = 1;
  double scale = 1;
  double input_scale = 1;

  int64_t first_feature() const { return (tokens - positions) * width; }
  int64_t parameter_features() const { return positions * width; }
  Shape OutputShape(std::span<const Shape> inputs) const {
    CHECK_LE(positions, tokens);
    if (inputs.empty()) {
      CHECK_EQ(positions, tokens);
    } else {
      CHECK_EQ(inputs[0].features(), tokens * width);
    }
    return {tokens, width};
  }
  InputGradient gradient(int) const {
    using Rule = InputGradient::Rule;
    return {.rule = input_scale == 1 ? Rule::kPassedOn : Rule::kComputed};
  }
};
ELASTOR_DECLARE_KERNELS(PositionOp)

}  // namespace elastor

#endif  // ELASTOR_CORE_OPS_POSITION_H_
