#ifndef ELASTOR_CORE_CUDA_LAUNCH_DEVICE_H_
#define ELASTOR_CORE_CUDA_LAUNCH_DEVICE_H_

#include <cuda_runtime.h>

#include <cstddef>
#include <tuple>
#include <utility>

#include "core/cuda/launch_kernel.h"
#include "core/cuda/runtime.h"

namespace elastor::cuda {

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

template <typename T>
__device__ T* SharedMemory() {
  extern __shared__ __align__(16) unsigned char elastor_dynamic_shared_memory[];
  return reinterpret_cast<T*>(elastor_dynamic_shared_memory);
}

}  // namespace elastor::cuda

#endif  // ELASTOR_CORE_CUDA_LAUNCH_DEVICE_H_
