#include "core/base/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <set>
#include <vector>

namespace elastor {
namespace {

TEST(PhiloxTest, KnownAnswersOfRandom123) {
  EXPECT_EQ(Philox(0, {0, 0, 0, 0}), (PhiloxBlock{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(Philox(~uint64_t{0}, {~0u, ~0u, ~0u, ~0u}),
            (PhiloxBlock{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(Philox(0x299f31d0a4093822, {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}),
            (PhiloxBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(RandomKeyTest, EveryPartOfTheKeyCounts) {
  std::set<uint64_t> keys;
  for (const uint64_t seed : {0ul, 1ul, 1ul << 32}) {
    for (const RandomPurpose purpose : {RandomPurpose::kDenseInit, RandomPurpose::kRowInit}) {
      for (const uint32_t layer : {0u, 1u, 2u}) keys.insert(MakeRandomKey(seed, purpose, layer));
    }
  }
  EXPECT_EQ(keys.size(), 18u);
  EXPECT_NE(HashName("tokenizer/weight"), HashName("tokenizer/bias"));
}

// Relative to libm, whose own error is below 1e-15.
TEST(NormalTest, AgreesWithLibm) {
  constexpr double kTolerance = 1e-13;
  double worst = 0;
  for (uint32_t i = 0; i < 300000; ++i) {
    // The last blocks: both ends of the logarithm.
    PhiloxBlock words = Philox(7, {i, 0, 0, 0});
    if (i < 1000) words[0] = i;
    if (i >= 299000) words[0] = ~(i - 299000);
    const NormalPair normal = NormalFromBits(words[0], words[1]);
    const long double radius = std::sqrt(-2 * std::log((words[0] + 1.0L) * 0x1p-32L));
    const long double angle = 2 * std::numbers::pi_v<long double> * words[1] * 0x1p-32L;
    const auto check = [&](double value, long double expected) {
      const double error = static_cast<double>(std::abs(value - expected));
      worst = std::max(worst, error / std::max(1e-300, static_cast<double>(std::abs(expected))));
    };
    check(normal.first, radius * std::cos(angle));
    check(normal.second, radius * std::sin(angle));
  }
  EXPECT_LE(worst, kTolerance);
}

// The transform is part of the numerics: these bits must never change without a new fingerprint.
TEST(NormalTest, BitsAreFixed) {
  const NormalPair normal = NormalFromBits(0x243f6a88, 0x85a308d3);
  EXPECT_EQ(normal.first, -0x1.f5584b829ccabp+0);
  EXPECT_EQ(normal.second, -0x1.1739f8742fedcp-2);
}

TEST(FillNormalTest, ElementsAreThoseOfTheirBlocks) {
  constexpr uint64_t kKey = 0x123456789abcdef0, kStream = 0xfedcba9876543210;
  std::vector<double> out(11);
  FillNormal(kKey, kStream, 0.5, 11, out.data());
  for (uint32_t block = 0; block < 3; ++block) {
    const PhiloxBlock words = Philox(kKey, {block, 0, 0x76543210, 0xfedcba98});
    const NormalPair a = NormalFromBits(words[0], words[1]);
    const NormalPair b = NormalFromBits(words[2], words[3]);
    const double expected[] = {a.first, a.second, b.first, b.second};
    for (uint32_t i = 0; i < 4 && block * 4 + i < 11; ++i) {
      EXPECT_EQ(out[block * 4 + i], 0.5 * expected[i]);
    }
  }
}

TEST(FillNormalTest, FloatIsTheRoundedDoubleForEveryLength) {
  for (const int64_t count : {0, 1, 2, 3, 4, 5, 31, 64, 257}) {
    std::vector<double> doubles(count + 1, -7);
    std::vector<float> floats(count + 1, -7);
    FillNormal(3, 4, 1e-4, count, doubles.data());
    FillNormal(3, 4, 1e-4, count, floats.data());
    for (int64_t i = 0; i < count; ++i) EXPECT_EQ(floats[i], static_cast<float>(doubles[i]));
    EXPECT_EQ(doubles[count], -7);
    EXPECT_EQ(floats[count], -7);
  }
}

TEST(FillNormalTest, MomentsAreThoseOfANormalDistribution) {
  constexpr int64_t kCount = 1 << 20;
  std::vector<double> out(kCount);
  FillNormal(11, 0, 1, kCount, out.data());
  double moments[5] = {0, 0, 0, 0, 0};
  for (const double x : out) {
    for (int k = 1; k < 5; ++k) moments[k] += std::pow(x, k) / kCount;
  }
  // Five standard errors of each moment: sqrt(variance of x^k / count).
  const double five_errors = 5 / std::sqrt(static_cast<double>(kCount));
  EXPECT_NEAR(moments[1], 0, five_errors);
  EXPECT_NEAR(moments[2], 1, five_errors * std::sqrt(2.0));
  EXPECT_NEAR(moments[3], 0, five_errors * std::sqrt(15.0));
  EXPECT_NEAR(moments[4], 3, five_errors * std::sqrt(96.0));
}

void ExpectBijective(const Permutation& permutation, uint64_t size) {
  std::vector<bool> seen(size, false);
  for (uint64_t i = 0; i < size; ++i) {
    const uint64_t image = permutation(i);
    ASSERT_LT(image, size);
    ASSERT_FALSE(seen[image]) << "size " << size << ", image " << image;
    seen[image] = true;
  }
}

TEST(PermutationTest, IsBijectiveForEverySize) {
  for (uint64_t size = 1; size <= 2000; ++size) ExpectBijective(Permutation(1, size, size), size);
  for (const uint64_t size : {(1u << 20) - 1, 1u << 20, (1u << 20) + 1, 3000017u}) {
    ExpectBijective(Permutation(2, 3, size), size);
  }
}

TEST(PermutationTest, StaysInsideHugeSizes) {
  for (const uint64_t size : {(uint64_t{1} << 40) + 12345, uint64_t{1} << 63, ~uint64_t{0}}) {
    const Permutation permutation(5, 6, size);
    std::set<uint64_t> images;
    for (uint64_t i = 0; i < 1000; ++i) {
      images.insert(permutation(i));
      images.insert(permutation(size - 1 - i));
    }
    EXPECT_EQ(images.size(), 2000u);
    EXPECT_LT(*images.rbegin(), size);
  }
}

TEST(PermutationTest, KeyAndStreamChangeIt) {
  constexpr uint64_t kSize = 1000;
  const Permutation a(1, 1, kSize), b(2, 1, kSize), c(1, 2, kSize);
  int equal_b = 0, equal_c = 0;
  for (uint64_t i = 0; i < kSize; ++i) {
    equal_b += a(i) == b(i);
    equal_c += a(i) == c(i);
  }
  // About one fixed point is expected of a random pair.
  EXPECT_LT(equal_b, 10);
  EXPECT_LT(equal_c, 10);
}

// Over many streams each place is equally likely: chi-squared over a 10 x 10 table.
TEST(PermutationTest, PlacesAreEquallyLikely) {
  constexpr uint64_t kSize = 10;
  constexpr int kStreams = 20000;
  int counts[kSize][kSize] = {};
  for (uint64_t stream = 0; stream < kStreams; ++stream) {
    const Permutation permutation(9, stream, kSize);
    for (uint64_t i = 0; i < kSize; ++i) ++counts[i][permutation(i)];
  }
  constexpr double kExpected = static_cast<double>(kStreams) / kSize;
  double chi_squared = 0;
  for (const auto& row : counts) {
    for (const int count : row)
      chi_squared += (count - kExpected) * (count - kExpected) / kExpected;
  }
  EXPECT_LT(chi_squared, 81 + 5 * std::sqrt(2.0 * 81));  // 81 degrees of freedom
}

TEST(PermutationDeathTest, RefusesWhatIsOutside) {
  EXPECT_DEATH(Permutation(1, 1, 0), "size");
  EXPECT_DEATH(Permutation(1, 1, 5)(5), "index");
}

}  // namespace
}  // namespace elastor
