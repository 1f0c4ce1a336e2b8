#ifndef ELASTOR_CORE_KERNELS_CPU_VEC_H_
#define ELASTOR_CORE_KERNELS_CPU_VEC_H_

#include <immintrin.h>

#include <cstdint>

namespace elastor {

// 32 bytes of lanes: GCC vector types, so + - * / and comparisons are written as usual; the rest is
// below. Every operation here is exactly defined by IEEE 754 or on integers: no approximations that
// differ between CPUs (rcpps, rsqrtps).

using FloatVec [[gnu::vector_size(32)]] = float;
using DoubleVec [[gnu::vector_size(32)]] = double;
using IntVec [[gnu::vector_size(32)]] = int32_t;
using UintVec [[gnu::vector_size(32)]] = uint32_t;

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
using Vec = typename VecOf<T>::Type;

template <typename T>
inline constexpr int kLanes = 32 / sizeof(T);

// Unaligned.
inline FloatVec Load(const float* p) { return _mm256_loadu_ps(p); }
inline DoubleVec Load(const double* p) { return _mm256_loadu_pd(p); }
inline void Save(float* p, FloatVec v) { _mm256_storeu_ps(p, v); }
inline void Save(double* p, DoubleVec v) { _mm256_storeu_pd(p, v); }

inline FloatVec Broadcast(float s) { return _mm256_set1_ps(s); }
inline DoubleVec Broadcast(double s) { return _mm256_set1_pd(s); }

// a * b + c, one rounding.
inline FloatVec Fma(FloatVec a, FloatVec b, FloatVec c) { return _mm256_fmadd_ps(a, b, c); }
inline DoubleVec Fma(DoubleVec a, DoubleVec b, DoubleVec c) { return _mm256_fmadd_pd(a, b, c); }
// c - a * b, one rounding.
inline FloatVec NegativeFma(FloatVec a, FloatVec b, FloatVec c) {
  return _mm256_fnmadd_ps(a, b, c);
}
inline DoubleVec NegativeFma(DoubleVec a, DoubleVec b, DoubleVec c) {
  return _mm256_fnmadd_pd(a, b, c);
}

inline FloatVec Sqrt(FloatVec v) { return _mm256_sqrt_ps(v); }
inline DoubleVec Sqrt(DoubleVec v) { return _mm256_sqrt_pd(v); }

// The larger (smaller) of a bound and v; v when v is NaN.
inline FloatVec AtLeast(FloatVec bound, FloatVec v) { return _mm256_max_ps(bound, v); }
inline DoubleVec AtLeast(DoubleVec bound, DoubleVec v) { return _mm256_max_pd(bound, v); }
inline FloatVec AtMost(FloatVec bound, FloatVec v) { return _mm256_min_ps(bound, v); }

inline FloatVec Abs(FloatVec v) { return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), v); }
// `negative` where the sign bit of v is set, else `positive`.
inline FloatVec SelectBySign(FloatVec v, FloatVec negative, FloatVec positive) {
  return _mm256_blendv_ps(positive, negative, v);
}
// The sign bit of `sign` on the magnitude v >= 0.
inline FloatVec WithSignOf(FloatVec sign, FloatVec v) {
  return _mm256_or_ps(v, _mm256_and_ps(_mm256_set1_ps(-0.0f), sign));
}

inline IntVec Bits(FloatVec v) { return reinterpret_cast<IntVec>(v); }
inline FloatVec FromBits(IntVec v) { return reinterpret_cast<FloatVec>(v); }

}  // namespace elastor

#endif  // ELASTOR_CORE_KERNELS_CPU_VEC_H_
