#ifndef ELASTOR_CORE_OPS_DROPOUT_H_
#define ELASTOR_CORE_OPS_DROPOUT_H_

#include "core/ops/op.h"

namespace elastor {

// Inverted dropout while training, y = x otherwise; y may lie where x lay. The mask is a function
// of (seed, layer, step, row of the epoch, feature), so Backward makes it again
// (core/kernels/elementwise.h).
struct DropoutOp : OpBase {
  static constexpr const char* kName = "dropout";
  double rate = 0;     // in (0, 1)
  uint32_t layer = 0;  // numbers the model's dropout layers in order of declaration

  Shape OutputShape(std::span<const Shape> inputs) const { return inputs[0]; }
};
ELASTOR_DECLARE_KERNELS(DropoutOp)

}  // namespace elastor

#endif  // ELASTOR_CORE_OPS_DROPOUT_H_
