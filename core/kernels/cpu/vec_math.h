#ifndef ELASTOR_CORE_KERNELS_CPU_VEC_MATH_H_
#define ELASTOR_CORE_KERNELS_CPU_VEC_MATH_H_

#include <cmath>
#include <type_traits>

#include "core/kernels/cpu/vec.h"

namespace elastor {
inline namespace ELASTOR_ISA {

// Elementary functions whose bits depend on neither libm's version nor the CPU. Bounds are against
// exact values, in ulp of float (tests/core/kernels/vec_math_test.cc). NaN gives NaN. The double
// versions call libm lane by lane: double exists to test the kernels, never to train.

namespace vec_math {

// c[0] + c[1] x + ... by Horner's rule.
template <int kCount>
ELASTOR_INLINE FloatVec Polynomial(const float (&c)[kCount], FloatVec x) {
  FloatVec sum = Broadcast(c[kCount - 1]);
#pragma GCC unroll 16
  for (int i = kCount - 2; i >= 0; --i) sum = Fma(sum, x, Broadcast(c[i]));
  return sum;
}

template <typename Function>
ELASTOR_INLINE DoubleVec PerLane(DoubleVec v, Function function) {
  for (int i = 0; i < kLanes<double>; ++i) v[i] = function(v[i]);
  return v;
}

// x + kRound - kRound is x rounded to an integer, whose low bits are then those of x + kRound.
inline constexpr float kRound = 0x1.8p23f;

// Returns x * 2^n for normal x and result, with n in the low bits of `rounded`. The sum is modulo
// 2^32: with a NaN it may be any number.
ELASTOR_INLINE FloatVec TimesPowerOf2(FloatVec x, FloatVec rounded) {
  return FromBits(reinterpret_cast<IntVec>(reinterpret_cast<UintVec>(x) +
                                           (reinterpret_cast<UintVec>(rounded) << 23)));
}

}  // namespace vec_math

// e^x, within 1.5 ulp; 0 below -87.3 (results under the smallest normal number), +inf above 88.72.
ELASTOR_INLINE FloatVec Exp(FloatVec x) {
  using namespace vec_math;
  constexpr float kP[] = {0.499999934545f, 0.166665206519f, 0.0416683854833f, 0.00836871462959f,
                          0.00138147693471f};
  const FloatVec bounded = AtLeast(Broadcast(-88.0f), AtMost(Broadcast(89.0f), x));
  const FloatVec rounded = Fma(bounded, Broadcast(0x1.715476p+0f), Broadcast(kRound));
  const FloatVec n = rounded - Broadcast(kRound);
  FloatVec r = NegativeFma(n, Broadcast(0x1.62e4p-1f), bounded);  // ln 2, its upper 15 bits ...
  r = NegativeFma(n, Broadcast(0x1.7f7d1cp-20f), r);              // ... and the rest
  const FloatVec e = Fma(r * r, Polynomial(kP, r), r) + Broadcast(1.0f);
  // 2^n in two factors, because n may be 128.
  const IntVec exponent = Bits(rounded) - Bits(Broadcast(kRound));
  const IntVec half = exponent >> 1;
  const FloatVec scaled =
      e * FromBits((half + 127) << 23) * FromBits((exponent - half + 127) << 23);
  return x < Broadcast(-87.3f) ? Broadcast(0.0f) : scaled;
}
ELASTOR_INLINE DoubleVec Exp(DoubleVec x) {
  return vec_math::PerLane(x, [](double v) { return std::exp(v); });
}

// log(1 + u) for u in [0, 1], within 2.5 ulp: 2 atanh(s) with s = u / (2 + u) <= 1/3.
ELASTOR_INLINE FloatVec Log1pOfUnit(FloatVec u) {
  constexpr float kP[] = {0.33333337754f, 0.199994439421f, 0.143083033161f, 0.10715327262f,
                          0.121449130154f};
  const FloatVec s = u / (u + Broadcast(2.0f));
  const FloatVec square = s * s;
  return Fma(s * square, vec_math::Polynomial(kP, square), s) * Broadcast(2.0f);
}
ELASTOR_INLINE DoubleVec Log1pOfUnit(DoubleVec u) {
  return vec_math::PerLane(u, [](double v) { return std::log1p(v); });
}

// log(x) for normal x > 0, within 1.5 ulp.
ELASTOR_INLINE FloatVec Log(FloatVec x) {
  constexpr float kP[] = {0.333333127276f,  -0.250000100595f, 0.200021101758f,
                          -0.166679666814f, 0.14219686793f,   -0.124061206239f,
                          0.118877625486f,  -0.116726241076f, 0.0674394901218f};
  // x = 2^n m with m in [sqrt(1/2), sqrt(2)).
  const IntVec shifted = Bits(x) - 0x3f3504f3;
  const FloatVec n = __builtin_convertvector(shifted >> 23, FloatVec);
  const FloatVec r = FromBits((shifted & 0x7fffff) + 0x3f3504f3) - Broadcast(1.0f);
  const FloatVec square = r * r;
  FloatVec tail = square * r * vec_math::Polynomial(kP, r);
  tail = Fma(n, Broadcast(0x1.7f7d1cp-20f), tail);
  tail = NegativeFma(Broadcast(0.5f), square, tail);
  return Fma(n, Broadcast(0x1.62e4p-1f), r + tail);
}
ELASTOR_INLINE DoubleVec Log(DoubleVec x) {
  return vec_math::PerLane(x, [](double v) { return std::log(v); });
}

// 1 / (1 + e^-x), within 3 ulp; below -87.3 it is 0.
ELASTOR_INLINE FloatVec Sigmoid(FloatVec x) {
  const FloatVec e = Exp(-Abs(x));
  return SelectBySign(x, e, Broadcast(1.0f)) / (e + Broadcast(1.0f));
}
ELASTOR_INLINE DoubleVec Sigmoid(DoubleVec x) {
  return vec_math::PerLane(x, [](double v) {
    const double e = std::exp(-std::fabs(v));
    return (v < 0 ? e : 1.0) / (1.0 + e);
  });
}

// tanh(x), within 2.5 ulp.
ELASTOR_INLINE FloatVec Tanh(FloatVec x) {
  constexpr float kP[] = {-0.333333307896f, 0.133332054793f,    -0.0539466936772f,
                          0.0217003073788f, -0.00817638038516f, 0.00214199575387f};
  const FloatVec t = Abs(x);
  const FloatVec square = x * x;
  const FloatVec small = Fma(x * square, vec_math::Polynomial(kP, square), x);
  const FloatVec large = Broadcast(1.0f) - Broadcast(2.0f) / (Exp(t + t) + Broadcast(1.0f));
  return t < Broadcast(0.625f) ? small : WithSignOf(x, large);
}
ELASTOR_INLINE DoubleVec Tanh(DoubleVec x) {
  return vec_math::PerLane(x, [](double v) { return std::tanh(v); });
}

// The normal distribution at x: density phi(x), cumulative Phi(x), from one exponential.
// Phi(x) = 1 - q for x >= 0 and q for x < 0, with the tail q = phi * Mills ratio computed by
// itself, so that small values of Phi keep their relative accuracy. Relative error of phi and q
// within (7 + x^2) 2^-24 for |x| <= 13; x is held within +-13.1, where phi is the smallest normal
// number and Phi is 0 or 1 to float (bounded is that x, for factors that must not overflow).
struct Normal {
  FloatVec bounded;
  FloatVec density;
  FloatVec cumulative;
};
ELASTOR_INLINE Normal NormalDistribution(FloatVec x) {
  using namespace vec_math;
  // 2^f / sqrt(2 pi) for f in [-1/2, 1/2].
  constexpr float kPower[] = {0.398942308998f,  0.276525631612f,   0.0958343919669f,
                              0.0221441432666f, 0.00385998319504f, 0.000529651299548f};
  // Mills ratio (1 - Phi(t)) / phi(t) = kAbove(t) / kBelow(t) within 5e-9.
  constexpr float kAbove[] = {1.25331414331f, 1.09154071026f, 0.45405432414f, 0.100086446673f,
                              0.0100566170627f};
  constexpr float kBelow[] = {
      1.0f, 1.66880839182f, 1.19379531746f, 0.463944089825f, 0.100093914115f, 0.0100564716252f};
  const FloatVec bounded = AtMost(Broadcast(13.1f), AtLeast(Broadcast(-13.1f), x));
  const FloatVec t = Abs(bounded);
  const FloatVec z = t * t * Broadcast(-0.721347520444f);  // density is 2^z / sqrt(2 pi)
  const FloatVec rounded = z + Broadcast(kRound);
  const FloatVec power = Polynomial(kPower, z - (rounded - Broadcast(kRound)));
  const FloatVec density = TimesPowerOf2(power, rounded);
  const FloatVec tail = density * Polynomial(kAbove, t) / Polynomial(kBelow, t);
  return {bounded, density, SelectBySign(x, tail, Broadcast(1.0f) - tail)};
}

// A function and its derivative at one point.
template <typename V>
struct ValueAndSlope {
  V value;
  V slope;
};

// x Phi(x), the erf form of GELU, and Phi(x) + x phi(x). Relative error of the value within
// (8 + x^2) 2^-24 for x >= -13, absolute error of the slope within 2^-22.
ELASTOR_INLINE ValueAndSlope<FloatVec> Gelu(FloatVec x) {
  const Normal normal = NormalDistribution(x);
  return {AtLeast(Broadcast(-13.1f), x) * normal.cumulative,
          Fma(normal.bounded, normal.density, normal.cumulative)};
}
ELASTOR_INLINE ValueAndSlope<DoubleVec> Gelu(DoubleVec x) {
  ValueAndSlope<DoubleVec> result;
  for (int i = 0; i < kLanes<double>; ++i) {
    const double cumulative = 0.5 * std::erfc(-x[i] * 0.70710678118654752440);
    const double density = 0.39894228040143267794 * std::exp(-0.5 * x[i] * x[i]);
    result.value[i] = x[i] * cumulative;
    result.slope[i] = cumulative + x[i] * density;
  }
  return result;
}

// x sigmoid(x) and its derivative.
template <typename V>
ELASTOR_INLINE ValueAndSlope<V> Swish(V x) {
  const V sigmoid = Sigmoid(x);
  const V value = x * sigmoid;
  return {value, Fma(value, 1 - sigmoid, sigmoid)};
}

// sigmoid(x) and its derivative.
template <typename V>
ELASTOR_INLINE ValueAndSlope<V> SigmoidAndSlope(V x) {
  const V value = Sigmoid(x);
  return {value, value * (1 - value)};
}

// tanh(x) and its derivative 1 - tanh(x)^2.
template <typename V>
ELASTOR_INLINE ValueAndSlope<V> TanhAndSlope(V x) {
  const V value = Tanh(x);
  return {value, NegativeFma(value, value, V{} + 1)};
}

// max(x, 0) (NaN stays NaN) and 1 for x > 0, else 0.
template <typename V>
ELASTOR_INLINE ValueAndSlope<V> ReluAndSlope(V x) {
  const V zero = {};
  return {AtLeast(zero, x), x > zero ? zero + 1 : zero};
}

// x and 1 for x > 0, else slope * x and slope.
template <typename V>
ELASTOR_INLINE ValueAndSlope<V> LeakyReluAndSlope(V x, double slope) {
  using Number = std::remove_cvref_t<decltype(x[0])>;
  const V zero = {};
  const V factor = x > zero ? zero + 1 : zero + static_cast<Number>(slope);
  return {x * factor, factor};
}

}  // namespace ELASTOR_ISA
}  // namespace elastor

#endif  // ELASTOR_CORE_KERNELS_CPU_VEC_MATH_H_
