#include "core/cuda/exact_sum.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "core/base/exact_sum.h"
#include "core/cuda/exact_sum_words.h"
#include "core/cuda/runtime.h"
#include "tests/core/cuda/device_arrays.h"
#include "tests/core/cuda/exact_sum_test_kernels.h"

namespace elastor::cuda {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

ExactSum HostSum(const std::vector<double>& addends) {
  ExactSum sum;
  for (const double addend : addends) sum.Add(addend);
  return sum;
}

uint64_t Bits(double value) { return std::isnan(value) ? ~0ull : std::bit_cast<uint64_t>(value); }

void ExpectEqual(const ExactSum& sum, const ExactSum& expected) {
  if (expected.ok()) {
    EXPECT_EQ(sum.ToWords(), expected.ToWords());
  } else {
    EXPECT_FALSE(sum.ok());
  }
  EXPECT_EQ(Bits(sum.Value()), Bits(expected.Value()));
}

// Lists of addends whose sums are hard to get right.
std::vector<std::vector<double>> HardSums() {
  const double tiny = std::numeric_limits<double>::denorm_min();
  const double largest = std::nextafter(0x1p96, 0);
  std::vector<std::vector<double>> sums = {
      {},
      {0.0},
      {-0.0},
      {1.0},
      {-1.0},
      {tiny},
      {0x1p-160},
      {-0x1p-160},
      {0x1.8p-160},              // truncated toward zero
      {-0x1.8p-160},             //
      {0x1.fffffffffffffp-161},  // to nothing
      {0x1p-160, 0x1p-161, 0x1p-161},
      {0x1.fffffffffffffp-109},  // reaches 2^-161
      {largest},
      {-largest},
      {largest, largest, largest},
      {largest, -largest, 0x1p-160},
      {-largest, largest, -0x1p-160},
      {1, 0x1p-53},             // tie, stays
      {1, 0x1p-53, 0x1p-160},   // just above
      {1, 0x1p-53, -0x1p-160},  // just below
      {1 + 0x1p-52, 0x1p-53},   // tie, goes up
      {-1, -0x1p-53},
      {-1, -0x1p-53, -0x1p-160},
      {-(1 + 0x1p-52), -0x1p-53},
      {0x1p53, 1, 0x1p-100},
      {1, -0x1p-160},
      {0x1p31, 0x1p32, 0x1p63, 0x1p64, -0x1p-31, -0x1p-32, -0x1p-33},
      {1e20, 1, -1e20},
      {2, -0x1p-54},  // rounds up to a power of two
      {kNaN},
      {kInfinity},
      {-kInfinity, 1},
      {0x1p96},
      {-0x1p96, 5},
      {std::numeric_limits<double>::max()},
  };
  // A leading bit at every place of a word, with a tie and what breaks it.
  for (int exponent = -160; exponent < 96; exponent += 5) {
    const double one = std::ldexp(1.0, exponent);
    sums.push_back({one, one * 0x1p-53});
    sums.push_back({-one, -one * 0x1p-53, -one * 0x1p-60});
    sums.push_back({one, -0x1p-160});
  }
  return sums;
}

// Sums of random length, signs and exponents, below the least bit too.
std::vector<std::vector<double>> RandomSums() {
  std::mt19937_64 generator(1);
  std::vector<std::vector<double>> sums(200);
  for (auto& sum : sums) {
    const int spread = 1 + generator() % 266;
    const int top = 95 - static_cast<int>(generator() % (267 - spread));
    sum.resize(1 + generator() % 40);
    for (double& addend : sum) {
      const double mantissa = std::bit_cast<double>(generator() >> 12 | 0x3ffull << 52);
      const double value = std::ldexp(mantissa, top - static_cast<int>(generator() % spread));
      addend = generator() % 2 == 0 ? value : -value;
    }
    // Half of them nearly cancel.
    if (generator() % 2 == 0) {
      const size_t size = sum.size();
      for (size_t i = 1; i < size; ++i) sum.push_back(-sum[i]);
    }
  }
  return sums;
}

TEST(DeviceExactSumTest, WordsAndValuesOfTheHost) {
  for (const auto& sums : {HardSums(), RandomSums()}) {
    for (const auto& addends : sums) {
      DeviceExactSum sum{};
      for (const double addend : addends) AddToExactWords(sum.words, addend);
      const ExactSum expected = HostSum(addends);
      ExpectEqual(ToExactSum(sum), expected);
      EXPECT_EQ(Bits(ExactSumValue(sum.words)), Bits(expected.Value()))
          << addends.size() << " addends, the first is " << (addends.empty() ? 0 : addends[0]);
    }
  }
}

TEST(DeviceExactSumTest, SumsAndValuesOfTheDevice) {
  Stream stream;
  for (const auto& sums : {HardSums(), RandomSums()}) {
    const auto count = static_cast<int64_t>(sums.size());
    const Buffer<DeviceExactSum> device_sums(&stream, count);
    ClearExactSums(stream, device_sums.data(), count);
    for (int64_t i = 0; i < count; ++i) {
      const Buffer<double> addends = Upload(stream, sums[i]);
      AddToExactSum(stream, addends.data(), addends.size(), device_sums.data() + i);
    }
    const Buffer<double> values(&stream, count);
    ExactSumValues(stream, device_sums.data(), count, values.data());
    const std::vector<DeviceExactSum> result = Download(stream, device_sums);
    const std::vector<double> result_values = Download(stream, values);
    for (int64_t i = 0; i < count; ++i) {
      const ExactSum expected = HostSum(sums[i]);
      ExpectEqual(ToExactSum(result[i]), expected);
      EXPECT_EQ(Bits(result_values[i]), Bits(expected.Value())) << i;
    }
  }
}

TEST(DeviceExactSumTest, ManyBlocksAndCalls) {
  Stream stream;
  std::mt19937_64 generator(2);
  std::normal_distribution<double> normal;
  std::vector<double> addends(100003);
  for (double& addend : addends) addend = std::exp(10 * normal(generator)) * normal(generator);
  const Buffer<double> device_addends = Upload(stream, addends);
  const Buffer<DeviceExactSum> sum(&stream, 1);
  for (const int64_t first : {0, 1, 31, 4096, 100002, 100003}) {
    ClearExactSums(stream, sum.data(), 1);
    AddToExactSum(stream, device_addends.data(), first, sum.data());
    AddToExactSum(stream, device_addends.data() + first, device_addends.size() - first, sum.data());
    ExpectEqual(ToExactSum(Download(stream, sum)[0]), HostSum(addends));
  }
}

// As an integer all-reduce of the words does.
TEST(DeviceExactSumTest, MergedByAddingWords) {
  for (const auto& sums : {HardSums(), RandomSums()}) {
    DeviceExactSum merged{};
    ExactSum expected;
    for (const auto& addends : sums) {
      if (!HostSum(addends).ok()) continue;
      DeviceExactSum sum{};
      for (const double addend : addends) {
        AddToExactWords(sum.words, addend);
        expected.Add(addend);
      }
      for (int i = 0; i < kExactSumWords; ++i) merged.words[i] += sum.words[i];
    }
    ExpectEqual(ToExactSum(merged), expected);
    DeviceExactSum bad{};
    AddToExactWords(bad.words, kNaN);
    for (int i = 0; i < kExactSumWords; ++i) merged.words[i] += bad.words[i];
    EXPECT_FALSE(ToExactSum(merged).ok());
  }
}

// 2^31 - 1 addends with all bits of a word set, of either sign: counters and carries hold them.
TEST(DeviceExactSumTest, AsManyAddendsAsFit) {
  for (const double sign : {1.0, -1.0}) {
    const double addend = sign * std::nextafter(0x1p64, 0);
    DeviceExactSum one{};
    AddToExactWords(one.words, addend);
    DeviceExactSum sum{};
    ExactSum expected;
    ExactSum power = HostSum({addend});
    for (int bit = 0; bit < 31; ++bit) {
      expected.Merge(power);
      power.Merge(ExactSum(power));
    }
    for (int i = 0; i < kExactSumWords; ++i) sum.words[i] = one.words[i] * 0x7fffffff;
    ExpectEqual(ToExactSum(sum), expected);
    EXPECT_EQ(Bits(ExactSumValue(sum.words)), Bits(expected.Value()));
  }
}

}  // namespace
}  // namespace elastor::cuda
