#ifndef ELASTOR_CORE_OPS_GATED_FEED_FORWARD_H_
#define ELASTOR_CORE_OPS_GATED_FEED_FORWARD_H_

#include "core/kernels/matmul.h"
#include "core/ops/op.h"

namespace elastor {

// Gated per-token feed-forward networks (P-FFN): token t of x [T, D] has weights of its own. They
// are coarse ops, because on the CPU one FMA chain spans several products: [W3 Wr] is one product
// over the concatenated inputs, whose order of additions is the definition of the result. H is
// `hidden`.

// RankElastor, eq. 4, without biases:
//   Z_t = W3 (act(W1 M_t) * (W2 M_t)) + Wr M_t
// Parameters: lift [T, 2, H, D] (the up-projections W1 and W2), down [T, D, H] (the down-projection
// W3), residual [T, D, D] (Wr).
struct GatedFeedForwardOp : OpBase {
  static constexpr const char* kName = "gated feed-forward";
  int64_t tokens = 1;
  int64_t width = 0;
  int64_t hidden = 0;
  Activation activation = Activation::kGelu;

  int64_t multiply_adds() const { return tokens * (3 * hidden * width + width * width); }
  bool row_gradients() const { return true; }
  Shape OutputShape(std::span<const Shape> inputs) const {
    CHECK_EQ(inputs[0].features(), tokens * width);
    return {tokens, width};
  }
};
ELASTOR_DECLARE_KERNELS(GatedFeedForwardOp)

// The public code's form, with biases:
//   u = A M_t + a + act(B M_t + b);  Z_t = W (u * (C M_t + c)) + w + R M_t + s
// Parameters: lift [T, 3, H, D] (the up-projections A, B, C), lift_bias [T, 3, H]; down [T, D, H]
// (the down-projection W), down_bias [T, D]; residual [T, D, D], residual_bias [T, D].
struct GatedSumFeedForwardOp : OpBase {
  static constexpr const char* kName = "gated-sum feed-forward";
  int64_t tokens = 1;
  int64_t width = 0;
  int64_t hidden = 0;
  Activation activation = Activation::kGelu;

  int64_t multiply_adds() const { return tokens * (4 * hidden * width + width * width); }
  bool row_gradients() const { return true; }
  Shape OutputShape(std::span<const Shape> inputs) const {
    CHECK_EQ(inputs[0].features(), tokens * width);
    return {tokens, width};
  }
};
ELASTOR_DECLARE_KERNELS(GatedSumFeedForwardOp)

}  // namespace elastor

#endif  // ELASTOR_CORE_OPS_GATED_FEED_FORWARD_H_
