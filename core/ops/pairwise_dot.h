#ifndef ELASTOR_CORE_OPS_PAIRWISE_DOT_H_
#define ELASTOR_CORE_OPS_PAIRWISE_DOT_H_

#include "core/ops/op.h"

namespace elastor {

// The inner products of every token of a [first, width] with every token of b [second, width]:
//   y [first, second],  y_ij = sum over d of a_i[d] b_j[d]
//   da_i[d] = sum over j of dy_ij b_j[d],  db_j[d] = sum over i of dy_ij a_i[d]
// Every sum is an FMA chain from +0 over the ascending index.
struct PairwiseDotOp : OpBase {
  static constexpr const char* kName = "pairwise dot";
  int64_t first = 0;
  int64_t second = 0;
  int64_t width = 0;

  int64_t multiply_adds() const { return first * second * width; }
  Shape OutputShape(std::span<const Shape> inputs) const {
    CHECK_EQ(inputs.size(), 2u);
    CHECK_EQ(inputs[0].features(), first * width);
    CHECK_EQ(inputs[1].features(), second * width);
    return {first, second};
  }
};
ELASTOR_DECLARE_KERNELS(PairwiseDotOp)

}  // namespace elastor

#endif  // ELASTOR_CORE_OPS_PAIRWISE_DOT_H_
