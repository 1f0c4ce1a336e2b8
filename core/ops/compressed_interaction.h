#ifndef ELASTOR_CORE_OPS_COMPRESSED_INTERACTION_H_
#define ELASTOR_CORE_OPS_COMPRESSED_INTERACTION_H_

#include "core/ops/op.h"

namespace elastor {

// A layer of the compressed interaction network (CIN) of xDeepFM (Lian et al. 2018, eq. 6), with a
// bias as FuxiCTR has it and no activation: for every column d < width
//   y_h[d] = sum over i, j of W[h][i][j] a_i[d] b_j[d] + bias[h]
// Inputs: a [p, width] and b [m, width]; or one input x = a = b, the first layer, where a product
// x_i x_j is computed once for both (i, j) and (j, i).
// Parameters: W [maps, p, m] and bias [maps]. Output: [maps, width].
//
// Order of additions on the CPU. The pairs (i, j) ascend by i, then by j; of one input those with
// i <= j, and the factor of i < j is W[h][i][j] + W[h][j][i], rounded. y is the product of
// core/kernels/matmul.h over the products of the pairs, each rounded. The gradient of W is
// WeightGradient over the rows of a leaf for every column, added over ascending columns; so is that
// of the bias. The gradients of a and b are FMA chains from +0 over ascending pairs.
struct CompressedInteractionOp : OpBase {
  static constexpr const char* kName = "compressed interaction";
  int64_t maps = 0;
  int64_t first = 0;   // p
  int64_t second = 0;  // m; 0: there is one input
  int64_t width = 0;

  bool one_input() const { return second == 0; }
  int64_t b_tokens() const { return one_input() ? first : second; }
  int64_t pairs() const { return one_input() ? first * (first + 1) / 2 : first * second; }
  int64_t multiply_adds() const { return maps * pairs() * width; }
  Shape OutputShape(std::span<const Shape> inputs) const {
    CHECK_EQ(inputs.size(), one_input() ? 1u : 2u);
    CHECK_EQ(inputs[0].features(), first * width);
    if (!one_input()) CHECK_EQ(inputs[1].features(), second * width);
    return {maps, width};
  }
};
ELASTOR_DECLARE_KERNELS(CompressedInteractionOp)

}  // namespace elastor

#endif  // ELASTOR_CORE_OPS_COMPRESSED_INTERACTION_H_
