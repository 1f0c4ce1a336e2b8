#ifndef ELASTOR_EMBEDDING_CUDA_COLUMNS_H_
#define ELASTOR_EMBEDDING_CUDA_COLUMNS_H_

// For kernel sources (.cu) only: neighbouring columns of a vector in one thread's registers, and
// groups of lanes that share a vector: lane l of 2^shift takes columns [l n, l n + n), then the
// columns 2^shift n further on, and so on.

#include <cstdint>

#include "core/cuda/bfloat16.h"
#include "core/cuda/launch.h"

namespace elastor::cuda {

inline constexpr unsigned kWholeWarp = 0xffffffffu;

// How many columns a thread takes: 4, where widths and memory allow loads of 4, or 1.
inline constexpr int kVector = 4;

inline __device__ void LoadColumns(const float* from, float (&to)[1]) { to[0] = *from; }
inline __device__ void LoadColumns(const BFloat16* from, float (&to)[1]) {
  to[0] = static_cast<float>(*from);
}
inline __device__ void LoadColumns(const float* from, float (&to)[kVector]) {
  const float4 v = *reinterpret_cast<const float4*>(from);
  to[0] = v.x, to[1] = v.y, to[2] = v.z, to[3] = v.w;
}
inline __device__ void LoadColumns(const BFloat16* from, float (&to)[kVector]) {
  const uint2 v = *reinterpret_cast<const uint2*>(from);
  to[0] = __uint_as_float(v.x << 16), to[1] = __uint_as_float(v.x & 0xffff0000u);
  to[2] = __uint_as_float(v.y << 16), to[3] = __uint_as_float(v.y & 0xffff0000u);
}

inline __device__ void StoreColumns(const float (&from)[1], float* to) { *to = from[0]; }
inline __device__ void StoreColumns(const float (&from)[1], BFloat16* to) {
  *to = BFloat16(from[0]);
}
inline __device__ void StoreColumns(const float (&from)[kVector], float* to) {
  *reinterpret_cast<float4*>(to) = make_float4(from[0], from[1], from[2], from[3]);
}
inline __device__ void StoreColumns(const float (&from)[kVector], BFloat16* to) {
  const auto pair = [](float low, float high) {
    return BFloat16(low).bits | static_cast<unsigned>(BFloat16(high).bits) << 16;
  };
  *reinterpret_cast<uint2*>(to) = make_uint2(pair(from[0], from[1]), pair(from[2], from[3]));
}

template <int kColumns>
__device__ void AddColumns(const float (&x)[kColumns], float (&y)[kColumns]) {
#pragma unroll
  for (int c = 0; c < kColumns; ++c) y[c] += x[c];
}

// Threads of a block in these kernels.
inline constexpr int kGroupThreads = 256;

// Lanes that share a vector: 2^shift.
struct LaneGroups {
  int shift = 0;

  // Returns the groups for vectors of at most `width` columns, with `columns` columns a lane.
  static LaneGroups For(int64_t width, int columns) {
    LaneGroups groups;
    while (groups.shift < 5 && (int64_t{columns} << groups.shift) < width) ++groups.shift;
    return groups;
  }
  int per_block() const { return kGroupThreads >> shift; }

  // Call these in a kernel with blocks of kGroupThreads threads.
  __device__ int lanes() const { return 1 << shift; }
  __device__ int lane() const { return static_cast<int>(threadIdx.x) & (lanes() - 1); }
  __device__ int in_block() const { return static_cast<int>(threadIdx.x) >> shift; }
  __device__ int64_t index() const {
    return static_cast<int64_t>(blockIdx.x) * (kGroupThreads >> shift) + in_block();
  }
};

}  // namespace elastor::cuda

#endif  // ELASTOR_EMBEDDING_CUDA_COLUMNS_H_
