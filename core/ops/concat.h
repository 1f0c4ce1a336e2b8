#ifndef ELASTOR_CORE_OPS_CONCAT_H_
#define ELASTOR_CORE_OPS_CONCAT_H_

#include "core/ops/op.h"

namespace elastor {

// y = [a | b], a's features and then b's, as one token. The gradients are the parts of dy.
struct ConcatOp : OpBase {
  static constexpr const char* kName = "concat";
  int64_t first_features = 0;  // number of a's features

  Shape OutputShape(std::span<const Shape> inputs) const {
    CHECK_EQ(inputs.size(), 2u);
    CHECK_EQ(inputs[0].features(), first_features);
    return {1, first_features + inputs[1].features()};
  }
  InputGradient gradient(int input) const {
    return {.rule = InputGradient::Rule::kPassedOn,
            .first_feature = input == 0 ? 0 : first_features};
  }
};
ELASTOR_DECLARE_KERNELS(ConcatOp)

}  // namespace elastor

#endif  // ELASTOR_CORE_OPS_CONCAT_H_
