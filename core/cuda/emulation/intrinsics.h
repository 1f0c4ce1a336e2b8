#ifndef ELASTOR_CORE_CUDA_EMULATION_INTRINSICS_H_
#define ELASTOR_CORE_CUDA_EMULATION_INTRINSICS_H_

// Included by language.h. CUDA's built-in functions, in the global namespace as there.

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "core/cuda/emulation/meeting.h"

using std::max;
using std::min;

// --- threads that wait for each other

inline void __syncthreads() { elastor::cuda::emulation::MeetBlock(false); }
inline int __syncthreads_count(int predicate) {
  return elastor::cuda::emulation::MeetBlock(predicate != 0);
}
inline int __syncthreads_or(int predicate) { return __syncthreads_count(predicate) != 0; }
inline int __syncthreads_and(int predicate) { return __syncthreads_count(predicate == 0) == 0; }

inline void __syncwarp(unsigned mask = 0xffffffffu) {
  elastor::cuda::emulation::MeetWarp(elastor::cuda::emulation::Meeting::kSyncWarp, mask, 0);
}

// Within groups of `width` lanes; a lane outside the group or the mask: the thread's own value.
template <typename T>
T __shfl_sync(unsigned mask, T value, int lane, int width = 32) {
  namespace emulation = elastor::cuda::emulation;
  const int own = emulation::CurrentLane();
  return emulation::Shuffle(mask, value, (own & ~(width - 1)) | (lane & (width - 1)));
}
template <typename T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32) {
  namespace emulation = elastor::cuda::emulation;
  const int own = emulation::CurrentLane();
  const int source = own - static_cast<int>(delta);
  return emulation::Shuffle(mask, value, source < (own & ~(width - 1)) ? own : source);
}
template <typename T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32) {
  namespace emulation = elastor::cuda::emulation;
  const int own = emulation::CurrentLane();
  const int source = own + static_cast<int>(delta);
  return emulation::Shuffle(mask, value, source > (own | (width - 1)) ? own : source);
}
template <typename T>
T __shfl_xor_sync(unsigned mask, T value, int lane_mask, int width = 32) {
  namespace emulation = elastor::cuda::emulation;
  const int own = emulation::CurrentLane();
  const int source = own ^ lane_mask;
  return emulation::Shuffle(mask, value, source > (own | (width - 1)) ? own : source);
}

inline unsigned __ballot_sync(unsigned mask, int predicate) {
  namespace emulation = elastor::cuda::emulation;
  const uint64_t* votes = emulation::MeetWarp(emulation::Meeting::kVote, mask, predicate != 0);
  unsigned ballot = 0;
  for (int lane = 0; lane < 32; ++lane) {
    if ((mask >> lane & 1) && votes[lane] != 0) ballot |= 1u << lane;
  }
  return ballot;
}
inline int __any_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) != 0; }
inline int __all_sync(unsigned mask, int predicate) {
  return __ballot_sync(mask, predicate) == mask;
}

template <typename T>
unsigned __match_any_sync(unsigned mask, T value) {
  namespace emulation = elastor::cuda::emulation;
  const uint64_t word = emulation::ToWord(value);
  const uint64_t* words = emulation::MeetWarp(emulation::Meeting::kMatch, mask, word);
  unsigned equal = 0;
  for (int lane = 0; lane < 32; ++lane) {
    if ((mask >> lane & 1) && words[lane] == word) equal |= 1u << lane;
  }
  return equal;
}

template <typename T, typename Fold>
T ElastorReduceWarp(unsigned mask, T value, Fold fold) {
  namespace emulation = elastor::cuda::emulation;
  static_assert(sizeof(T) == 4 && std::is_integral_v<T>);
  const uint64_t* words =
      emulation::MeetWarp(emulation::Meeting::kReduce, mask, emulation::ToWord(value));
  const int own = emulation::CurrentLane();
  T result = value;
  for (int lane = 0; lane < 32; ++lane) {
    if ((mask >> lane & 1) && lane != own)
      result = fold(result, emulation::FromWord<T>(words[lane]));
  }
  return result;
}
template <typename T>
T __reduce_add_sync(unsigned mask, T value) {
  return ElastorReduceWarp(mask, value, [](T a, T b) {
    return static_cast<T>(static_cast<unsigned>(a) + static_cast<unsigned>(b));
  });
}
template <typename T>
T __reduce_min_sync(unsigned mask, T value) {
  return ElastorReduceWarp(mask, value, [](T a, T b) { return a < b ? a : b; });
}
template <typename T>
T __reduce_max_sync(unsigned mask, T value) {
  return ElastorReduceWarp(mask, value, [](T a, T b) { return a > b ? a : b; });
}
inline unsigned __reduce_or_sync(unsigned mask, unsigned value) {
  return ElastorReduceWarp(mask, value, [](unsigned a, unsigned b) { return a | b; });
}

// Threads run one at a time: only the compiler must be told.
inline void __threadfence() { asm volatile("" ::: "memory"); }
inline void __threadfence_block() { asm volatile("" ::: "memory"); }
inline void __threadfence_system() { asm volatile("" ::: "memory"); }

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
ELASTOR_ATOMIC(atomicSub, static_cast<T>(static_cast<std::make_unsigned_t<T>>(old) -
                                         static_cast<std::make_unsigned_t<T>>(value)))
ELASTOR_ATOMIC(atomicOr, old | value)
ELASTOR_ATOMIC(atomicAnd, old& value)
ELASTOR_ATOMIC(atomicXor, old ^ value)
ELASTOR_ATOMIC(atomicMin, value < old ? value : old)
ELASTOR_ATOMIC(atomicMax, value > old ? value : old)
ELASTOR_ATOMIC(atomicExch, value + 0 * old)
#undef ELASTOR_ATOMIC
template <typename T>
T atomicCAS(T* address, std::type_identity_t<T> compare, std::type_identity_t<T> value) {
  return ElastorAtomic(address, [=](T old) -> T { return old == compare ? value : old; });
}

// --- bits

inline int __popc(unsigned x) { return std::popcount(x); }
inline int __popcll(unsigned long long x) { return std::popcount(x); }
inline int __clz(int x) { return std::countl_zero(static_cast<unsigned>(x)); }
inline int __clzll(long long x) { return std::countl_zero(static_cast<unsigned long long>(x)); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>(static_cast<uint64_t>(a) * b >> 32);
}
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return static_cast<unsigned long long>(static_cast<unsigned __int128>(a) * b >> 64);
}

inline unsigned __float_as_uint(float x) { return std::bit_cast<unsigned>(x); }
inline float __uint_as_float(unsigned x) { return std::bit_cast<float>(x); }
inline int __float_as_int(float x) { return std::bit_cast<int>(x); }
inline float __int_as_float(int x) { return std::bit_cast<float>(x); }
inline long long __double_as_longlong(double x) { return std::bit_cast<long long>(x); }
inline double __longlong_as_double(long long x) { return std::bit_cast<double>(x); }

// --- floating point rounded to nearest, never contracted

inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __fsqrt_rn(float x) { return std::sqrt(x); }
inline float __fmaf_rn(float a, float b, float c) { return std::fma(a, b, c); }
inline double __dadd_rn(double a, double b) { return a + b; }
inline double __dmul_rn(double a, double b) { return a * b; }
inline double __fma_rn(double a, double b, double c) { return std::fma(a, b, c); }
inline int __float2int_rn(float x) { return static_cast<int>(std::nearbyint(x)); }

// --- loads and stores that name a cache

template <typename T>
T __ldg(const T* address) {
  return *address;
}
template <typename T>
T __ldcg(const T* address) {
  return *address;
}
template <typename T>
T __ldcs(const T* address) {
  return *address;
}
template <typename T>
void __stcg(T* address, T value) {
  *address = value;
}
template <typename T>
void __stcs(T* address, T value) {
  *address = value;
}

#endif  // ELASTOR_CORE_CUDA_EMULATION_INTRINSICS_H_
