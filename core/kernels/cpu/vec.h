#ifndef ELASTOR_CORE_KERNELS_CPU_VEC_H_
#define ELASTOR_CORE_KERNELS_CPU_VEC_H_

#include <cstdint>

// Vectors of lanes: GCC vector types, so + - * / and comparisons are written as usual; the rest is
// in the machine's file, the only place of kernels with intrinsics. Every operation is exactly
// defined by IEEE 754 or on integers: no approximations that differ between CPUs (rcpps, vrecpeq).
//
// On x86-64 the files of isa/ are compiled for x86-64-v3 and for x86-64-v4, the products among them
// once more for AVX512-BF16, everything else for v3 alone. On aarch64 all is compiled once, for
// NEON. What depends on the build lives in a namespace of its own, so that the linker cannot
// replace one build's functions by another's: a v4 instruction ends a program on a CPU without
// AVX-512.
#ifdef __aarch64__
#define ELASTOR_ISA neon
#elif defined(__AVX512BF16__)
#define ELASTOR_ISA v4bf16
#elif defined(__AVX512F__)
#define ELASTOR_ISA v4
#else
#define ELASTOR_ISA v3
#endif
// Functions that kernels share are never emitted by themselves.
#define ELASTOR_INLINE [[gnu::always_inline]] inline

#ifdef __aarch64__
#include "core/kernels/cpu/vec_aarch64.h"
#else
#include "core/kernels/cpu/vec_x86_64.h"
#endif

namespace elastor {
inline namespace ELASTOR_ISA {

// The widest vector of the build.
template <typename T>
struct VecOf;
template <>
struct VecOf<float> {
  using Type = FloatVec;
};
template <>
struct VecOf<double> {
  using Type = DoubleVec;
};
template <typename T>
struct VecOf<const T> : VecOf<T> {};
template <typename T>
using Vec = typename VecOf<T>::Type;

template <typename T>
inline constexpr int kLanes = sizeof(Vec<T>) / sizeof(T);

}  // namespace ELASTOR_ISA
}  // namespace elastor

#endif  // ELASTOR_CORE_KERNELS_CPU_VEC_H_
