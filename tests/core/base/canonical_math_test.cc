#include "core/base/canonical_math.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <random>

namespace elastor {
namespace {

// The header promises 4 ulp; glibc, the reference, is within 1.
constexpr double kTolerance = 4 * 0x1p-52;

double RelativeError(double value, double expected) {
  if (value == expected) return 0;
  return std::abs(value - expected) / std::abs(expected);
}

TEST(CanonicalMathTest, LogOfAllSizes) {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> mantissa(0.5, 2);
  std::uniform_int_distribution<int> exponent(-1020, 1020);
  double worst = 0;
  for (int i = 0; i < 500000; ++i) {
    const double near_one = mantissa(random);
    const double anywhere = std::ldexp(near_one, exponent(random));
    worst = std::max(worst, RelativeError(CanonicalLog(near_one), std::log(near_one)));
    worst = std::max(worst, RelativeError(CanonicalLog(anywhere), std::log(anywhere)));
  }
  EXPECT_LE(worst, kTolerance);
}

TEST(CanonicalMathTest, LogNearOneKeepsItsRelativeError) {
  for (int i = 1; i < 53; ++i) {
    for (const double x : {1 + std::ldexp(1, -i), 1 - std::ldexp(1, -i)}) {
      EXPECT_LE(RelativeError(CanonicalLog(x), std::log(x)), kTolerance) << x;
    }
  }
  EXPECT_EQ(CanonicalLog(1), 0);
}

TEST(CanonicalMathTest, Exp) {
  std::mt19937_64 random(2);
  std::uniform_real_distribution<double> wide(-707, 709), narrow(-1, 1);
  double worst = 0;
  for (int i = 0; i < 500000; ++i) {
    for (const double x : {wide(random), narrow(random)}) {
      worst = std::max(worst, RelativeError(CanonicalExp(x), std::exp(x)));
    }
  }
  EXPECT_LE(worst, kTolerance);
  EXPECT_LE(RelativeError(CanonicalExp(709.7), std::exp(709.7)), kTolerance);
}

TEST(CanonicalMathTest, ExpAtItsEnds) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(CanonicalExp(0), 1);
  EXPECT_EQ(CanonicalExp(710), kInfinity);
  EXPECT_EQ(CanonicalExp(kInfinity), kInfinity);
  EXPECT_EQ(CanonicalExp(-708), 0);
  EXPECT_EQ(CanonicalExp(-kInfinity), 0);
  EXPECT_TRUE(std::isnan(CanonicalExp(std::numeric_limits<double>::quiet_NaN())));
}

// Sine of 2 pi turns / 2^32, which lies in [-1/2, 1/2] of a turn; near half a turn pi - x is exact
// in turns but not in radians.
double ReferenceSin(int64_t turns) {
  constexpr int64_t kHalfTurn = int64_t{1} << 31;
  if (turns > kHalfTurn / 2) turns = kHalfTurn - turns;
  if (turns < -kHalfTurn / 2) turns = -kHalfTurn - turns;
  return static_cast<double>(std::sin(2 * std::numbers::pi_v<long double> * turns / 0x1p32L));
}

TEST(CanonicalMathTest, SinCos) {
  double worst = 0;
  const auto check = [&](uint32_t turns) {
    const SinCos value = CanonicalSinCos(turns);
    const double sin = ReferenceSin(static_cast<int32_t>(turns));
    const double cos = ReferenceSin(static_cast<int32_t>(turns + (uint32_t{1} << 30)));
    worst = std::max({worst, RelativeError(value.sin, sin), RelativeError(value.cos, cos)});
  };
  for (uint64_t turns = 0; turns < uint64_t{1} << 32; turns += 4099) {
    check(static_cast<uint32_t>(turns));
  }
  // Close to every eighth of a turn.
  for (uint32_t i = 0; i < 1000; ++i) check((i % 8 << 29) + i / 8 - 60);
  EXPECT_LE(worst, kTolerance);
}

TEST(CanonicalMathTest, SinCosOfQuartersAreExact) {
  const double sin[] = {0, 1, 0, -1};
  const double cos[] = {1, 0, -1, 0};
  for (uint32_t quarter = 0; quarter < 4; ++quarter) {
    const SinCos value = CanonicalSinCos(quarter << 30);
    EXPECT_EQ(value.sin, sin[quarter]);
    EXPECT_EQ(value.cos, cos[quarter]);
  }
}

TEST(CanonicalMath, IntegerPower) {
  EXPECT_EQ(IntegerPower(0.5, 0), 1);
  EXPECT_EQ(IntegerPower(0.5, 10), 0x1p-10);
  EXPECT_NEAR(IntegerPower(0.999, 1000), 0.36769542477096, 1e-13);
  EXPECT_EQ(IntegerPower(0.9, int64_t{1} << 62), 0);
}

}  // namespace
}  // namespace elastor
