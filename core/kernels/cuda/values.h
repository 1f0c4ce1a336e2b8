#ifndef ELASTOR_CORE_KERNELS_CUDA_VALUES_H_
#define ELASTOR_CORE_KERNELS_CUDA_VALUES_H_

#include "core/cuda/bfloat16.h"
#include "core/cuda/launch.h"

// For kernel sources: neighbouring elements that a thread reads or writes at once.

namespace elastor::cuda {

template <int kCount>
struct Values {
  float v[kCount];
};

// The elements as they lie in memory: one access of up to 16 bytes reads or writes them.
template <typename A, int kCount>
struct alignas(kCount * sizeof(A)) Pack {
  A v[kCount];
};

// REQUIRES: p is aligned to kCount elements.
template <int kCount, typename A>
__device__ inline Values<kCount> LoadValues(const A* p) {
  const Pack<A, kCount> pack = *reinterpret_cast<const Pack<A, kCount>*>(p);
  Values<kCount> values;
  for (int i = 0; i < kCount; ++i) values.v[i] = static_cast<float>(pack.v[i]);
  return values;
}

template <int kCount, typename A>
__device__ inline void StoreValues(A* p, const Values<kCount>& values) {
  Pack<A, kCount> pack;
  for (int i = 0; i < kCount; ++i) pack.v[i] = static_cast<A>(values.v[i]);
  *reinterpret_cast<Pack<A, kCount>*>(p) = pack;
}

}  // namespace elastor::cuda

#endif  // ELASTOR_CORE_KERNELS_CUDA_VALUES_H_
