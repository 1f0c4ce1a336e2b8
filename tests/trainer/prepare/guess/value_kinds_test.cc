#include "trainer/prepare/guess/value_kinds.h"

#include <gtest/gtest.h>

namespace elastor {
namespace {

TEST(ValueKindsTest, NumbersAsPeopleWriteThem) {
  for (const char* text : {"12,50",
                           "1,234.50",
                           "1.234,50",
                           "1,234,567",
                           "12.5%",
                           "$3.20",
                           "-$3",
                           "(7.5)",
                           " 3.2 ",
                           "'12'",
                           "$+4.5",
                           "1_000",
                           "inf",
                           "-Infinity",
                           "5 EUR",
                           "\xe2\x82\xac"
                           "9,99",
                           "1 234 567,8",
                           "85'030.28",
                           "1 234.5",
                           "1\u202f234.5"}) {
    EXPECT_TRUE(IsWrittenNumber(text)) << text;
  }
  for (const char* text : {"", "12", "-1.5e3", "+4.5", "1,2,3", "12,", "1.2.3", "3 pieces", "$",
                           "%", "()", "1,23,456", "infant", "A-1"}) {
    EXPECT_FALSE(IsWrittenNumber(text)) << text;
  }
}

TEST(ValueKindsTest, UnitsAroundNumbers) {
  EXPECT_EQ(UnitOf("23.2 kg"), "0kg");
  EXPECT_EQ(UnitOf("1,582 CC"), "0CC");
  EXPECT_EQ(UnitOf("66.7K"), "0K");
  EXPECT_EQ(UnitOf("597-"), "0-");
  EXPECT_EQ(UnitOf("~50"), "~0");
  EXPECT_EQ(UnitOf("<= 5 min"), "<=0min");
  EXPECT_EQ(UnitOf("\u22127.05"), "\u22120");
  for (const char* text :
       {"12", "-1.5", "A12", "#12", "10.0.0.6", "18-24", "a", "~", "12 High Street", "PT46M35S"}) {
    EXPECT_EQ(UnitOf(text), "") << text;
  }
}

TEST(ValueKindsTest, TimesAsPeopleWriteThem) {
  for (const char* text :
       {"2021-03-01T05:15:00Z", "21.10.2014", "10/21/14", "10/21/2014 5:00 PM", "2014/10/21",
        "21 Oct 2014", "21/Oct/2014:05:00:00 +0000", "Oct 21, 2014", "Tue Oct 21 2014", "5:00",
        "05:00:11", "2021-03-01T05:15:00+02:00"}) {
    EXPECT_TRUE(IsWrittenTime(text)) << text;
  }
  // The first four are in the usual form.
  for (const char* text : {"2021-03-01 05:15:00.123", "2021-03-01 05:15", "2021-03-01 05:15:00",
                           "2021-03-01", "192.168.1.1", "555-123-4567", "99.99.2014", "18-24",
                           "1.2.3", "mar 5", "25:00", "3:1", "march"}) {
    EXPECT_FALSE(IsWrittenTime(text)) << text;
  }
}

TEST(ValueKindsTest, TextsThatMeanMissing) {
  for (const char* text : {"NA", "null", "\\N", "NaT", "<NA>", "?", "-", " ", "  "}) {
    EXPECT_TRUE(LooksMissing(text)) << text;
  }
  EXPECT_FALSE(LooksMissing("no"));
  EXPECT_TRUE(MayBeValue("None"));
  EXPECT_TRUE(MayBeValue("NA"));
  EXPECT_FALSE(MayBeValue("\\N"));
  EXPECT_TRUE(MayBeValue("Null"));  // a surname
  EXPECT_FALSE(MayBeValue("NULL"));
}

TEST(ValueKindsTest, DigitsThatAreDates) {
  EXPECT_TRUE(IsShortDate("930101"));
  for (const char* text : {"14102105", "930231", "2014", "x30101"}) {
    EXPECT_FALSE(IsShortDate(text)) << text;
  }
}

}  // namespace
}  // namespace elastor
