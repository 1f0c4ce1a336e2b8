#ifndef ELASTOR_CORE_KERNELS_CUDA_COLUMN_SUMS_H_
#define ELASTOR_CORE_KERNELS_CUDA_COLUMN_SUMS_H_

#include <cstdint>

#include "core/cuda/runtime.h"
#include "core/kernels/cuda/elementwise.h"

namespace elastor::cuda {

// Sums over the rows of leaves in two steps: the sums of chunks of kSumRows rows, which many
// threads make side by side, then the chunks' sums in order.

// Returns the number of chunks of a leaf.
inline int64_t SumChunks(const LeafShape& shape) {
  return (shape.leaf_rows + kSumRows - 1) / kSumRows;
}

// sums[t * map_stride + l * leaf_stride + f] = sum over the leaf's chunks c, in order from +0, of
// partial[(l * chunks + c) * stride + t * features + f].
struct PartialSums {
  const float* partial = nullptr;
  int64_t stride = 0;
  int64_t leaves = 0;
  int64_t chunks = 0;
  int64_t tokens = 1;
  int64_t features = 0;
};
void AddPartialSums(Stream& stream, const PartialSums& partial, float* sums, int64_t map_stride,
                    int64_t leaf_stride);

}  // namespace elastor::cuda

#endif  // ELASTOR_CORE_KERNELS_CUDA_COLUMN_SUMS_H_
