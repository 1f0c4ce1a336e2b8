#ifndef ELASTOR_CORE_CUDA_LAUNCH_DEVICE_H_
#define ELASTOR_CORE_CUDA_LAUNCH_DEVICE_H_

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
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

template <typename T, typename Combine>
__device__ T OverLanes(T value, Combine combine) {
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) {
    value = combine(value, __shfl_xor_sync(0xffffffffu, value, distance));
  }
  return value;
}

__device__ inline float RoundToTf32(float value) {
  uint32_t rounded;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(rounded) : "f"(value));
  return __uint_as_float(rounded);
}

__device__ inline void MultiplyTf32(const uint32_t (&left)[4], const uint32_t (&right)[2],
                                    float (&sums)[4]) {
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right[0]), "r"(right[1]));
}

__device__ inline void MultiplyBFloat16(const uint32_t (&left)[4], const uint32_t (&right)[2],
                                        float (&sums)[4]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right[0]), "r"(right[1]));
}

}  // namespace elastor::cuda

#endif  // ELASTOR_CORE_CUDA_LAUNCH_DEVICE_H_
