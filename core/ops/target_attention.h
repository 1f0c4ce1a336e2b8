#ifndef ELASTOR_CORE_OPS_TARGET_ATTENTION_H_
#define ELASTOR_CORE_OPS_TARGET_ATTENTION_H_

#include <vector>

#include "core/kernels/matmul.h"
#include "core/ops/op.h"

namespace elastor {

// Target attention over a behaviour sequence (Zhou et al. 2018, "Deep Interest Network", eq. 3).
// The input x = [e_1 .. e_n, h_1 .. h_L], vectors of k features, ends with the sequence's L
// positions, of which a row has the first m, its length (Pass::lengths). With the target a =
// e_target:
//
//   s_t = MLP([a, h_t, a - h_t, a * h_t])          for t <= m; one MLP for all positions
//   w_t = s_t, or with `softmax` exp(s_t - max s) / sum_u exp(s_u - max s)
//   y = [e_1 .. e_n] with sum_t w_t h_t in the place of e_field; 0 there where m = 0
//
// The gradient of x is 0 at e_field and at the positions from m on.
//
// Parameters: W_i [hidden_i, in_i] and b_i [hidden_i] for every hidden layer, in_0 = 4k; then W
// [1, in] and b [1] of the score. With `softmax` there is no b, since the result would not depend
// on it.
// Order of additions, t ascending always: y and the softmax's sum are chains over the positions.
// The gradient of the target adds, position by position, the gradients of a, a - h_t and a * h_t in
// this order. The CPU computes panels of 16 rows up to the longest of them; a leaf's parameter
// gradients are the sums over its panels in order, each panel in the order of matmul.h over
// (position, row).
struct TargetAttentionOp : OpBase {
  static constexpr const char* kName = "target attention";
  int64_t fields = 0;     // n: number of the output's fields
  int64_t positions = 0;  // L
  int64_t width = 0;      // k
  int64_t target = 0;     // index of the target field
  int64_t field = 0;      // index of the field whose place the result takes
  int64_t sequence = 0;   // its lengths are Pass::lengths[row][sequence] ...
  int64_t sequences = 1;  // ... of so many
  std::vector<int64_t> hidden;
  Activation activation = Activation::kRelu;
  bool softmax = false;

  int64_t layers() const { return static_cast<int64_t>(hidden.size()) + 1; }
  int64_t layer_in(int64_t i) const { return i == 0 ? 4 * width : hidden[i - 1]; }
  int64_t layer_out(int64_t i) const { return i + 1 == layers() ? 1 : hidden[i]; }

  bool has_bias(int64_t i) const { return i + 1 < layers() || !softmax; }

  // Returns the multiply-adds of a row with L positions.
  int64_t multiply_adds() const {
    int64_t position = width;
    for (int64_t i = 0; i < layers(); ++i) position += layer_in(i) * layer_out(i);
    return positions * position;
  }
  Shape OutputShape(std::span<const Shape> inputs) const {
    CHECK_EQ(inputs[0].features(), (fields + positions) * width);
    CHECK(target >= 0 && target < fields && field >= 0 && field < fields && target != field);
    return {fields, width};
  }
};
ELASTOR_DECLARE_KERNELS(TargetAttentionOp)

}  // namespace elastor

#endif  // ELASTOR_CORE_OPS_TARGET_ATTENTION_H_
