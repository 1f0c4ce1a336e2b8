#include "trainer/prepare/guess/nulls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/trainer/prepare/guess/column_of.h"

namespace elastor {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::StartsWith;

TEST(NullsTest, NamibiaIsACountry) {
  const Nulls nulls =
      FindNulls({ColumnOf("country", {"NA", "DE", "FR", "US"}), ColumnOf("price", {"", "12.5"})});
  EXPECT_THAT(nulls.texts, IsEmpty());
  EXPECT_THAT(nulls.doubts, ElementsAre("", ""));
}

TEST(NullsTest, ACountryWithoutEmptyValuesBesideItIsDoubted) {
  const Nulls nulls = FindNulls({ColumnOf("country", {"NA", "DE", "FR", "US"})});
  EXPECT_THAT(nulls.texts, IsEmpty());
  EXPECT_THAT(nulls.doubts, ElementsAre(StartsWith("'NA' is taken for a value")));
}

TEST(NullsTest, ANumberMakesNaMissingAndCastsDoubtOnTexts) {
  const Nulls nulls =
      FindNulls({ColumnOf("country", {"NA", "DE", "FR", "US"}), ColumnOf("price", {"NA", "12.5"})});
  EXPECT_THAT(nulls.texts, ElementsAre("NA"));
  EXPECT_THAT(nulls.doubts, ElementsAre(StartsWith("'NA' means missing, as in 'price'"), ""));
}

TEST(NullsTest, NoneMayBeAValue) {
  const Nulls nulls = FindNulls({ColumnOf("weather", {"None", "rain", "snow"})});
  EXPECT_THAT(nulls.texts, IsEmpty());
  EXPECT_THAT(nulls.doubts, ElementsAre(StartsWith("'None' is taken for a value")));
}

TEST(NullsTest, WhatIsNeverAValueIsMissingEverywhere) {
  const Nulls nulls = FindNulls({ColumnOf("a", {"\\N", "x", "NULL", "?"})});
  EXPECT_THAT(nulls.texts, ElementsAre("?", "NULL", "\\N"));
  EXPECT_THAT(nulls.doubts, ElementsAre(""));
}

TEST(NullsTest, SeveralColumnsAgree) {
  const Nulls nulls = FindNulls({ColumnOf("a", {"None", "rain"}), ColumnOf("b", {"None", "red"}),
                                 ColumnOf("c", {"None", "Paris"})});
  EXPECT_THAT(nulls.texts, ElementsAre("None"));
  EXPECT_THAT(nulls.doubts, ElementsAre("", "", ""));
}

TEST(NullsTest, ALabelHasTwoValues) {
  EXPECT_THAT(FindNulls({ColumnOf("click", {"y", "n", "NA"})}).texts, ElementsAre("NA"));
  EXPECT_THAT(FindNulls({ColumnOf("sign", {"+", "-"})}).texts, IsEmpty());
}

}  // namespace
}  // namespace elastor
