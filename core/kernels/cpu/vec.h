#ifndef ELASTOR_CORE_KERNELS_CPU_VEC_H_
#define ELASTOR_CORE_KERNELS_CPU_VEC_H_

#include <immintrin.h>

#include <cstdint>

// Vectors of lanes: GCC vector types, so + - * / and comparisons are written as usual; the rest is
// below. Every operation here is exactly defined by IEEE 754 or on integers: no approximations that
// differ between CPUs (rcpps, rsqrtps).
//
// The files of isa/ are compiled for x86-64-v3 and for x86-64-v4, the products among them once more
// for AVX512-BF16, everything else for v3 alone. What depends on the build lives in a namespace of
// its own, so that the linker cannot replace one build's functions by another's: a v4 instruction
// ends a program on a CPU without AVX-512.
#ifdef __AVX512BF16__
#define ELASTOR_ISA v4bf16
#elif defined(__AVX512F__)
#define ELASTOR_ISA v4
#else
#define ELASTOR_ISA v3
#endif
// Functions that kernels share are never emitted by themselves.
#define ELASTOR_INLINE [[gnu::always_inline]] inline

namespace elastor {
inline namespace ELASTOR_ISA {

// 32 bytes.
using Float8 [[gnu::vector_size(32)]] = float;
using Double4 [[gnu::vector_size(32)]] = double;
using Int8 [[gnu::vector_size(32)]] = int32_t;
using Uint8 [[gnu::vector_size(32)]] = uint32_t;

// Unaligned.
ELASTOR_INLINE Float8 Load8(const float* p) { return _mm256_loadu_ps(p); }
ELASTOR_INLINE Double4 Load4(const double* p) { return _mm256_loadu_pd(p); }
ELASTOR_INLINE void Save(float* p, Float8 v) { _mm256_storeu_ps(p, v); }
ELASTOR_INLINE void Save(double* p, Double4 v) { _mm256_storeu_pd(p, v); }

// a * b + c, one rounding.
ELASTOR_INLINE Float8 Fma(Float8 a, Float8 b, Float8 c) { return _mm256_fmadd_ps(a, b, c); }
ELASTOR_INLINE Double4 Fma(Double4 a, Double4 b, Double4 c) { return _mm256_fmadd_pd(a, b, c); }
// c - a * b, one rounding.
ELASTOR_INLINE Float8 NegativeFma(Float8 a, Float8 b, Float8 c) {
  return _mm256_fnmadd_ps(a, b, c);
}
ELASTOR_INLINE Double4 NegativeFma(Double4 a, Double4 b, Double4 c) {
  return _mm256_fnmadd_pd(a, b, c);
}

ELASTOR_INLINE Float8 Sqrt(Float8 v) { return _mm256_sqrt_ps(v); }
ELASTOR_INLINE Double4 Sqrt(Double4 v) { return _mm256_sqrt_pd(v); }

// Returns the larger (smaller) of a bound and v; v if v is NaN.
ELASTOR_INLINE Float8 AtLeast(Float8 bound, Float8 v) { return _mm256_max_ps(bound, v); }
ELASTOR_INLINE Double4 AtLeast(Double4 bound, Double4 v) { return _mm256_max_pd(bound, v); }
ELASTOR_INLINE Float8 AtMost(Float8 bound, Float8 v) { return _mm256_min_ps(bound, v); }

ELASTOR_INLINE Float8 Abs(Float8 v) { return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), v); }
// Returns `negative` where the sign bit of v is set, else `positive`.
ELASTOR_INLINE Float8 SelectBySign(Float8 v, Float8 negative, Float8 positive) {
  return _mm256_blendv_ps(positive, negative, v);
}
// Returns the magnitude v >= 0 with the sign bit of `sign`.
ELASTOR_INLINE Float8 WithSignOf(Float8 sign, Float8 v) {
  return _mm256_or_ps(v, _mm256_and_ps(_mm256_set1_ps(-0.0f), sign));
}

ELASTOR_INLINE Int8 Bits(Float8 v) { return reinterpret_cast<Int8>(v); }
ELASTOR_INLINE Float8 FromBits(Int8 v) { return reinterpret_cast<Float8>(v); }

#ifdef __AVX512F__
// 64 bytes: the same functions.
using Float16 [[gnu::vector_size(64)]] = float;
using Double8 [[gnu::vector_size(64)]] = double;
using Int16 [[gnu::vector_size(64)]] = int32_t;
using Uint16 [[gnu::vector_size(64)]] = uint32_t;

ELASTOR_INLINE void Save(float* p, Float16 v) { _mm512_storeu_ps(p, v); }
ELASTOR_INLINE void Save(double* p, Double8 v) { _mm512_storeu_pd(p, v); }
ELASTOR_INLINE Float16 Fma(Float16 a, Float16 b, Float16 c) { return _mm512_fmadd_ps(a, b, c); }
ELASTOR_INLINE Double8 Fma(Double8 a, Double8 b, Double8 c) { return _mm512_fmadd_pd(a, b, c); }
ELASTOR_INLINE Float16 NegativeFma(Float16 a, Float16 b, Float16 c) {
  return _mm512_fnmadd_ps(a, b, c);
}
ELASTOR_INLINE Double8 NegativeFma(Double8 a, Double8 b, Double8 c) {
  return _mm512_fnmadd_pd(a, b, c);
}
ELASTOR_INLINE Float16 Sqrt(Float16 v) { return _mm512_sqrt_ps(v); }
ELASTOR_INLINE Double8 Sqrt(Double8 v) { return _mm512_sqrt_pd(v); }
ELASTOR_INLINE Float16 AtLeast(Float16 bound, Float16 v) { return _mm512_max_ps(bound, v); }
ELASTOR_INLINE Double8 AtLeast(Double8 bound, Double8 v) { return _mm512_max_pd(bound, v); }
ELASTOR_INLINE Float16 AtMost(Float16 bound, Float16 v) { return _mm512_min_ps(bound, v); }
ELASTOR_INLINE Float16 Abs(Float16 v) { return _mm512_andnot_ps(_mm512_set1_ps(-0.0f), v); }
ELASTOR_INLINE Float16 SelectBySign(Float16 v, Float16 negative, Float16 positive) {
  return _mm512_mask_blend_ps(_mm512_movepi32_mask(_mm512_castps_si512(v)), positive, negative);
}
ELASTOR_INLINE Float16 WithSignOf(Float16 sign, Float16 v) {
  return _mm512_or_ps(v, _mm512_and_ps(_mm512_set1_ps(-0.0f), sign));
}
ELASTOR_INLINE Int16 Bits(Float16 v) { return reinterpret_cast<Int16>(v); }
ELASTOR_INLINE Float16 FromBits(Int16 v) { return reinterpret_cast<Float16>(v); }

using FloatVec = Float16;
using DoubleVec = Double8;
using IntVec = Int16;
using UintVec = Uint16;
ELASTOR_INLINE FloatVec Load(const float* p) { return _mm512_loadu_ps(p); }
ELASTOR_INLINE DoubleVec Load(const double* p) { return _mm512_loadu_pd(p); }
// Loads 32 bytes from each, `low` into the lower lanes.
ELASTOR_INLINE Float16 LoadPair(const float* low, const float* high) {
  return _mm512_insertf32x8(_mm512_castps256_ps512(Load8(low)), Load8(high), 1);
}
// Loads 32 bytes into both halves.
ELASTOR_INLINE Float16 LoadRepeated8(const float* p) { return _mm512_broadcast_f32x8(Load8(p)); }
// Loads the first `count` lanes; the others are zero, and memory beyond is not read.
ELASTOR_INLINE FloatVec LoadFirst(const float* p, int64_t count) {
  return _mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << count) - 1), p);
}
ELASTOR_INLINE DoubleVec LoadFirst(const double* p, int64_t count) {
  return _mm512_maskz_loadu_pd(static_cast<__mmask8>((1u << count) - 1), p);
}
ELASTOR_INLINE void SaveFirst(float* p, int64_t count, FloatVec v) {
  _mm512_mask_storeu_ps(p, static_cast<__mmask16>((1u << count) - 1), v);
}
ELASTOR_INLINE void SaveFirst(double* p, int64_t count, DoubleVec v) {
  _mm512_mask_storeu_pd(p, static_cast<__mmask8>((1u << count) - 1), v);
}
ELASTOR_INLINE FloatVec Broadcast(float s) { return _mm512_set1_ps(s); }
ELASTOR_INLINE DoubleVec Broadcast(double s) { return _mm512_set1_pd(s); }
#else
using FloatVec = Float8;
using DoubleVec = Double4;
using IntVec = Int8;
using UintVec = Uint8;
ELASTOR_INLINE FloatVec Load(const float* p) { return Load8(p); }
ELASTOR_INLINE DoubleVec Load(const double* p) { return Load4(p); }
ELASTOR_INLINE FloatVec Broadcast(float s) { return _mm256_set1_ps(s); }
ELASTOR_INLINE DoubleVec Broadcast(double s) { return _mm256_set1_pd(s); }
#endif

// One step of a product's chain: c + a * b. The build for AVX512-BF16 multiplies words, each a pair
// of bfloat16 in the memory of a float (core/kernels/cpu/bfloat16.h).
#ifdef __AVX512BF16__
ELASTOR_INLINE Float8 MultiplyAdd(Float8 a, Float8 b, Float8 c) {
  return _mm256_dpbf16_ps(c, reinterpret_cast<__m256bh>(a), reinterpret_cast<__m256bh>(b));
}
ELASTOR_INLINE Float16 MultiplyAdd(Float16 a, Float16 b, Float16 c) {
  return _mm512_dpbf16_ps(c, reinterpret_cast<__m512bh>(a), reinterpret_cast<__m512bh>(b));
}
#else
template <typename V>
ELASTOR_INLINE V MultiplyAdd(V a, V b, V c) {
  return Fma(a, b, c);
}
#endif

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
