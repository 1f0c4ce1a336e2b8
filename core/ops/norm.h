#ifndef ELASTOR_CORE_OPS_NORM_H_
#define ELASTOR_CORE_OPS_NORM_H_

#include "core/kernels/norm.h"
#include "core/ops/op.h"

namespace elastor {

// Layer norm or RMS norm (core/kernels/norm.h) over each run of `norm.width` features of x, or of
// x + residual where a rewrite has given it a second input (core/graph/rewrites.h).
// Parameters: gain [width], and bias [width] for layer norm; shared by the runs.
struct NormOp : OpBase {
  static constexpr const char* kName = "norm";
  NormShape norm;

  bool row_gradients() const { return true; }
  Shape OutputShape(std::span<const Shape> inputs) const {
    const int64_t features = inputs[0].features();
    CHECK_EQ(features % norm.width, 0);
    if (inputs.size() > 1) CHECK_EQ(inputs[1].features(), features);
    return {features / norm.width, norm.width};
  }
  InputGradient gradient(int input) const {
    if (input == 0) return {};
    return {.rule = InputGradient::Rule::kLikeFirst};
  }
};
ELASTOR_DECLARE_KERNELS(NormOp)

}  // namespace elastor

#endif  // ELASTOR_CORE_OPS_NORM_H_
