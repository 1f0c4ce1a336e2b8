#include "trainer/prepare/rows/value_text.h"

#include <gtest/gtest.h>

#include <cmath>
#include <ctime>
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

// Every kind of day of a century and a half, against the C library.
TEST(ValueTextTest, TimesAsTheCLibraryHasThem) {
  for (int64_t seconds = -int64_t{70} * 365 * 86400; seconds < int64_t{80} * 365 * 86400;
       seconds += 86400 * 3 + 3607) {
    const std::time_t time = seconds;
    std::tm calendar;
    gmtime_r(&time, &calendar);
    EXPECT_EQ(HourOf(seconds), calendar.tm_hour);
    EXPECT_EQ(WeekdayOf(seconds), (calendar.tm_wday + 6) % 7);
    char text[32];
    std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &calendar);
    int64_t parsed = 0;
    ASSERT_TRUE(ParseTime(text, Field::YYYY_MM_DD_HH_MM_SS, &parsed)) << text;
    EXPECT_EQ(parsed, seconds) << text;
    std::strftime(text, sizeof text, "%y%m%d%H", &calendar);
    if (calendar.tm_year < 100) continue;
    ASSERT_TRUE(ParseTime(text, Field::YYMMDDHH, &parsed)) << text;
    EXPECT_EQ(parsed, seconds - calendar.tm_min * 60 - calendar.tm_sec) << text;
  }
  constexpr int64_t kFirst = INT64_MIN, kLast = INT64_MAX;
  EXPECT_EQ(HourOf(kLast), 15);
  EXPECT_EQ(WeekdayOf(kLast), 6);  // 4 December 292277026596, a Sunday
  EXPECT_EQ(HourOf(kFirst), 8);
  EXPECT_EQ(WeekdayOf(kFirst), 6);
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
