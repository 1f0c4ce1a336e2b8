#include "trainer/prepare/rows/value_text.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

namespace elastor {
namespace {

TEST(ValueTextTest, Log2Transform) {
  EXPECT_EQ(Log2Transform(-5), -5);
  EXPECT_EQ(Log2Transform(2), 2);
  EXPECT_EQ(Log2Transform(2.5), 0);
  EXPECT_EQ(Log2Transform(3), 1);        // ln(3)^2 = 1.207
  EXPECT_EQ(Log2Transform(8), 4);        // 4.324
  EXPECT_EQ(Log2Transform(23255), 101);  // 101.08
  EXPECT_TRUE(std::isnan(Log2Transform(NAN)));
  for (int x = 3; x < 20000; ++x) {
    const double log = std::log(static_cast<double>(x));
    ASSERT_EQ(Log2Transform(x), std::floor(log * log)) << x;
    ASSERT_EQ(Log2Transform(x + 0.5), std::floor(std::pow(std::log(x + 0.5), 2))) << x;
  }
}

TEST(ValueTextTest, ShownIsShortAndPrintable) {
  EXPECT_EQ(Shown("a\tb"), "'a?b'");
  EXPECT_EQ(Shown(std::string(41, 'x')), "'" + std::string(40, 'x') + "...'");
}

TEST(ValueTextTest, ShownIsWholeCharactersAndNamesOtherBytes) {
  EXPECT_EQ(Shown("a\tb\x7f"), "'a?b?'");
  EXPECT_EQ(Shown("caf\xe9 \xc3\xa9"), "'caf\\xe9 \xc3\xa9'");
  EXPECT_EQ(Shown("a\u202eb\xc2\x9b"), "'a\\u202eb\\u009b'");
  EXPECT_EQ(Shown(std::string(39, 'a') + "\xc3\xa9"), "'" + std::string(39, 'a') + "\xc3\xa9'");
  EXPECT_EQ(Shown(std::string(41, 'a')), "'" + std::string(40, 'a') + "...'");
}

}  // namespace
}  // namespace elastor
