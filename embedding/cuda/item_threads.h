#ifndef ELASTOR_EMBEDDING_CUDA_ITEM_THREADS_H_
#define ELASTOR_EMBEDDING_CUDA_ITEM_THREADS_H_

// For kernel sources (.cu) only: grids in which every thread takes one item.

#include <cstdint>

#include "core/cuda/launch.h"

namespace elastor::cuda {

inline constexpr int kThreads = 256;  // of a block
// Blocks for lists whose length only the device knows: they loop.
inline constexpr unsigned kListBlocks = 1024;

inline __device__ int64_t ThreadIndex() {
  return static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
}

}  // namespace elastor::cuda

#endif  // ELASTOR_EMBEDDING_CUDA_ITEM_THREADS_H_
