#ifndef ELASTOR_CORE_OPS_BLOCK_TRANSPOSE_H_
#define ELASTOR_CORE_OPS_BLOCK_TRANSPOSE_H_

#include "core/ops/op.h"

namespace elastor {

// Block transpose of RankMixer (RankElastor, eq. 2 and Theorem 2.1) without parameters: x, T tokens
// of width D, is T x T blocks of D / T features, and block (i, j) goes to (j, i). Its own inverse.
// With T = D it is the transpose of a matrix. `count`: the number of such x, one after another.
struct BlockTransposeOp : OpBase {
  static constexpr const char* kName = "block transpose";
  int64_t count = 1;
  int64_t tokens = 1;
  int64_t width = 0;  // a multiple of tokens

  Shape OutputShape(std::span<const Shape> inputs) const {
    CHECK_EQ(inputs[0].features(), count * tokens * width);
    CHECK_EQ(width % tokens, 0);
    return {count * tokens, width};
  }
};
ELASTOR_DECLARE_KERNELS(BlockTransposeOp)

}  // namespace elastor

#endif  // ELASTOR_CORE_OPS_BLOCK_TRANSPOSE_H_
