#ifndef ELASTOR_CORE_CUDA_EMULATION_INTRINSICS_H_
#define ELASTOR_CORE_CUDA_EMULATION_INTRINSICS_H_

// Included by language.h. Defines CUDA's built-in functions, in the global namespace as in CUDA.

#include <bit>
#include <cstdint>
#include <type_traits>

#include "core/cuda/emulation/barriers.h"

using std::max;
using std::min;

// --- threads that wait for each other

inline void __syncthreads() { elastor::cuda::emulation::WaitForBlock(); }

inline void __syncwarp(unsigned mask = 0xffffffffu) {
  elastor::cuda::emulation::WaitForWarp(elastor::cuda::emulation::WarpBarrier::kSync, mask, 0);
}

// Shuffles within groups of `width` lanes. A lane outside the group or the mask gives the thread's
// own value.
template <typename T>
T __shfl_sync(unsigned mask, T value, int lane, int width = 32) {
  namespace emulation = elastor::cuda::emulation;
  const int own = emulation::current_lane;
  return emulation::Shuffle(mask, value, (own & ~(width - 1)) | (lane & (width - 1)));
}
template <typename T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32) {
  namespace emulation = elastor::cuda::emulation;
  const int own = emulation::current_lane;
  const int source = own + static_cast<int>(delta);
  return emulation::Shuffle(mask, value, source > (own | (width - 1)) ? own : source);
}
template <typename T>
T __shfl_xor_sync(unsigned mask, T value, int lane_mask, int width = 32) {
  namespace emulation = elastor::cuda::emulation;
  const int own = emulation::current_lane;
  const int source = own ^ lane_mask;
  return emulation::Shuffle(mask, value, source > (own | (width - 1)) ? own : source);
}

inline unsigned __ballot_sync(unsigned mask, int predicate) {
  namespace emulation = elastor::cuda::emulation;
  const uint64_t* votes =
      emulation::WaitForWarp(emulation::WarpBarrier::kBallot, mask, predicate != 0);
  unsigned ballot = 0;
  for (int lane = 0; lane < 32; ++lane) {
    if ((mask >> lane & 1) && votes[lane] != 0) ballot |= 1u << lane;
  }
  return ballot;
}

// --- atomics: on integers only, as the kernels' rule has it

template <typename T, typename Change>
T ElastorAtomic(T* address, Change change) {
  static_assert(std::is_integral_v<T> && (sizeof(T) == 4 || sizeof(T) == 8));
  const T old = *address;
  *address = change(old);
  asm volatile("" ::: "memory");
  return old;
}
#define ELASTOR_ATOMIC(name, expression)                                       \
  template <typename T>                                                        \
  T name(T* address, std::type_identity_t<T> value) {                          \
    return ElastorAtomic(address, [value](T old) -> T { return expression; }); \
  }
ELASTOR_ATOMIC(atomicAdd, static_cast<T>(static_cast<std::make_unsigned_t<T>>(old) +
                                         static_cast<std::make_unsigned_t<T>>(value)))
ELASTOR_ATOMIC(atomicOr, old | value)
ELASTOR_ATOMIC(atomicMax, value > old ? value : old)
#undef ELASTOR_ATOMIC
template <typename T>
T atomicCAS(T* address, std::type_identity_t<T> compare, std::type_identity_t<T> value) {
  return ElastorAtomic(address, [=](T old) -> T { return old == compare ? value : old; });
}

// --- bits

inline int __popc(unsigned x) { return std::popcount(x); }
inline int __popcll(unsigned long long x) { return std::popcount(x); }
inline int __clz(int x) { return std::countl_zero(static_cast<unsigned>(x)); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline unsigned __float_as_uint(float x) { return std::bit_cast<unsigned>(x); }
inline float __uint_as_float(unsigned x) { return std::bit_cast<float>(x); }

#endif  // ELASTOR_CORE_CUDA_EMULATION_INTRINSICS_H_
