#ifndef ELASTOR_CORE_KERNELS_CUDA_DEVICE_LENGTHS_H_
#define ELASTOR_CORE_KERNELS_CUDA_DEVICE_LENGTHS_H_

#include <cstdint>

#include "core/base/build_config.h"

namespace elastor::cuda {

// The number of positions that every row has of one sequence, or of `count` sequences one after
// another together, in device memory.
struct DeviceLengths {
  const int32_t* lengths = nullptr;  // the length of local row r is lengths[r * sequences]
  int64_t sequences = 1;
  const int32_t* local_row = nullptr;  // by device row; -1: padding, which has none
  int64_t count = 1;

  ELASTOR_HOST_DEVICE int64_t Of(int64_t row) const {
    const int64_t local = local_row[row];
    int64_t sum = 0;
    for (int64_t s = 0; local >= 0 && s < count; ++s) sum += lengths[local * sequences + s];
    return sum;
  }
};

}  // namespace elastor::cuda

#endif  // ELASTOR_CORE_KERNELS_CUDA_DEVICE_LENGTHS_H_
