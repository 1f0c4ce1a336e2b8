#ifndef ELASTOR_CORE_OPS_PATCH_INPUT_H_
#define ELASTOR_CORE_OPS_PATCH_INPUT_H_

#include "core/kernels/image_shape.h"
#include "core/ops/op.h"

namespace elastor {

// The input of models of images: E [patches, patch^2], the row's numeric values, its pixels, patch
// after patch. A missing one (NaN) is 0. No parameters, no gradient.
struct PatchInputOp : OpBase {
  static constexpr const char* kName = "patch input";
  ImageShape image;

  bool row_gradients() const { return true; }
  Shape OutputShape(std::span<const Shape> inputs) const {
    CHECK(inputs.empty());
    CHECK(image.height % image.patch == 0 && image.width % image.patch == 0);
    const int64_t features = image.patch * image.patch;
    return {image.pixels() / features, features};
  }
};
ELASTOR_DECLARE_KERNELS(PatchInputOp)

}  // namespace elastor

#endif  // ELASTOR_CORE_OPS_PATCH_INPUT_H_
