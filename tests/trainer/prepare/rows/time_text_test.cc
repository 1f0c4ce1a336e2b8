#include "trainer/prepare/rows/time_text.h"

#include <gtest/gtest.h>

#include <ctime>
#include <string>
#include <utility>

namespace elastor {
namespace {

// Every kind of day of a century and a half, against the C library.
TEST(TimeTextTest, TimesAsTheCLibraryHasThem) {
  for (int64_t seconds = -int64_t{70} * 365 * 86400; seconds < int64_t{80} * 365 * 86400;
       seconds += 86400 * 3 + 3607) {
    const std::time_t time = seconds;
    std::tm calendar;
    gmtime_r(&time, &calendar);
    EXPECT_EQ(HourOf(seconds), calendar.tm_hour);
    EXPECT_EQ(WeekdayOf(seconds), (calendar.tm_wday + 6) % 7);
    EXPECT_EQ(DayOf(seconds), calendar.tm_mday);
    EXPECT_EQ(MonthOf(seconds), calendar.tm_mon + 1);
    char text[32];
    int64_t parsed = 0;
    for (const auto& [format, form] : {std::pair(Field::YYYY_MM_DD_HH_MM_SS, "%Y-%m-%d %H:%M:%S"),
                                       std::pair(Field::ISO_8601, "%Y-%m-%dT%H:%M:%SZ"),
                                       std::pair(Field::YYYYMMDDHHMMSS, "%Y%m%d%H%M%S"),
                                       std::pair(Field::MM_DD_YYYY, "%m/%d/%Y %I:%M:%S %p"),
                                       std::pair(Field::DD_MM_YYYY, "%d.%m.%Y %H:%M:%S"),
                                       std::pair(Field::YYYY_MM_DD, "%Y/%m/%d %H:%M:%S")}) {
      std::strftime(text, sizeof text, form, &calendar);
      ASSERT_TRUE(ParseTime(text, format, &parsed)) << text;
      EXPECT_EQ(parsed, seconds) << text;
    }
    std::strftime(text, sizeof text, "%y%m%d%H", &calendar);
    if (calendar.tm_year < 69) continue;
    ASSERT_TRUE(ParseTime(text, Field::YYMMDDHH, &parsed)) << text;
    EXPECT_EQ(parsed, seconds - calendar.tm_min * 60 - calendar.tm_sec) << text;
  }
  constexpr int64_t kFirst = INT64_MIN, kLast = INT64_MAX;
  EXPECT_EQ(HourOf(kLast), 15);
  EXPECT_EQ(WeekdayOf(kLast), 6);  // 4 December 292277026596, a Sunday
  EXPECT_EQ(HourOf(kFirst), 8);
  EXPECT_EQ(WeekdayOf(kFirst), 6);
}

// -1: no time of the format.
int64_t Seconds(const std::string& text, Field::TimeFormat format) {
  int64_t seconds;
  return ParseTime(text, format, &seconds) ? seconds : -1;
}

TEST(TimeTextTest, ZonesAndFractions) {
  constexpr int64_t kFive = 1413867600;  // 2014-10-21 05:00:00
  for (const char* text :
       {"2014-10-21T05:00:00Z", "2014-10-21t05:00z", "2014-10-21 07:00:00+02:00",
        "2014-10-21 07:00:00.999 +0200", "2014-10-20T23:30:00,5-05:30", "2014-10-21 05:00:00 UTC",
        "2014-10-21T14:00:00+09", "2014-10-21 05:00:00.123456789 GMT"}) {
    EXPECT_EQ(Seconds(text, Field::ISO_8601), kFive) << text;
  }
  EXPECT_EQ(Seconds("2014-10-21", Field::ISO_8601), kFive - 5 * 3600);
  for (const char* text :
       {"2014-10-21T05:00:00", "2014-10-21T05:00:00.Z", "2014-10-21T05:00:00+2", "2014-10-21Z",
        "2014-10-21T05:00:00+24:00", "2014-10-21T05:00:00+02:60", "2014-10-21T05:00:00Z ", "",
        "2014-10-21T05:00:00+02:", "2014-02-30T05:00:00Z", "2014-10-21T25:00:00Z"}) {
    EXPECT_EQ(Seconds(text, Field::ISO_8601), -1) << text;
  }
  EXPECT_EQ(Seconds("2014-10-21 05:00:00.75", Field::YYYY_MM_DD_HH_MM_SS), kFive);
  EXPECT_EQ(Seconds("2014-10-21 05:00", Field::YYYY_MM_DD_HH_MM_SS), kFive);
  EXPECT_EQ(Seconds("2014-10-21T05:00:00Z", Field::YYYY_MM_DD_HH_MM_SS), -1);
}

TEST(TimeTextTest, DatesOfPeopleAndDigits) {
  constexpr int64_t kDay = 1413849600;  // 2014-10-21
  EXPECT_EQ(Seconds("10/21/2014", Field::MM_DD_YYYY), kDay);
  EXPECT_EQ(Seconds("10-21-14", Field::MM_DD_YYYY), kDay);
  EXPECT_EQ(Seconds("10/21/2014, 12:30 am", Field::MM_DD_YYYY), kDay + 1800);
  EXPECT_EQ(Seconds("10/21/2014 12:30PM", Field::MM_DD_YYYY), kDay + 12 * 3600 + 1800);
  EXPECT_EQ(Seconds("21.10.2014 5:07", Field::DD_MM_YYYY), kDay + 5 * 3600 + 420);
  EXPECT_EQ(Seconds("2014/10/21", Field::YYYY_MM_DD), kDay);
  EXPECT_EQ(Seconds("2014.10.21 5:07 pm", Field::YYYY_MM_DD), kDay + 17 * 3600 + 420);
  EXPECT_EQ(Seconds("1969/2/1", Field::YYYY_MM_DD), -28857600);
  for (const char* text :
       {"14/10/21", "2014/10-21", "2014/21/10", "2014/10/", "2014/10/21T5:00", "2014//10/21",
        "0014/10/21", "12014/10/21", "2014/10/211", "2014/2/30", ""}) {
    EXPECT_EQ(Seconds(text, Field::YYYY_MM_DD), -1) << text;
  }
  EXPECT_EQ(Seconds("1.2.69", Field::DD_MM_YYYY), -28857600);   // 1 February 1969
  EXPECT_EQ(Seconds("1.2.68", Field::DD_MM_YYYY), 3095280000);  // 2068
  EXPECT_EQ(Seconds("2014102105", Field::YYYYMMDDHHMMSS), kDay + 5 * 3600);
  EXPECT_EQ(Seconds("201410210507", Field::YYYYMMDDHHMMSS), kDay + 5 * 3600 + 420);
  for (const char* text :
       {"21/10/2014", "10/21.2014", "10/21/114", "10/21/014", "10/21/0014", "10/21/2014 13:00 PM",
        "10/21/2014 0:00 AM", "10/21/2014T5:00", "10/21/2014 5", "2/30/2014"}) {
    EXPECT_EQ(Seconds(text, Field::MM_DD_YYYY), -1) << text;
  }
  for (const char* text : {"2014102", "201410215", "20141021050", "2014102124", "20141321", ""}) {
    EXPECT_EQ(Seconds(text, Field::YYYYMMDDHHMMSS), -1) << text;
  }
}

TEST(TimeTextTest, UnitsOfASecondGoDown) {
  EXPECT_EQ(Seconds("1413867600999", Field::UNIX_MILLISECONDS), 1413867600);
  EXPECT_EQ(Seconds("1413867600999999", Field::UNIX_MICROSECONDS), 1413867600);
  EXPECT_EQ(Seconds("1413867600999999999", Field::UNIX_NANOSECONDS), 1413867600);
  EXPECT_EQ(Seconds("1413867600.0", Field::UNIX_SECONDS), 1413867600);
  EXPECT_EQ(Seconds("-86400001", Field::UNIX_MILLISECONDS), -86401);
  EXPECT_EQ(Seconds("-86400.25", Field::UNIX_SECONDS), -86401);
  EXPECT_EQ(Seconds("-86400.0", Field::UNIX_SECONDS), -86400);
  EXPECT_EQ(Seconds("0", Field::UNIX_MILLISECONDS), 0);
  for (const char* text : {"1.", ".5", "1.5e9", "1.-5", "", "x", "1413867600000"}) {
    EXPECT_EQ(Seconds(text, Field::UNIX_SECONDS), -1) << text;
  }
}

// The commonest mistakes.
TEST(TimeTextTest, ARefusedTimeTellsWhichFormatReadsIt) {
  const std::string at = " reads it as 2014-10-21 05:00:00";
  EXPECT_EQ(OtherTimeFormat("1413867600000", Field::UNIX_SECONDS),
            "; time_format: UNIX_MILLISECONDS" + at);
  EXPECT_EQ(OtherTimeFormat("1413867600", Field::UNIX_MILLISECONDS),
            "; time_format: UNIX_SECONDS" + at);
  EXPECT_EQ(Seconds("1413867600", Field::UNIX_MILLISECONDS), -1);
  EXPECT_EQ(Seconds("1413867600", Field::UNIX_NANOSECONDS), -1);
  EXPECT_EQ(Seconds("1413867600000", Field::UNIX_NANOSECONDS), -1);
  EXPECT_EQ(OtherTimeFormat("2014-10-21T05:00:00", Field::ISO_8601),
            "; time_format: YYYY_MM_DD_HH_MM_SS" + at);
  EXPECT_EQ(OtherTimeFormat("2014-10-21T05:00:00Z", Field::YYYY_MM_DD_HH_MM_SS),
            "; time_format: ISO_8601" + at);
  EXPECT_EQ(OtherTimeFormat("21.10.2014 05:00", Field::MM_DD_YYYY),
            "; time_format: DD_MM_YYYY" + at);
  EXPECT_EQ(OtherTimeFormat("2014/10/21 05:00", Field::YYYY_MM_DD_HH_MM_SS),
            "; time_format: YYYY_MM_DD" + at);
  EXPECT_EQ(OtherTimeFormat("2014-10-21 05:00", Field::YYYY_MM_DD),
            "; time_format: YYYY_MM_DD_HH_MM_SS" + at);
  EXPECT_EQ(OtherTimeFormat("soon", Field::UNIX_SECONDS), "");
}

}  // namespace
}  // namespace elastor
