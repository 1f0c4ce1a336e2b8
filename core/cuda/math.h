#ifndef ELASTOR_CORE_CUDA_MATH_H_
#define ELASTOR_CORE_CUDA_MATH_H_

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "core/base/build_config.h"

namespace elastor::cuda {

// The elementary functions of core/kernels/cpu/vec_math.h for one float: the same operations in the
// same order, hence the same bits (tests/core/cuda/math_test.cc compares them). Bounds are stated
// there. For device kernels and the host; no contraction of a * b + c, denormals flushed.

// Returns the larger (smaller) of a bound and v; v if v is NaN or equal to the bound.
ELASTOR_HOST_DEVICE inline float AtLeast(float bound, float v) { return bound > v ? bound : v; }
ELASTOR_HOST_DEVICE inline float AtMost(float bound, float v) { return bound < v ? bound : v; }

namespace math_internal {

// x + kRound - kRound is x rounded to an integer, whose low bits are then those of x + kRound.
inline constexpr float kRound = 0x1.8p23f;

ELASTOR_HOST_DEVICE inline uint32_t Bits(float v) { return std::bit_cast<uint32_t>(v); }
ELASTOR_HOST_DEVICE inline float FromBits(uint32_t bits) { return std::bit_cast<float>(bits); }
ELASTOR_HOST_DEVICE inline bool HasSign(float v) { return Bits(v) >> 31 != 0; }

// c[0] + c[1] x + ... by Horner's rule.
template <size_t kFirst = 0, size_t kCount>
ELASTOR_HOST_DEVICE inline float Polynomial(const float (&c)[kCount], float x) {
  if constexpr (kFirst + 1 == kCount) {
    return c[kFirst];
  } else {
    return std::fma(Polynomial<kFirst + 1>(c, x), x, c[kFirst]);
  }
}

}  // namespace math_internal

// e^x.
ELASTOR_HOST_DEVICE inline float Exp(float x) {
  using namespace math_internal;
  constexpr float kP[] = {0.499999934545f, 0.166665206519f, 0.0416683854833f, 0.00836871462959f,
                          0.00138147693471f};
  const float bounded = AtLeast(-88.0f, AtMost(89.0f, x));
  const float rounded = std::fma(bounded, 0x1.715476p+0f, kRound);
  const float n = rounded - kRound;
  const float r = std::fma(-n, 0x1.7f7d1cp-20f, std::fma(-n, 0x1.62e4p-1f, bounded));
  const float e = std::fma(r * r, Polynomial(kP, r), r) + 1.0f;
  // 2^n in two factors, because n may be 128. The bits of NaN wrap.
  const uint32_t n_bits = Bits(rounded) - Bits(kRound);
  const uint32_t half = static_cast<uint32_t>(static_cast<int32_t>(n_bits) >> 1);
  const float scaled = e * FromBits((half + 127) << 23) * FromBits((n_bits - half + 127) << 23);
  return x < -87.3f ? 0.0f : scaled;
}

// log(1 + u) for u in [0, 1].
ELASTOR_HOST_DEVICE inline float Log1pOfUnit(float u) {
  constexpr float kP[] = {0.33333337754f, 0.199994439421f, 0.143083033161f, 0.10715327262f,
                          0.121449130154f};
  const float s = u / (u + 2.0f);
  const float square = s * s;
  return std::fma(s * square, math_internal::Polynomial(kP, square), s) * 2.0f;
}

// log(x) for normal x > 0.
ELASTOR_HOST_DEVICE inline float Log(float x) {
  using namespace math_internal;
  constexpr float kP[] = {0.333333127276f,  -0.250000100595f, 0.200021101758f,
                          -0.166679666814f, 0.14219686793f,   -0.124061206239f,
                          0.118877625486f,  -0.116726241076f, 0.0674394901218f};
  const uint32_t shifted = Bits(x) - 0x3f3504f3;
  const float n = static_cast<float>(static_cast<int32_t>(shifted) >> 23);
  const float r = FromBits((shifted & 0x7fffff) + 0x3f3504f3) - 1.0f;
  const float square = r * r;
  float tail = square * r * Polynomial(kP, r);
  tail = std::fma(n, 0x1.7f7d1cp-20f, tail);
  tail = std::fma(-0.5f, square, tail);
  return std::fma(n, 0x1.62e4p-1f, r + tail);
}

// 1 / (1 + e^-x).
ELASTOR_HOST_DEVICE inline float Sigmoid(float x) {
  const float e = Exp(-std::fabs(x));
  return (math_internal::HasSign(x) ? e : 1.0f) / (e + 1.0f);
}

// tanh(x).
ELASTOR_HOST_DEVICE inline float Tanh(float x) {
  constexpr float kP[] = {-0.333333307896f, 0.133332054793f,    -0.0539466936772f,
                          0.0217003073788f, -0.00817638038516f, 0.00214199575387f};
  const float t = std::fabs(x);
  const float square = x * x;
  const float small = std::fma(x * square, math_internal::Polynomial(kP, square), x);
  const float large = 1.0f - 2.0f / (Exp(t + t) + 1.0f);
  return t < 0.625f ? small : std::copysign(large, x);
}

// Density phi and cumulative Phi of the normal distribution at x; bounded is x within +-13.1.
struct Normal {
  float bounded;
  float density;
  float cumulative;
};
ELASTOR_HOST_DEVICE inline Normal NormalDistribution(float x) {
  using namespace math_internal;
  constexpr float kPower[] = {0.398942308998f,  0.276525631612f,   0.0958343919669f,
                              0.0221441432666f, 0.00385998319504f, 0.000529651299548f};
  constexpr float kAbove[] = {1.25331414331f, 1.09154071026f, 0.45405432414f, 0.100086446673f,
                              0.0100566170627f};
  constexpr float kBelow[] = {
      1.0f, 1.66880839182f, 1.19379531746f, 0.463944089825f, 0.100093914115f, 0.0100564716252f};
  const float bounded = AtMost(13.1f, AtLeast(-13.1f, x));
  const float t = std::fabs(bounded);
  const float z = t * t * -0.721347520444f;  // density is 2^z / sqrt(2 pi)
  const float rounded = z + kRound;
  const float power = Polynomial(kPower, z - (rounded - kRound));
  const float density = FromBits(Bits(power) + (Bits(rounded) << 23));
  const float tail = density * Polynomial(kAbove, t) / Polynomial(kBelow, t);
  return {bounded, density, HasSign(x) ? tail : 1.0f - tail};
}

// A function and its derivative at one point.
struct ValueAndSlope {
  float value;
  float slope;
};

// x Phi(x), the erf form of GELU, and Phi(x) + x phi(x).
ELASTOR_HOST_DEVICE inline ValueAndSlope Gelu(float x) {
  const Normal normal = NormalDistribution(x);
  return {AtLeast(-13.1f, x) * normal.cumulative,
          std::fma(normal.bounded, normal.density, normal.cumulative)};
}

// x sigmoid(x) and its derivative.
ELASTOR_HOST_DEVICE inline ValueAndSlope Swish(float x) {
  const float sigmoid = Sigmoid(x);
  const float value = x * sigmoid;
  return {value, std::fma(value, 1.0f - sigmoid, sigmoid)};
}

// sigmoid(x) and its derivative.
ELASTOR_HOST_DEVICE inline ValueAndSlope SigmoidAndSlope(float x) {
  const float value = Sigmoid(x);
  return {value, value * (1.0f - value)};
}

// tanh(x) and its derivative 1 - tanh(x)^2.
ELASTOR_HOST_DEVICE inline ValueAndSlope TanhAndSlope(float x) {
  const float value = Tanh(x);
  return {value, std::fma(-value, value, 1.0f)};
}

// max(x, 0) (NaN stays NaN) and 1 for x > 0, else 0.
ELASTOR_HOST_DEVICE inline ValueAndSlope Relu(float x) {
  return {AtLeast(0.0f, x), x > 0.0f ? 1.0f : 0.0f};
}

// x and 1 for x > 0, else slope * x and slope.
ELASTOR_HOST_DEVICE inline ValueAndSlope LeakyRelu(float x, double slope) {
  const float factor = x > 0.0f ? 1.0f : static_cast<float>(slope);
  return {x * factor, factor};
}

}  // namespace elastor::cuda

#endif  // ELASTOR_CORE_CUDA_MATH_H_
