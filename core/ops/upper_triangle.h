#ifndef ELASTOR_CORE_OPS_UPPER_TRIANGLE_H_
#define ELASTOR_CORE_OPS_UPPER_TRIANGLE_H_

#include "core/ops/op.h"

namespace elastor {

// The elements above the diagonal of a matrix x [size, size], row after row: y of
// size * (size - 1) / 2 features. dx is dy there and 0 elsewhere.
struct UpperTriangleOp : OpBase {
  static constexpr const char* kName = "upper triangle";
  int64_t size = 0;

  Shape OutputShape(std::span<const Shape> inputs) const {
    CHECK_GT(size, 1);
    CHECK_EQ(inputs[0].features(), size * size);
    return {1, size * (size - 1) / 2};
  }
};
ELASTOR_DECLARE_KERNELS(UpperTriangleOp)

}  // namespace elastor

#endif  // ELASTOR_CORE_OPS_UPPER_TRIANGLE_H_
