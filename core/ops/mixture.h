#ifndef ELASTOR_CORE_OPS_MIXTURE_H_
#define ELASTOR_CORE_OPS_MIXTURE_H_

#include "core/kernels/mixture.h"
#include "core/ops/op.h"

namespace elastor {

// Softmax-weighted sums of tokens, y_t = sum over i of softmax(g_t)_i x_i for t = 1..T: the gates
// of a mixture of experts (Ma et al. 2018, eq. 6 and 7).
//
// Inputs: x of E * D features; the gates' logits g, of T * E. No parameters.
// Formulas and order of additions: core/kernels/mixture.h.
struct MixtureOp : OpBase {
  static constexpr const char* kName = "mixture";
  MixtureShape mixture;

  int64_t multiply_adds() const { return mixture.mixtures * mixture.experts * mixture.width; }
  Shape OutputShape(std::span<const Shape> inputs) const {
    CHECK_EQ(inputs.size(), 2u);
    CHECK_EQ(inputs[0].features(), mixture.experts * mixture.width);
    CHECK_EQ(inputs[1].features(), mixture.mixtures * mixture.experts);
    return {mixture.mixtures, mixture.width};
  }
};
ELASTOR_DECLARE_KERNELS(MixtureOp)

}  // namespace elastor

#endif  // ELASTOR_CORE_OPS_MIXTURE_H_
