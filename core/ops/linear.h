#ifndef ELASTOR_CORE_OPS_LINEAR_H_
#define ELASTOR_CORE_OPS_LINEAR_H_

#include "core/kernels/matmul.h"
#include "core/ops/op.h"

namespace elastor {

// y_t = act(W_t x_t + b_t) (+ residual_t) for x = [x_1 .. x_T], x_t of `in` features.
//
// Inputs: x of T * in features; optionally a residual of the output's features. (A rewrite adds the
// residual, core/graph/rewrites.h.) With T = 1 it is the plain linear layer.
// Parameters: W, then b if `bias`: [T, out, in] and [T, out] with own weights, else [out, in] and
// [out].
// Order of additions: core/kernels/matmul.h. Where tokens share W, their gradients are summed in
// ascending order of tokens before leaves are added.
struct LinearOp : OpBase {
  static constexpr const char* kName = "linear";
  enum class Weights {
    kOwn,     // each token has its own
    kShared,  // one W for all tokens
    // One W for T interleaved problems: x_t is the features t, t + T, t + 2T, ... and so is y_t:
    // W (x) I_T (Theorem 3.1).
    kInterleaved,
  };
  int64_t tokens = 1;
  int64_t in = 0;
  int64_t out = 0;
  Weights weights = Weights::kOwn;
  bool bias = true;
  Activation activation = Activation::kIdentity;

  int64_t maps() const { return weights == Weights::kOwn ? tokens : 1; }
  int64_t multiply_adds() const { return tokens * in * out; }
  bool row_gradients() const { return true; }
  Shape OutputShape(std::span<const Shape> inputs) const {
    CHECK_EQ(inputs[0].features(), tokens * in);
    if (inputs.size() > 1) {
      CHECK_EQ(inputs[1].features(), tokens * out);
      return inputs[1];
    }
    return weights == Weights::kInterleaved ? Shape{1, tokens * out} : Shape{tokens, out};
  }
  InputGradient gradient(int input) const {
    if (input == 0) return {};
    return {.rule = InputGradient::Rule::kPassedOn};
  }
};
ELASTOR_DECLARE_KERNELS(LinearOp)

}  // namespace elastor

#endif  // ELASTOR_CORE_OPS_LINEAR_H_
