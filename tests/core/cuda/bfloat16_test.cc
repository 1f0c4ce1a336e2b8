#include "core/cuda/bfloat16.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/cuda/bfloat16_rounding.h"
#include "core/cuda/runtime.h"
#include "tests/core/cuda/device_arrays.h"

namespace elastor::cuda {
namespace {

float Rounded(float value) { return static_cast<float>(BFloat16(value)); }

BFloat16 OfBits(uint16_t bits) {
  BFloat16 value;
  value.bits = bits;
  return value;
}

TEST(BFloat16Test, EveryValueStaysItself) {
  for (int bits = 0; bits < 1 << 16; ++bits) {
    const float value = static_cast<float>(OfBits(static_cast<uint16_t>(bits)));
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(Rounded(value))) << bits;
    } else {
      EXPECT_EQ(BFloat16(value).bits, bits);
    }
  }
}

TEST(BFloat16Test, NearestWithTiesToEven) {
  // Seven bits of mantissa: neighbours of 1 are 2^-7 apart above it.
  EXPECT_EQ(Rounded(1 + 0x1p-8f), 1);
  EXPECT_EQ(Rounded(1 + 0x1p-8f + 0x1p-23f), 1 + 0x1p-7f);
  EXPECT_EQ(Rounded(1 + 0x3p-8f), 1 + 0x1p-6f);
  EXPECT_EQ(Rounded(1 + 0x3p-8f - 0x1p-23f), 1 + 0x1p-7f);
  EXPECT_EQ(Rounded(-1 - 0x1p-8f), -1);
  EXPECT_EQ(Rounded(2 - 0x1p-23f), 2);
}

TEST(BFloat16Test, Extremes) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(Rounded(std::numeric_limits<float>::max()), kInfinity);
  EXPECT_EQ(Rounded(0x1.fep127f), 0x1.fep127f);  // the largest
  EXPECT_EQ(Rounded(kInfinity), kInfinity);
  EXPECT_EQ(Rounded(-kInfinity), -kInfinity);
  // A payload in the lower half alone must not become an infinity.
  EXPECT_TRUE(std::isnan(Rounded(std::bit_cast<float>(0x7f800001u))));
  EXPECT_EQ(BFloat16(-0.0f).bits, 0x8000);
}

TEST(BFloat16Test, RoundedOnTheDevice) {
  Stream stream;
  std::vector<float> values;
  // Every exponent and sign with lower halves around the ties.
  for (uint32_t high = 0; high < 1 << 16; high += 37) {
    for (const uint32_t low : {0x0000u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu}) {
      values.push_back(std::bit_cast<float>(high << 16 | low));
    }
  }
  const Buffer<float> device_values = Upload(stream, values);
  const Buffer<BFloat16> rounded(&stream, device_values.size());
  RoundToBFloat16(stream, device_values.data(), device_values.size(), rounded.data());
  const std::vector<BFloat16> result = Download(stream, rounded);
  for (size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(result[i].bits, BFloat16(values[i]).bits) << std::bit_cast<uint32_t>(values[i]);
  }
}

}  // namespace
}  // namespace elastor::cuda
