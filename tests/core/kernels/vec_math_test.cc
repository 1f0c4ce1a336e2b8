#include "core/kernels/cpu/vec_math.h"

#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

#include "core/base/floating_point.h"
#include "gtest/gtest.h"

namespace elastor {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Every 3,989th float of [low, high], and both ends. 0 < low, or high < 0.
std::vector<float> Sample(float low, float high) {
  std::vector<float> values = {low, high};
  const bool negative = high < 0;
  uint32_t bits = std::bit_cast<uint32_t>(negative ? high : low);
  const uint32_t end = std::bit_cast<uint32_t>(negative ? low : high);
  for (; bits < end; bits += 3989) values.push_back(std::bit_cast<float>(bits));
  return values;
}

// Sample() of both signs, and zero.
std::vector<float> SampleAround(float largest) {
  std::vector<float> values = Sample(1e-30f, largest);
  for (const float v : Sample(-largest, -1e-30f)) values.push_back(v);
  values.push_back(0.0f);
  return values;
}

// Distance from the exact value in units of the last place of a float there.
double UlpError(float value, double exact) {
  if (exact == 0) return value == 0 ? 0 : 1e9;
  const int exponent = std::max(std::ilogb(exact), -126);
  return std::fabs(value - exact) / std::ldexp(1.0, exponent - 23);
}

template <typename Function, typename Exact>
double WorstUlp(const std::vector<float>& arguments, Function function, Exact exact) {
  double worst = 0;
  float where = 0;
  for (const float x : arguments) {
    const double error = UlpError(function(Broadcast(x))[0], exact(x));
    if (!(error <= worst)) {
      worst = error;
      where = x;
    }
  }
  testing::Test::RecordProperty("worst_at", std::to_string(where));
  return worst;
}

TEST(VecMathTest, Exp) {
  const auto exp = [](FloatVec x) { return Exp(x); };
  const auto exact = [](double x) { return std::exp(x); };
  EXPECT_LE(WorstUlp(Sample(1e-30f, 88.72f), exp, exact), 1.5);
  EXPECT_LE(WorstUlp(Sample(-87.3f, -1e-30f), exp, exact), 1.5);
  EXPECT_EQ(Exp(Broadcast(0.0f))[0], 1.0f);
  EXPECT_EQ(Exp(Broadcast(-87.4f))[0], 0.0f);
  EXPECT_EQ(Exp(Broadcast(-kInfinity))[0], 0.0f);
  EXPECT_EQ(Exp(Broadcast(88.73f))[0], kInfinity);
  EXPECT_EQ(Exp(Broadcast(kInfinity))[0], kInfinity);
  EXPECT_TRUE(std::isnan(Exp(Broadcast(kNan))[0]));
}

TEST(VecMathTest, Log) {
  const auto log = [](FloatVec x) { return Log(x); };
  const auto exact = [](double x) { return std::log(x); };
  EXPECT_LE(WorstUlp(Sample(std::numeric_limits<float>::min(), 3.4e38f), log, exact), 1.5);
  EXPECT_EQ(Log(Broadcast(1.0f))[0], 0.0f);
}

TEST(VecMathTest, Log1pOfUnit) {
  const auto log1p = [](FloatVec x) { return Log1pOfUnit(x); };
  const auto exact = [](double x) { return std::log1p(x); };
  EXPECT_LE(WorstUlp(Sample(1e-37f, 1.0f), log1p, exact), 2.5);
  EXPECT_EQ(Log1pOfUnit(Broadcast(0.0f))[0], 0.0f);
  EXPECT_TRUE(std::isnan(Log1pOfUnit(Broadcast(kNan))[0]));
}

TEST(VecMathTest, Sigmoid) {
  const auto sigmoid = [](FloatVec x) { return Sigmoid(x); };
  const auto exact = [](double x) { return 1 / (1 + std::exp(-x)); };
  EXPECT_LE(WorstUlp(SampleAround(87.3f), sigmoid, exact), 3);
  EXPECT_EQ(Sigmoid(Broadcast(-kInfinity))[0], 0.0f);
  EXPECT_EQ(Sigmoid(Broadcast(kInfinity))[0], 1.0f);
  EXPECT_TRUE(std::isnan(Sigmoid(Broadcast(kNan))[0]));
}

TEST(VecMathTest, Tanh) {
  const auto tanh = [](FloatVec x) { return Tanh(x); };
  const auto exact = [](double x) { return std::tanh(x); };
  EXPECT_LE(WorstUlp(SampleAround(100.0f), tanh, exact), 2.5);
  EXPECT_EQ(Tanh(Broadcast(-kInfinity))[0], -1.0f);
  EXPECT_EQ(Tanh(Broadcast(kInfinity))[0], 1.0f);
  EXPECT_TRUE(std::isnan(Tanh(Broadcast(kNan))[0]));
}

double Density(double x) { return std::exp(-0.5 * x * x) / std::sqrt(2 * M_PI); }
double Cumulative(double x) { return 0.5 * std::erfc(-x / std::sqrt(2)); }

TEST(VecMathTest, NormalDistribution) {
  for (const float x : SampleAround(12.9f)) {
    const Normal normal = NormalDistribution(Broadcast(x));
    const double bound = (7 + double{x} * x) * 0x1p-24;
    ASSERT_NEAR(normal.density[0] / Density(x), 1, bound) << x;
    ASSERT_NEAR(normal.cumulative[0] / Cumulative(x), 1, bound) << x;
  }
}

TEST(VecMathTest, Gelu) {
  for (const float x : SampleAround(12.9f)) {
    const ValueAndSlope<FloatVec> gelu = Gelu(Broadcast(x));
    const double bound = (8 + double{x} * x) * 0x1p-24;
    if (x != 0) {
      ASSERT_NEAR(gelu.value[0] / (x * Cumulative(x)), 1, bound) << x;
    }
    ASSERT_NEAR(gelu.slope[0], Cumulative(x) + x * Density(x), 0x1p-22) << x;
  }
  for (const float x : Sample(13.0f, 3e38f)) {
    ASSERT_EQ(Gelu(Broadcast(x)).value[0], x);
    ASSERT_EQ(Gelu(Broadcast(x)).slope[0], 1.0f);
    ASSERT_NEAR(Gelu(Broadcast(-x)).value[0], 0.0f, 2e-36);
    ASSERT_NEAR(Gelu(Broadcast(-x)).slope[0], 0.0f, 2e-36);
  }
  EXPECT_EQ(Gelu(Broadcast(kInfinity)).value[0], kInfinity);
  EXPECT_NEAR(Gelu(Broadcast(-kInfinity)).value[0], 0.0f, 2e-36);
  // Whatever bits a NaN has: the low ones are those of an exponent in NormalDistribution.
  for (uint32_t bits = 0x7fc00000; bits < 0x7fc00200; ++bits) {
    for (const uint32_t sign : {0u, 1u << 31}) {
      const ValueAndSlope<FloatVec> gelu = Gelu(Broadcast(std::bit_cast<float>(bits | sign)));
      ASSERT_TRUE(std::isnan(gelu.value[0])) << bits;
      ASSERT_TRUE(std::isnan(gelu.slope[0])) << bits;
    }
  }
}

TEST(VecMathTest, ReluKeepsNan) {
  EXPECT_EQ(ReluAndSlope(Broadcast(-2.0f)).value[0], 0.0f);
  EXPECT_EQ(ReluAndSlope(Broadcast(-2.0f)).slope[0], 0.0f);
  EXPECT_EQ(ReluAndSlope(Broadcast(3.0f)).value[0], 3.0f);
  EXPECT_EQ(ReluAndSlope(Broadcast(3.0f)).slope[0], 1.0f);
  EXPECT_TRUE(std::isnan(ReluAndSlope(Broadcast(kNan)).value[0]));
}

// By the rule of x86-64's maxima and minima: denormals count as zeros with their sign, and v is the
// result where the operands are equal or one is NaN.
TEST(VecMathTest, MaximaAndMinimaFlushDenormals) {
  struct Case {
    uint64_t bound, v, at_least, at_most;
  };
  const auto expect = [](const Case& c, auto operand, auto at_least, auto at_most) {
    using T = decltype(operand);
    using BitsOfT = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
    volatile BitsOfT bound = static_cast<BitsOfT>(c.bound), v = static_cast<BitsOfT>(c.v);
    FloatingPoint::Set(FloatingPoint::kCanonical);
    const auto b = Broadcast(std::bit_cast<T>(BitsOfT{bound}));
    const auto x = Broadcast(std::bit_cast<T>(BitsOfT{v}));
    volatile BitsOfT larger = std::bit_cast<BitsOfT>(T{at_least(b, x)[0]});
    volatile BitsOfT smaller = std::bit_cast<BitsOfT>(T{at_most(b, x)[0]});
    FloatingPoint::Set(FloatingPoint::kDefault);
    EXPECT_EQ(larger, c.at_least) << std::hex << c.bound << " " << c.v;
    EXPECT_EQ(smaller, c.at_most) << std::hex << c.bound << " " << c.v;
  };
  constexpr uint32_t kMinus = 1u << 31, kOne = 0x3f800000, kNot = 0x7fc00000;  // NaN
  for (const Case& c :
       {Case{0, 0x123, 0, 0}, Case{kMinus | kOne, kMinus | 0x123, kMinus, kMinus | kOne},
        Case{0x123, kMinus, kMinus, kMinus}, Case{kMinus | 0x123, 0, 0, 0},
        Case{0x123, kMinus | kOne, 0, kMinus | kOne}, Case{kNot, 0x123, 0, 0},
        Case{0x123, kNot, kNot, kNot}, Case{0x800000, 0x7fffff, 0x800000, 0}}) {
    expect(
        c, float{}, [](auto b, auto x) { return AtLeast(b, x); },
        [](auto b, auto x) { return AtMost(b, x); });
  }
  constexpr uint64_t kMinus64 = 1ull << 63, kOne64 = 0x3ffull << 52;
  for (const Case& c : {Case{0, 0x123, 0, 0}, Case{kMinus64, kMinus64 | 5, kMinus64, kMinus64},
                        Case{5, kMinus64 | kOne64, 0, kMinus64 | kOne64}}) {
    expect(
        c, double{}, [](auto b, auto x) { return AtLeast(b, x); },
        [](auto b, auto x) { return SmallerOf(b, x); });
    expect(
        c, double{}, [](auto b, auto x) { return LargerOf(b, x); },
        [](auto b, auto x) { return SmallerOf(b, x); });
  }
}

// Slopes against central differences, in double.
TEST(VecMathTest, SlopesAreDerivatives) {
  constexpr double kStep = 1e-5;
  constexpr double kTolerance = 1e-9;
  for (double x = -6; x <= 6; x += 0.171) {
    const auto check = [&](auto function) {
      const double above = function(Broadcast(x + kStep)).value[0];
      const double below = function(Broadcast(x - kStep)).value[0];
      EXPECT_NEAR(function(Broadcast(x)).slope[0], (above - below) / (2 * kStep), kTolerance) << x;
    };
    check([](DoubleVec v) { return Gelu(v); });
    check([](DoubleVec v) { return Swish(v); });
    check([](DoubleVec v) { return TanhAndSlope(v); });
    check([](DoubleVec v) { return ReluAndSlope(v); });
  }
}

TEST(VecMathTest, LanesDoNotMix) {
  FloatVec x;
  for (int i = 0; i < kLanes<float>; ++i) x[i] = 0.7f * static_cast<float>(i - kLanes<float> / 2);
  const FloatVec all = Gelu(x).value;
  for (int i = 0; i < kLanes<float>; ++i) EXPECT_EQ(all[i], Gelu(Broadcast(x[i])).value[0]);
}

}  // namespace
}  // namespace elastor
