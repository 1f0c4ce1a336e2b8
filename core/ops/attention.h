#ifndef ELASTOR_CORE_OPS_ATTENTION_H_
#define ELASTOR_CORE_OPS_ATTENTION_H_

#include "core/kernels/attention.h"
#include "core/ops/op.h"

namespace elastor {

// Multi-head attention between the tokens of a row: formulas, lengths and order of additions in
// core/kernels/attention.h.
//
// Inputs: q of Tq * h * d features, k of Tk * h * d, v of Tk * h * dv. Output: [Tq, h dv]. Rows
// have all keys, or the keys of encoded sequences' positions and `others` more, such as a target
// (AppendTargetOp): the sum over s of Pass::lengths[row][s], s one of `read_sequences` from
// `sequence` on, + others, but at most Tk. Parameter: the position bias [differences()] where
// `position_bias`. Its gradient is every row's gradient, summed over the rows as a linear map's
// bias is (BiasGradient).
struct AttentionOp : OpBase {
  static constexpr const char* kName = "attention";
  AttentionShape attention;
  bool position_bias = false;
  int64_t sequence = -1;  // first sequence whose lengths apply, among `sequences`; -1: all keys
  int64_t sequences = 1;
  int64_t read_sequences = 1;
  int64_t others = 1;
  double dropout = 0;          // dropout rate of the weights while training, in [0, 1)
  uint32_t dropout_layer = 0;  // numbers the model's ops that drop weights

  int64_t multiply_adds() const {
    const AttentionShape& a = attention;
    return a.heads * a.queries * a.keys * (a.width + a.value_width);
  }
  Shape OutputShape(std::span<const Shape> inputs) const {
    const AttentionShape& a = attention;
    CHECK_EQ(inputs.size(), 3u);
    CHECK_EQ(inputs[0].features(), a.queries * a.heads * a.width);
    CHECK_EQ(inputs[1].features(), a.keys * a.heads * a.width);
    CHECK_EQ(inputs[2].features(), a.keys * a.heads * a.value_width);
    if (a.causal) CHECK_LE(a.queries, a.keys);
    return {a.queries, a.heads * a.value_width};
  }
};
ELASTOR_DECLARE_KERNELS(AttentionOp)

}  // namespace elastor

#endif  // ELASTOR_CORE_OPS_ATTENTION_H_
