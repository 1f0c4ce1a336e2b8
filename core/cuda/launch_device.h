#ifndef ELASTOR_CORE_CUDA_LAUNCH_DEVICE_H_
#define ELASTOR_CORE_CUDA_LAUNCH_DEVICE_H_

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <tuple>
#include <utility>

#include "core/cuda/runtime.h"

namespace elastor::cuda {

namespace internal {
// Ends the process when the launch failed; raises the kernel's limit of shared memory first.
void LaunchKernel(Stream& stream, dim3 grid, dim3 threads, size_t shared_bytes, const void* kernel,
                  void** arguments);
}  // namespace internal

template <typename... Parameters, typename... Arguments>
void LaunchWithSharedMemory(Stream& stream, dim3 grid, dim3 threads, size_t bytes,
                            void (*kernel)(Parameters...), Arguments&&... arguments) {
  std::tuple<Parameters...> values(static_cast<Parameters>(std::forward<Arguments>(arguments))...);
  std::apply(
      [&](auto&... value) {
        // One more, so that a kernel without parameters has an array too.
        void* pointers[] = {const_cast<void*>(static_cast<const void*>(&value))..., nullptr};
        internal::LaunchKernel(stream, grid, threads, bytes, reinterpret_cast<const void*>(kernel),
                               pointers);
      },
      values);
}

template <typename... Parameters, typename... Arguments>
void Launch(Stream& stream, dim3 grid, dim3 threads, void (*kernel)(Parameters...),
            Arguments&&... arguments) {
  LaunchWithSharedMemory(stream, grid, threads, 0, kernel, std::forward<Arguments>(arguments)...);
}

#ifdef __CUDACC__
template <typename T>
__device__ T* SharedMemory() {
  extern __shared__ __align__(16) unsigned char elastor_dynamic_shared_memory[];
  return reinterpret_cast<T*>(elastor_dynamic_shared_memory);
}
#endif

}  // namespace elastor::cuda

#endif  // ELASTOR_CORE_CUDA_LAUNCH_DEVICE_H_
