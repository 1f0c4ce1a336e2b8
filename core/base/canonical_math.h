#ifndef ELASTOR_CORE_BASE_CANONICAL_MATH_H_
#define ELASTOR_CORE_BASE_CANONICAL_MATH_H_

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace elastor {

// Elementary functions in double whose bits depend on nothing but the argument: series in a fixed
// order with the FMAs written out, no libm (which picks another routine on another CPU). Within
// 4 ulp of the true value where not said otherwise. Square roots need none of this: IEEE 754
// already fixes their bits, and std::sqrt is one instruction.

namespace canonical_internal {

// c[0] + y c[1] + ... by Horner's rule, one FMA a term.
template <size_t kTerms>
constexpr double Horner(double y, const std::array<double, kTerms>& c) {
  double sum = c[kTerms - 1];
  for (size_t i = kTerms - 1; i-- > 0;) sum = __builtin_fma(sum, y, c[i]);
  return sum;
}

// 1 / (2i + 1): atanh(s) = s sum_i s^2i / (2i + 1).
inline constexpr auto kAtanh = [] {
  std::array<double, 12> c{};
  for (size_t i = 0; i < c.size(); ++i) c[i] = 1.0 / static_cast<double>(2 * i + 1);
  return c;
}();

// sign^i / (kStep i + kFirst)!: the Taylor coefficients of exp, sin(x)/x and cos(x).
template <size_t kTerms>
constexpr std::array<double, kTerms> InverseFactorials(int first, int step, double sign) {
  std::array<double, kTerms> c{};
  double factorial = 1;  // exact up to 18!, which is all that is used with weight
  int n = 0;
  double power = 1;
  for (size_t i = 0; i < kTerms; ++i, power *= sign) {
    for (const int target = first + static_cast<int>(i) * step; n < target;) factorial *= ++n;
    c[i] = power / factorial;
  }
  return c;
}
inline constexpr auto kExp = InverseFactorials<14>(0, 1, 1);
inline constexpr auto kSin = InverseFactorials<9>(1, 2, -1);
inline constexpr auto kCos = InverseFactorials<10>(0, 2, -1);

// ln 2 in two parts; the high one has 21 trailing zero bits, so its product with an exponent is
// exact.
inline constexpr double kLn2High = 0x1.62e42feep-1;
inline constexpr double kLn2Low = 0x1.a39ef35793c76p-33;

}  // namespace canonical_internal

// Natural logarithm of a positive normal number. REQUIRES: 2^-1022 <= x < infinity.
inline double CanonicalLog(double x) {
  using namespace canonical_internal;
  // x = 2^k z with z in [sqrt(1/2), sqrt(2)).
  constexpr int64_t kSqrtHalf = 0x3fe6a09e667f3bcd;
  const int64_t bits = std::bit_cast<int64_t>(x);
  const int64_t exponent = (bits - kSqrtHalf) >> 52;
  const double z = std::bit_cast<double>(bits - (exponent << 52));
  const double k = static_cast<double>(static_cast<int32_t>(exponent));
  // log z = 2 atanh(s), |s| < 0.172.
  const double s = (z - 1) / (z + 1);
  const double log_z = 2 * s * Horner(s * s, kAtanh);
  return __builtin_fma(k, kLn2High, __builtin_fma(k, kLn2Low, log_z));
}

// e^x. Results below 2^-1021 are 0 (denormals are never made); above the largest double, infinity;
// NaN gives NaN.
inline double CanonicalExp(double x) {
  using namespace canonical_internal;
  constexpr double kLargest = 709.78, kSmallest = -707.7;
  if (x > kLargest) return std::numeric_limits<double>::infinity();
  if (x < kSmallest) return 0;
  if (x != x) return x;
  // x = k ln 2 + r, |r| <= ln(2) / 2. Adding and taking away 1.5 * 2^52 rounds to an integer.
  constexpr double kLog2E = 0x1.71547652b82fep+0, kRounder = 0x1.8p52;
  const double k = __builtin_fma(x, kLog2E, kRounder) - kRounder;
  const double r = __builtin_fma(-k, kLn2Low, __builtin_fma(-k, kLn2High, x));
  // 2^k in two halves: k may be 1024.
  const int64_t half = static_cast<int64_t>(k) >> 1;
  const int64_t rest = static_cast<int64_t>(k) - half;
  return Horner(r, kExp) * std::bit_cast<double>((1023 + half) << 52) *
         std::bit_cast<double>((1023 + rest) << 52);
}

struct SinCos {
  double sin;
  double cos;
};

// Sine and cosine of 2 pi turns / 2^32. The argument is reduced in integers, hence exactly.
inline SinCos CanonicalSinCos(uint32_t turns) {
  using namespace canonical_internal;
  constexpr double kRadians = 0x1.921fb54442d18p+2 * 0x1p-32;  // 2 pi / 2^32
  const uint32_t quadrant = (turns + (uint32_t{1} << 29)) >> 30;
  const double x = static_cast<int32_t>(turns - (quadrant << 30)) * kRadians;  // |x| <= pi / 4
  const double sin_x = x * Horner(x * x, kSin);
  const double cos_x = Horner(x * x, kCos);
  const bool swap = (quadrant & 1) != 0;
  const double sin_sign = (quadrant & 2) != 0 ? -1 : 1;
  const double cos_sign = ((quadrant + 1) & 2) != 0 ? -1 : 1;
  return {sin_sign * (swap ? cos_x : sin_x), cos_sign * (swap ? sin_x : cos_x)};
}

}  // namespace elastor

#endif  // ELASTOR_CORE_BASE_CANONICAL_MATH_H_
