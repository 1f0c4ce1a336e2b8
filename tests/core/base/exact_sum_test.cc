#include "core/base/exact_sum.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace elastor {
namespace {

ExactSum SumOf(const std::vector<double>& values) {
  ExactSum sum;
  for (const double value : values) sum.Add(value);
  return sum;
}

ExactSum ReduceWords(const std::vector<ExactSum>& parts) {
  std::array<int64_t, ExactSum::kWords> total{};
  for (const ExactSum& part : parts) {
    const auto words = part.ToWords();
    for (int i = 0; i < ExactSum::kWords; ++i) total[i] += words[i];
  }
  return ExactSum::FromWords(total);
}

// Signed values from 1e-30 to 1e20.
std::vector<double> WideValues(int count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> exponent(-30, 20), sign(-1, 1);
  std::vector<double> values(count);
  for (double& value : values) {
    value = std::copysign(std::pow(10.0, exponent(random)), sign(random));
  }
  return values;
}

TEST(ExactSumTest, EmptyIsZero) {
  EXPECT_EQ(ExactSum().Value(), 0);
  EXPECT_TRUE(ExactSum().ok());
}

TEST(ExactSumTest, OneValueComesBack) {
  for (const double value : WideValues(20000, 1)) ASSERT_EQ(SumOf({value}).Value(), value);
  for (int exponent = -108; exponent < 96; ++exponent) {
    const double value = std::ldexp(1 + 0x1p-52, exponent);
    ASSERT_EQ(SumOf({value}).Value(), value) << exponent;
    ASSERT_EQ(SumOf({-value}).Value(), -value) << exponent;
  }
}

TEST(ExactSumTest, IntegersAddExactly) {
  std::mt19937_64 random(2);
  std::uniform_int_distribution<int64_t> integer(-(int64_t{1} << 52), int64_t{1} << 52);
  ExactSum sum;
  __int128_t expected = 0;
  for (int i = 0; i < 20000; ++i) {
    const int64_t value = integer(random);
    sum.Add(static_cast<double>(value));
    expected += value;
    ASSERT_EQ(sum.Value(), static_cast<double>(expected)) << i;
  }
}

TEST(ExactSumTest, DoesNotDependOnOrder) {
  std::vector<double> values = WideValues(3000, 3);
  const double expected = SumOf(values).Value();
  std::mt19937 random(4);
  for (int i = 0; i < 20; ++i) {
    std::shuffle(values.begin(), values.end(), random);
    EXPECT_EQ(SumOf(values).Value(), expected);
  }
}

TEST(ExactSumTest, CancellationLosesNothing) {
  EXPECT_EQ(SumOf({1e20, 1e-30, -1e20}).Value(), SumOf({1e-30}).Value());
  EXPECT_EQ(SumOf({0x1p95, 0x1p-160, -0x1p95}).Value(), 0x1p-160);
  EXPECT_EQ(SumOf({-0x1p-160, 0x1p-160}).Value(), 0);
  // Borrows and carries through every limb.
  EXPECT_EQ(SumOf({-0x1p-160}).Value(), -0x1p-160);
  EXPECT_EQ(SumOf({0x1p95, -0x1p-160}).Value(), 0x1p95);
  EXPECT_EQ(SumOf({-0x1p-160, 0x1p-159}).Value(), 0x1p-160);
}

TEST(ExactSumTest, NegatedValuesGiveTheNegatedSum) {
  std::vector<double> values = WideValues(1000, 5);
  const double expected = SumOf(values).Value();
  for (double& value : values) value = -value;
  EXPECT_EQ(SumOf(values).Value(), -expected);
}

TEST(ExactSumTest, RoundsToNearestTiesToEven) {
  EXPECT_EQ(SumOf({1, 0x1p-53}).Value(), 1);
  EXPECT_EQ(SumOf({1, 0x1p-53, 0x1p-160}).Value(), 1 + 0x1p-52);
  EXPECT_EQ(SumOf({1 + 0x1p-52, 0x1p-53}).Value(), 1 + 0x1p-51);
  EXPECT_EQ(SumOf({1 + 0x1p-52, 0x1p-53, -0x1p-160}).Value(), 1 + 0x1p-52);
  EXPECT_EQ(SumOf({-1, -0x1p-53, -0x1p-160}).Value(), -1 - 0x1p-52);
  EXPECT_EQ(SumOf({2 - 0x1p-52, 0x1p-53}).Value(), 2);
}

TEST(ExactSumTest, AddendsAreTruncatedTowardZeroOneByOne) {
  EXPECT_EQ(SumOf({0x1.8p-160}).Value(), 0x1p-160);
  EXPECT_EQ(SumOf({-0x1.8p-160}).Value(), -0x1p-160);
  EXPECT_EQ(SumOf({0x1.8p-161, 0x1.8p-161}).Value(), 0);
  EXPECT_EQ(SumOf({-0x1.8p-161, 1e-300, -0.0, std::numeric_limits<double>::denorm_min()}).Value(),
            0);
  // The truncated part of an addend that keeps its upper bits.
  EXPECT_EQ(SumOf({0x1.0000000000001p-109}).Value(), 0x1p-109);
}

TEST(ExactSumTest, NonFiniteAndOutOfRangeAddendsStayBad) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const double bad :
       {kInfinity, -kInfinity, std::numeric_limits<double>::quiet_NaN(), 0x1p96, -0x1p96}) {
    ExactSum sum = SumOf({1, bad, 2});
    EXPECT_FALSE(sum.ok()) << bad;
    EXPECT_TRUE(std::isnan(sum.Value())) << bad;
    ExactSum merged = SumOf({1});
    merged.Merge(sum);
    EXPECT_FALSE(merged.ok());
    EXPECT_FALSE(ReduceWords({SumOf({1}), sum, sum}).ok());
  }
  EXPECT_TRUE(SumOf({0x1.fffffffffffffp95, -0x1.fffffffffffffp95}).ok());
}

TEST(ExactSumTest, LargeAddendsDoNotOverflowInAnyOrder) {
  std::vector<double> values(1000, 0x1.8p95);
  values.resize(2000, -0x1.8p95);
  values.push_back(1);
  EXPECT_EQ(SumOf(values).Value(), 1);
  EXPECT_EQ(SumOf(std::vector<double>(1 << 20, -0x1p95)).Value(), -0x1p115);
}

TEST(ExactSumTest, PartsMergedOrReducedAsWordsGiveTheWhole) {
  const std::vector<double> values = WideValues(5000, 6);
  const double expected = SumOf(values).Value();
  for (const int ranks : {1, 2, 3, 7, 64}) {
    std::vector<ExactSum> parts(ranks);
    for (size_t i = 0; i < values.size(); ++i) parts[i * i % ranks].Add(values[i]);
    ExactSum merged;
    for (const ExactSum& part : parts) merged.Merge(part);
    EXPECT_EQ(merged.Value(), expected);
    EXPECT_EQ(ReduceWords(parts).Value(), expected);
  }
}

TEST(ExactSumTest, WordsOfManyNegativePartsGiveTheWhole) {
  // Every word of the parts is at its extreme, and the sum still comes out.
  constexpr int kParts = 1 << 12;
  const std::vector<ExactSum> parts(kParts, SumOf({-0x1p-160, -0x1p95}));
  EXPECT_EQ(ReduceWords(parts).Value(), -0x1p107);
  EXPECT_EQ(ReduceWords({ReduceWords(parts), SumOf({0x1p94, 0x1p94})}).Value(), -0x1p107 + 0x1p95);
  const std::vector<ExactSum> tiny(kParts, SumOf({-0x1p-160}));
  EXPECT_EQ(ReduceWords(tiny).Value(), -0x1p-148);
}

}  // namespace
}  // namespace elastor
