#ifndef ELASTOR_CORE_KERNELS_IMAGE_SHAPE_H_
#define ELASTOR_CORE_KERNELS_IMAGE_SHAPE_H_

#include <cstdint>

#include "core/base/build_config.h"

namespace elastor {

// Pixels [height, width] that are cut into patches of `patch` x `patch`; patch divides both sides.
struct ImageShape {
  int64_t height = 0;  // 0: there is no image
  int64_t width = 0;
  int64_t patch = 1;

  ELASTOR_HOST_DEVICE int64_t pixels() const { return height * width; }
  // Returns the index, row by row in the image, of the pixel that has index `feature` when pixels
  // are counted patch after patch, each patch row by row.
  ELASTOR_HOST_DEVICE int64_t PixelAt(int64_t feature) const {
    const int64_t in_patch = feature % (patch * patch);
    const int64_t number = feature / (patch * patch);
    const int64_t across = width / patch;
    return (number / across * patch + in_patch / patch) * width + number % across * patch +
           in_patch % patch;
  }
};

}  // namespace elastor

#endif  // ELASTOR_CORE_KERNELS_IMAGE_SHAPE_H_
