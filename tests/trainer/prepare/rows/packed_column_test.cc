#include "trainer/prepare/rows/packed_column.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace elastor {
namespace {

// Packs a column, checks that every value comes back bit by bit, and returns the bytes a value.
int NumericRoundTrip(const std::vector<double>& values) {
  std::string bytes = "x";  // columns need not be aligned
  PackedColumn::AppendNumeric(values.data(), static_cast<int64_t>(values.size()), 1, &bytes);
  const size_t size = bytes.size();
  PackedColumn::Pad(&bytes);
  const char* end = nullptr;
  const PackedColumn column(bytes.data() + 1, static_cast<int64_t>(values.size()), &end);
  EXPECT_EQ(end, bytes.data() + size);
  for (size_t i = 0; i < values.size(); ++i) {
    const double read = column.Numeric(static_cast<int64_t>(i));
    if (std::isnan(values[i])) {
      EXPECT_TRUE(std::isnan(read));
    } else {
      EXPECT_EQ(std::bit_cast<uint64_t>(read), std::bit_cast<uint64_t>(values[i]));
    }
  }
  return column.width();
}

TEST(PackedColumnTest, NumericInAsFewBytesAsTheyNeed) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(NumericRoundTrip({}), 1);
  EXPECT_EQ(NumericRoundTrip({nan, nan}), 1);
  EXPECT_EQ(NumericRoundTrip({5, nan, 259}), 1);
  EXPECT_EQ(NumericRoundTrip({5, nan, 260}), 2);
  EXPECT_EQ(NumericRoundTrip({-3, 65531}), 2);
  EXPECT_EQ(NumericRoundTrip({-3, 65532}), 3);
  EXPECT_EQ(NumericRoundTrip({-(1 << 30), 1 << 30}), 4);
  EXPECT_EQ(NumericRoundTrip({1, 0x1p40}), 4);  // exact as floats
  EXPECT_EQ(NumericRoundTrip({0.5, nan, -1e9}), 4);
  EXPECT_EQ(NumericRoundTrip({-0.0, 1}), 4);
  EXPECT_EQ(NumericRoundTrip({0.1, 1}), 8);
  EXPECT_EQ(NumericRoundTrip({1 << 30, 0x1p53 - 1}), 8);
}

TEST(PackedColumnTest, IntegersOfEveryWidth) {
  for (int bits = 0; bits <= 64; ++bits) {
    const uint64_t span = bits == 0 ? 0 : ~uint64_t{0} >> (64 - bits);
    const uint64_t least = ~uint64_t{0} - span;
    const std::vector<uint64_t> values = {least, 7, least + span, 7, least + span / 3, 7};
    std::string bytes;
    PackedColumn::AppendIntegers(values.data(), 3, 2, &bytes);  // every other one
    PackedColumn::Pad(&bytes);
    const char* end = nullptr;
    const PackedColumn column(bytes.data(), 3, &end);
    EXPECT_EQ(column.width(), (bits + 7) / 8);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(column.Integer(i), values[2 * i]) << bits;
  }
}

}  // namespace
}  // namespace elastor
