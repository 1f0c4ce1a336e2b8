#ifndef ELASTOR_CORE_OPS_SLICE_H_
#define ELASTOR_CORE_OPS_SLICE_H_

#include "core/ops/op.h"

namespace elastor {

// Takes from x [tokens, width] the tokens from `first_token` on and their columns from
// `first_column` on: y [slice.tokens, slice.width]. dx is dy there and 0 elsewhere; where x has
// other uses, dy is added to their sum in place. A slice that is one run of features is not copied
// on the CPU.
struct SliceOp : OpBase {
  static constexpr const char* kName = "slice";
  int64_t tokens = 1;
  int64_t width = 0;
  int64_t first_token = 0;
  int64_t first_column = 0;
  Shape slice;

  // Returns whether y is one run of x's features, and the feature of x at which the slice begins.
  bool one_run() const { return slice.tokens == 1 || slice.width == width; }
  int64_t first_feature() const { return first_token * width + first_column; }
  Shape OutputShape(std::span<const Shape> inputs) const {
    CHECK_EQ(inputs[0].features(), tokens * width);
    CHECK(first_token >= 0 && first_column >= 0);
    CHECK_LE(first_token + slice.tokens, tokens);
    CHECK_LE(first_column + slice.width, width);
    return slice;
  }
};
ELASTOR_DECLARE_KERNELS(SliceOp)

}  // namespace elastor

#endif  // ELASTOR_CORE_OPS_SLICE_H_
