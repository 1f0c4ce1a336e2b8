#ifndef ELASTOR_CORE_OPS_SUM_POOL_H_
#define ELASTOR_CORE_OPS_SUM_POOL_H_

#include "core/ops/op.h"

namespace elastor {

// The sum of the features of every token of x [tokens, width]: y [tokens], features added in
// ascending order.
struct SumPoolOp : OpBase {
  static constexpr const char* kName = "sum pool";
  int64_t tokens = 1;
  int64_t width = 0;

  Shape OutputShape(std::span<const Shape> inputs) const {
    CHECK_EQ(inputs[0].features(), tokens * width);
    return {1, tokens};
  }
};
ELASTOR_DECLARE_KERNELS(SumPoolOp)

}  // namespace elastor

#endif  // ELASTOR_CORE_OPS_SUM_POOL_H_
