#ifndef ELASTOR_CORE_CUDA_EMULATION_LANGUAGE_H_
#define ELASTOR_CORE_CUDA_EMULATION_LANGUAGE_H_

// Defines CUDA's language extensions that this repository's kernels may use, for the host's
// compiler. Their meanings are defined by NVIDIA's CUDA C++ Programming Guide, appendix "C++
// Language Extensions".

#include <algorithm>
#include <cmath>
#include <cstdint>

#define __global__
#define __device__
#define __host__
#define __constant__
#define __grid_constant__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __align__(bytes) __attribute__((aligned(bytes)))
// One instance serves all threads of a block: blocks run one after another on one host thread. The
// build adds a PoisonShared (block.h) behind every declaration in a .cu file.
#define __shared__ thread_local

struct uint3 {
  unsigned x, y, z;
};
struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};

// Vector types, aligned to their size.
#define ELASTOR_VECTOR_2(type, name)      \
  struct alignas(2 * sizeof(type)) name { \
    type x, y;                            \
  };                                      \
  inline name make_##name(type x, type y) { return {x, y}; }
#define ELASTOR_VECTOR_4(type, name)      \
  struct alignas(4 * sizeof(type)) name { \
    type x, y, z, w;                      \
  };                                      \
  inline name make_##name(type x, type y, type z, type w) { return {x, y, z, w}; }
ELASTOR_VECTOR_2(float, float2)
ELASTOR_VECTOR_4(float, float4)
ELASTOR_VECTOR_2(double, double2)
ELASTOR_VECTOR_2(int, int2)
ELASTOR_VECTOR_4(int, int4)
ELASTOR_VECTOR_2(unsigned int, uint2)
ELASTOR_VECTOR_4(unsigned int, uint4)
ELASTOR_VECTOR_2(unsigned short, ushort2)
ELASTOR_VECTOR_4(unsigned short, ushort4)
ELASTOR_VECTOR_2(long long, longlong2)
ELASTOR_VECTOR_2(unsigned long long, ulonglong2)
#undef ELASTOR_VECTOR_2
#undef ELASTOR_VECTOR_4

// The built-in variables of the running thread; kernels run one at a time in a process.
inline uint3 threadIdx;
inline uint3 blockIdx;
inline dim3 blockDim;
inline dim3 gridDim;
inline constexpr int warpSize = 32;

#include "core/cuda/emulation/intrinsics.h"

#endif  // ELASTOR_CORE_CUDA_EMULATION_LANGUAGE_H_
