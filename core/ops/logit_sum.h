#ifndef ELASTOR_CORE_OPS_LOGIT_SUM_H_
#define ELASTOR_CORE_OPS_LOGIT_SUM_H_

#include "core/ops/op.h"

namespace elastor {

// The logit of a model without a last linear map: y = the sum of x's features + b, features added
// in ascending order and b last. Parameter: b [1]. dx = dy; db = the sum over the rows as a linear
// map's bias (BiasGradient).
struct LogitSumOp : OpBase {
  static constexpr const char* kName = "logit sum";

  bool row_gradients() const { return true; }
  Shape OutputShape(std::span<const Shape> inputs) const {
    CHECK_GT(inputs[0].features(), 0);
    return {1, 1};
  }
};
ELASTOR_DECLARE_KERNELS(LogitSumOp)

}  // namespace elastor

#endif  // ELASTOR_CORE_OPS_LOGIT_SUM_H_
