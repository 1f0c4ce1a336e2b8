#ifndef ELASTOR_CORE_BASE_CANONICAL_MATH_H_
#define ELASTOR_CORE_BASE_CANONICAL_MATH_H_

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "core/base/build_config.h"

namespace elastor {

// Elementary functions in double whose bits depend on nothing but the argument: series in a fixed
// order with the FMAs written out, no libm (which picks another routine on another CPU). Within
// 4 ulp of the true value where not said otherwise. Square roots need none of this: IEEE 754
// already fixes their bits, and std::sqrt is one instruction. For the host and device kernels.

namespace canonical_internal {

// c[first] + y c[first + 1] + ... by Horner's rule, one FMA a term. Recursion rather than a loop:
// straight-line code lets a loop over arguments become vectors.
template <size_t kFirst = 0, size_t kTerms>
ELASTOR_HOST_DEVICE inline double Horner(double y, const std::array<double, kTerms>& c) {
  if constexpr (kFirst + 1 == kTerms) {
    return c[kFirst];
  } else {
    return std::fma(Horner<kFirst + 1>(y, c), y, c[kFirst]);
  }
}

// The series are functions, evaluated by the compiler where they are used: device code cannot see
// the host's constant arrays.

// 1 / (2i + 1): atanh(s) = s sum_i s^2i / (2i + 1).
constexpr std::array<double, 12> AtanhSeries() {
  std::array<double, 12> c{};
  for (size_t i = 0; i < c.size(); ++i) c[i] = 1.0 / static_cast<double>(2 * i + 1);
  return c;
}

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
// ln 2 in two parts; the high one has 21 trailing zero bits, so its product with an exponent is
// exact.
inline constexpr double kLn2High = 0x1.62e42feep-1;
inline constexpr double kLn2Low = 0x1.a39ef35793c76p-33;

}  // namespace canonical_internal

// Returns the natural logarithm of a positive normal number. REQUIRES: 2^-1022 <= x < infinity.
ELASTOR_HOST_DEVICE inline double CanonicalLog(double x) {
  using namespace canonical_internal;
  // x = 2^k z with z in [sqrt(1/2), sqrt(2)). The exponent is kept positive and turned into a
  // double by its bits (2^52 + n has n as its last bits), which vectors can do, unlike signed
  // shifts.
  constexpr uint64_t kSqrtHalf = 0x3fe6a09e667f3bcd;
  constexpr int64_t kBias = 1024;
  constexpr auto kAtanh = AtanhSeries();
  const uint64_t bits = std::bit_cast<uint64_t>(x);
  const uint64_t exponent = (bits - kSqrtHalf + (uint64_t{kBias} << 52)) >> 52;  // k + kBias
  const double z = std::bit_cast<double>(bits - (exponent << 52) + (uint64_t{kBias} << 52));
  const double k =
      std::bit_cast<double>(exponent | std::bit_cast<uint64_t>(0x1p52)) - (0x1p52 + kBias);
  // log z = 2 atanh(s), |s| < 0.172.
  const double s = (z - 1) / (z + 1);
  const double log_z = 2 * s * Horner(s * s, kAtanh);
  return std::fma(k, kLn2High, std::fma(k, kLn2Low, log_z));
}

// e^x. Results below 2^-1021 are 0 (denormals are never made); above the largest double, infinity;
// NaN gives NaN.
ELASTOR_HOST_DEVICE inline double CanonicalExp(double x) {
  using namespace canonical_internal;
  constexpr double kLargest = 709.78, kSmallest = -707.7;
  if (x > kLargest) return std::numeric_limits<double>::infinity();
  if (x < kSmallest) return 0;
  if (x != x) return x;
  // x = k ln 2 + r, |r| <= ln(2) / 2. Adding and taking away 1.5 * 2^52 rounds to an integer.
  constexpr double kLog2E = 0x1.71547652b82fep+0, kRounder = 0x1.8p52;
  constexpr auto kExp = InverseFactorials<14>(0, 1, 1);
  const double k = std::fma(x, kLog2E, kRounder) - kRounder;
  const double r = std::fma(-k, kLn2Low, std::fma(-k, kLn2High, x));
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

// Returns sine and cosine of 2 pi turns / 2^32. The argument is reduced in integers, hence exactly.
ELASTOR_HOST_DEVICE inline SinCos CanonicalSinCos(uint32_t turns) {
  using namespace canonical_internal;
  constexpr double kRadians = 0x1.921fb54442d18p+2 * 0x1p-32;  // 2 pi / 2^32
  constexpr auto kSin = InverseFactorials<9>(1, 2, -1);
  constexpr auto kCos = InverseFactorials<10>(0, 2, -1);
  const uint32_t quadrant = (turns + (uint32_t{1} << 29)) >> 30;
  const double x = static_cast<int32_t>(turns - (quadrant << 30)) * kRadians;  // |x| <= pi / 4
  const double sin_x = x * Horner(x * x, kSin);
  const double cos_x = Horner(x * x, kCos);
  // Odd quadrants swap the two; quadrants 2, 3 negate the sine and 1, 2 the cosine. This is done on
  // bits, so that a loop over angles becomes vectors.
  const uint64_t odd = -static_cast<uint64_t>(quadrant & 1);
  const uint64_t sin_bits = std::bit_cast<uint64_t>(sin_x);
  const uint64_t cos_bits = std::bit_cast<uint64_t>(cos_x);
  const uint64_t swap = (sin_bits ^ cos_bits) & odd;
  const uint64_t sin_sign = static_cast<uint64_t>(quadrant & 2) << 62;
  const uint64_t cos_sign = static_cast<uint64_t>((quadrant + 1) & 2) << 62;
  return {std::bit_cast<double>(sin_bits ^ swap ^ sin_sign),
          std::bit_cast<double>(cos_bits ^ swap ^ cos_sign)};
}

// Returns base^exponent by repeated squaring. REQUIRES: exponent >= 0.
inline double IntegerPower(double base, int64_t exponent) {
  double power = 1;
  for (; exponent > 0; exponent >>= 1, base *= base) {
    if (exponent & 1) power *= base;
  }
  return power;
}

}  // namespace elastor

#endif  // ELASTOR_CORE_BASE_CANONICAL_MATH_H_
