#include "trainer/prepare/guess/dialect.h"

#include <gtest/gtest.h>

namespace elastor {
namespace {

using Lines = std::vector<std::string>;

TEST(DialectTest, TakesTheDelimiterThatMakesMostLinesAlike) {
  const auto dialect = FindDialect({"a,b;c;d", "a;b;c", "e,f,g;h;i"}, "f");
  ASSERT_TRUE(dialect.ok()) << dialect.status().message();
  EXPECT_EQ(dialect->schema.delimiter(), ";");
  EXPECT_EQ(dialect->columns, 3u);
  EXPECT_FALSE(dialect->schema.quoted());
}

TEST(DialectTest, ASpaceAfterEveryCommaIsPartOfTheDelimiter) {
  const auto dialect = FindDialect({"1, a b, 2", "2, c d, 3"}, "f");
  ASSERT_TRUE(dialect.ok()) << dialect.status().message();
  EXPECT_EQ(dialect->schema.delimiter(), ", ");
  const auto uneven = FindDialect({"1, a b, 2", "2,c d, 3"}, "f");
  ASSERT_TRUE(uneven.ok()) << uneven.status().message();
  EXPECT_EQ(uneven->schema.delimiter(), ",");
}

TEST(DialectTest, QuotesCountWhereTheyStandAroundValues) {
  const auto quoted = FindDialect({"\"a, b\",1", "\"c\",2", "d,3"}, "f");
  ASSERT_TRUE(quoted.ok()) << quoted.status().message();
  EXPECT_TRUE(quoted->schema.quoted());
  EXPECT_EQ(SplitLine(quoted->schema, "\"a, b\",1"), (Lines{"a, b", "1"}));
  const auto inches = FindDialect({"5\" pipe,1", "6\" pipe,2"}, "f");
  ASSERT_TRUE(inches.ok()) << inches.status().message();
  EXPECT_FALSE(inches->schema.quoted());
}

TEST(DialectTest, SkipsWhatStandsBeforeTheRows) {
  Lines lines = {"# made by a program", "#"};
  for (int i = 0; i < 30; ++i) lines.push_back("1|2|3");
  const auto dialect = FindDialect(lines, "f");
  ASSERT_TRUE(dialect.ok()) << dialect.status().message();
  EXPECT_EQ(dialect->schema.skip_lines(), 2);
}

TEST(DialectTest, RefusesLinesWithoutDelimiter) {
  const auto dialect = FindDialect({"word", "other"}, "in.txt");
  ASSERT_FALSE(dialect.ok());
  EXPECT_TRUE(dialect.status().message().starts_with("in.txt: no delimiter makes"));
}

}  // namespace
}  // namespace elastor
