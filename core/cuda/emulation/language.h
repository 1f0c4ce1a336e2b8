#ifndef ELASTOR_CORE_CUDA_EMULATION_LANGUAGE_H_
#define ELASTOR_CORE_CUDA_EMULATION_LANGUAGE_H_

// CUDA's own words for the host's compiler: what kernels of this repository may use. Meanings are
// those of NVIDIA's CUDA C++ Programming Guide, appendix "C++ Language Extensions".

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
  unsigned x = 1, y = 1, z = 1;
  constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};

// Vectors of 2 and 4 elements, aligned to their size up to 16 bytes.
#define ELASTOR_VECTOR_TYPES(type, prefix)                             \
  struct alignas(2 * sizeof(type)) prefix##2 {                         \
    type x, y;                                                         \
  };                                                                   \
  struct alignas(sizeof(type) < 4 ? 4 * sizeof(type) : 16) prefix##4 { \
    type x, y, z, w;                                                   \
  };                                                                   \
  inline prefix##2 make_##prefix##2(type x, type y) { return {x, y}; } \
  inline prefix##4 make_##prefix##4(type x, type y, type z, type w) { return {x, y, z, w}; }
ELASTOR_VECTOR_TYPES(float, float)
ELASTOR_VECTOR_TYPES(double, double)
ELASTOR_VECTOR_TYPES(int, int)
ELASTOR_VECTOR_TYPES(unsigned int, uint)
ELASTOR_VECTOR_TYPES(short, short)
ELASTOR_VECTOR_TYPES(unsigned short, ushort)
ELASTOR_VECTOR_TYPES(unsigned char, uchar)
ELASTOR_VECTOR_TYPES(long long, longlong)
ELASTOR_VECTOR_TYPES(unsigned long long, ulonglong)
#undef ELASTOR_VECTOR_TYPES

// Of the thread that runs; kernels run one at a time in a process.
inline uint3 threadIdx;
inline uint3 blockIdx;
inline dim3 blockDim;
inline dim3 gridDim;
inline constexpr int warpSize = 32;

#include "core/cuda/emulation/intrinsics.h"

#endif  // ELASTOR_CORE_CUDA_EMULATION_LANGUAGE_H_
