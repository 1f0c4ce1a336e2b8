#ifndef ELASTOR_CORE_OPS_TARGET_TOKEN_H_
#define ELASTOR_CORE_OPS_TARGET_TOKEN_H_

#include "core/ops/op.h"

namespace elastor {

// A behaviour sequence and its target as the tokens of one encoder. E = [e_1 .. e_n, h_1 .. h_L],
// vectors of k features, ends with the sequence's L positions, of which a row has the first m, its
// length (Pass::lengths).
struct TargetTokenOp : OpBase {
  int64_t fields = 0;     // n
  int64_t positions = 0;  // L
  int64_t width = 0;      // k
  int64_t sequence = 0;   // its lengths are Pass::lengths[row][sequence] ...
  int64_t sequences = 1;  // ... of so many

  Shape tokens() const { return {positions + 1, width}; }
};

// x = [h_1 .. h_m, a, 0 .. 0], L + 1 tokens, of E: the target a = e_target stands behind the last
// position that the row has. The gradients of h and a are their tokens' gradients; the gradient of
// every other part of E is 0.
struct AppendTargetOp : TargetTokenOp {
  static constexpr const char* kName = "append target";
  int64_t target = 0;  // index of the target field

  Shape OutputShape(std::span<const Shape> inputs) const {
    CHECK_EQ(inputs[0].features(), (fields + positions) * width);
    CHECK(target >= 0 && target < fields);
    return tokens();
  }
};
ELASTOR_DECLARE_KERNELS(AppendTargetOp)

// y [T + L + o, k], a history: the tokens of z [T, k] and then those of x [L + o, k] that a row
// has, all moved to the end, with zeros in front. Of the L positions of x a row has the first m, or
// where `last` the last m, which then stand at the end already, before o tokens of every row.
// Inputs: x, and z if `before` = T > 0. The gradients of x and z are their tokens' gradients; those
// of other positions are 0.
struct AppendHistoryOp : OpBase {
  static constexpr const char* kName = "append history";
  int64_t before = 0;     // T
  int64_t positions = 0;  // L
  int64_t width = 0;      // k
  int64_t sequence = 0;   // its lengths are Pass::lengths[row][sequence] ...
  int64_t sequences = 1;  // ... of so many
  bool last = false;
  int64_t behind = 0;  // o

  int64_t tokens() const { return before + positions + behind; }
  Shape OutputShape(std::span<const Shape> inputs) const {
    CHECK_EQ(inputs.size(), before > 0 ? 2u : 1u);
    CHECK_EQ(inputs[0].features(), (positions + behind) * width);
    CHECK(last || behind == 0);
    if (before > 0) CHECK_EQ(inputs[1].features(), before * width);
    return {tokens(), width};
  }
};
ELASTOR_DECLARE_KERNELS(AppendHistoryOp)

// Inputs: E and x [L + 1, k]. Output: [e_1 .. e_n] with the target's token, x_{m+1}, in the place
// of e_field. The token's gradient is the gradient at that place; the gradients of e_field, of h
// and of the other tokens are 0.
struct ReadTargetOp : TargetTokenOp {
  static constexpr const char* kName = "read target";
  int64_t field = 0;  // index of the field that the token replaces

  Shape OutputShape(std::span<const Shape> inputs) const {
    CHECK_EQ(inputs.size(), 2u);
    CHECK_EQ(inputs[0].features(), (fields + positions) * width);
    CHECK_EQ(inputs[1].features(), tokens().features());
    CHECK(field >= 0 && field < fields);
    return {fields, width};
  }
};
ELASTOR_DECLARE_KERNELS(ReadTargetOp)

}  // namespace elastor

#endif  // ELASTOR_CORE_OPS_TARGET_TOKEN_H_
