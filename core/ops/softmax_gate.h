#ifndef ELASTOR_CORE_OPS_SOFTMAX_GATE_H_
#define ELASTOR_CORE_OPS_SOFTMAX_GATE_H_

#include "core/ops/op.h"

namespace elastor {

// Every token of x [tokens, width] times its share p = softmax(s) by the scores s [tokens]:
//   y_t = p_t x_t,  dx_t = p_t dy_t,  ds_t = p_t (g_t - sum over u of p_u g_u)  with g_t = dy_t .
//   x_t
// p_t = exp(s_t - max s) / sum. The sum adds tokens in ascending order. The sum of p_u g_u and the
// sums over features are FMA chains from +0 in ascending order.
struct SoftmaxGateOp : OpBase {
  static constexpr const char* kName = "softmax gate";
  int64_t tokens = 1;
  int64_t width = 0;

  Shape OutputShape(std::span<const Shape> inputs) const {
    CHECK_EQ(inputs.size(), 2u);
    CHECK_EQ(inputs[0].features(), tokens * width);
    CHECK_EQ(inputs[1].features(), tokens);
    return {tokens, width};
  }
};
ELASTOR_DECLARE_KERNELS(SoftmaxGateOp)

}  // namespace elastor

#endif  // ELASTOR_CORE_OPS_SOFTMAX_GATE_H_
