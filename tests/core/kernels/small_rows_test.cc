#include "core/kernels/small_rows.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "core/base/floating_point.h"
#include "core/base/random.h"
#include "gtest/gtest.h"

namespace elastor {
namespace {

// The definition, written another way.
struct Expected {
  float scale, offset;
  std::vector<int> codes;
  std::vector<float> weights;
};
Expected ExpectedOf(int levels, std::vector<float> row) {
  for (float& weight : row) {
    if (std::abs(weight) < 0x1p-100) weight = 0;
    weight += 0.0f;  // no -0
  }
  Expected e;
  e.offset = *std::ranges::min_element(row);
  const double range = (static_cast<double>(*std::ranges::max_element(row)) - e.offset) / levels;
  e.scale = range < 0x1p-100 ? 0 : static_cast<float>(range);
  for (const float weight : row) {
    int code = 0;
    if (e.scale > 0) {
      const double place = (static_cast<double>(weight) - e.offset) / e.scale;
      code = static_cast<int>(place);
      const double rest = place - code;
      if (rest > 0.5 || (rest == 0.5 && code % 2 == 1)) ++code;
    }
    e.codes.push_back(code);
    e.weights.push_back(std::fma(static_cast<float>(code), e.scale, e.offset));
  }
  return e;
}

void ExpectRow(RowFormat format, const std::vector<float>& row) {
  const auto width = static_cast<int64_t>(row.size());
  const int bits = format == RowFormat::kInt8 ? 8 : 4;
  const Expected e = ExpectedOf((1 << bits) - 1, row);
  // No byte beyond the words is written or read.
  const int64_t words = RowWords(format, width);
  EXPECT_EQ(words, 2 + (width * bits + 31) / 32);
  std::vector<float> small(words);
  ASSERT_TRUE(EncodeRow(format, row.data(), width, small.data()));
  EXPECT_EQ(std::bit_cast<uint32_t>(small[0]), std::bit_cast<uint32_t>(e.scale));
  EXPECT_EQ(std::bit_cast<uint32_t>(small[1]), std::bit_cast<uint32_t>(e.offset));
  std::vector<uint8_t> codes((words - 2) * 4, 0);
  for (int64_t i = 0; i < width; ++i) {
    codes[i * bits / 8] |= static_cast<uint8_t>(e.codes[i] << (i * bits % 8));
  }
  EXPECT_EQ(std::memcmp(small.data() + 2, codes.data(), codes.size()), 0);
  std::vector<float> weights(DecodedRoom(width));
  DecodeRow(format, small.data(), width, weights.data());
  for (int64_t i = 0; i < width; ++i) {
    ASSERT_EQ(std::bit_cast<uint32_t>(weights[i]), std::bit_cast<uint32_t>(e.weights[i]))
        << RowFormatName(format) << " width " << width << " weight " << i;
  }
}

class SmallRowsTest : public testing::TestWithParam<RowFormat> {
 protected:
  SmallRowsTest() { FloatingPoint::Set(FloatingPoint::kCanonical); }
  ~SmallRowsTest() override { FloatingPoint::Set(before_); }

 private:
  const uint32_t before_ = FloatingPoint::Get();
};

TEST_P(SmallRowsTest, EveryWidth) {
  for (int64_t width = 1; width <= 70; ++width) {
    for (const double stddev : {1e-4, 0.3, 1e-28, 1e36}) {
      std::vector<float> row(width);
      FillNormal(7, static_cast<uint64_t>(width), stddev, width, row.data());
      ExpectRow(GetParam(), row);
    }
  }
}

TEST_P(SmallRowsTest, Extremes) {
  const float denormal = std::numeric_limits<float>::denorm_min();
  const float most = std::nextafter(0x1p127f, 0.0f);
  const std::vector<float> rows[] = {{0},
                                     {-0.0f, 0, -0.0f},
                                     {-0.0f},
                                     {3.25f, 3.25f, 3.25f},
                                     {-1e-30f, 1e-30f},
                                     {denormal, -denormal, 0x1p-126f},
                                     {0x1p-100f, 0},
                                     {most, -most, 0, 1},
                                     {most, std::nextafter(most, 0.0f)},
                                     {1, std::nextafter(1.0f, 2.0f)},
                                     {1e30f, 1e30f, -1e-30f},
                                     // Halves of a step: ties go to even codes.
                                     {0, 255, 0.5f, 1.5f, 2.5f, 253.5f, 254.5f},
                                     {0, 15, 0.5f, 1.5f, 2.5f, 13.5f, 14.5f}};
  for (const std::vector<float>& row : rows) ExpectRow(GetParam(), row);
}

TEST_P(SmallRowsTest, WhatItCannotHold) {
  const float infinity = std::numeric_limits<float>::infinity();
  float words[4];
  for (const float wrong :
       {infinity, -infinity, std::nanf(""), -std::nanf(""), 0x1p127f, -0x1p127f}) {
    for (int64_t place = 0; place < 3; ++place) {
      float row[] = {1, 2, 3};
      row[place] = wrong;
      EXPECT_FALSE(EncodeRow(GetParam(), row, 3, words)) << wrong;
    }
  }
}

// A row that was decoded is stored with the same codes.
TEST_P(SmallRowsTest, DecodedRowsKeepTheirCodes) {
  for (uint64_t key = 0; key < 500; ++key) {
    float row[24], decoded[24], first[8], second[8];
    FillNormal(9, key, 0.1, 24, row);
    ASSERT_TRUE(EncodeRow(GetParam(), row, 24, first));
    DecodeRow(GetParam(), first, 24, decoded);
    ASSERT_TRUE(EncodeRow(GetParam(), decoded, 24, second));
    ASSERT_EQ(std::memcmp(first + 1, second + 1, (RowWords(GetParam(), 24) - 1) * sizeof(float)),
              0);
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, SmallRowsTest,
                         testing::Values(RowFormat::kInt8, RowFormat::kInt4),
                         [](const auto& format) {
                           return std::string(RowFormatName(format.param));
                         });

}  // namespace
}  // namespace elastor
