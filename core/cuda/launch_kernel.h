#ifndef ELASTOR_CORE_CUDA_LAUNCH_KERNEL_H_
#define ELASTOR_CORE_CUDA_LAUNCH_KERNEL_H_

#include <cuda_runtime.h>

#include <cstddef>

#include "core/cuda/runtime.h"

namespace elastor::cuda {

int MostSharedBytes();

namespace internal {

// Ends the process when the launch failed; raises the kernel's limit of shared memory first.
void LaunchKernel(Stream& stream, dim3 grid, dim3 threads, size_t shared_bytes, const void* kernel,
                  void** arguments);

}  // namespace internal
}  // namespace elastor::cuda

#endif  // ELASTOR_CORE_CUDA_LAUNCH_KERNEL_H_
