#ifndef ELASTOR_CORE_CUDA_LAUNCH_H_
#define ELASTOR_CORE_CUDA_LAUNCH_H_

// For kernel sources (.cu) only: they are compiled by nvcc for the device, and by the host's
// compiler for the emulation, from the same text. In addition to CUDA's own words (__global__,
// threadIdx, __shared__ arrays of fixed size, __syncthreads, shuffles, atomics, ...) they use
//
//   Launch(stream, grid, threads, kernel, arguments...)   enqueues kernel<<<grid, threads>>>
//   LaunchWithSharedMemory(stream, grid, threads, bytes, kernel, arguments...)
//   SharedMemory<T>()    in a kernel: the `bytes` of the launch, 16-byte aligned
//   MostSharedBytes()    the `bytes` that a launch can have on this process's device
//   OverLanes(value, combine)   in a kernel, by all lanes of a warp at once: their values combined,
//                        to all of them; those of lanes 16, 8, 4, 2 and 1 apart in turn
//   RoundToTf32, MultiplyTf32, MultiplyBFloat16   in a kernel: tensor cores (fragments.h)
//
// Arguments are converted to the kernel's parameter types and passed by value.

// launch_device.h or emulation/launch_emulated.h, as the build has it (BUILD.bazel).
#include "core/cuda/launch_language.h"

namespace elastor::cuda {

inline constexpr int kWarp = 32;

// Returns the number of blocks of `per_block` that cover `total`, at least 1 and at most 2^31 - 1.
inline unsigned Blocks(int64_t total, int64_t per_block) {
  const int64_t blocks = (total + per_block - 1) / per_block;
  return static_cast<unsigned>(blocks < 1 ? 1 : blocks);
}

}  // namespace elastor::cuda

#endif  // ELASTOR_CORE_CUDA_LAUNCH_H_
