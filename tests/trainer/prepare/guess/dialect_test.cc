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

// Lines cut at either are alike: numbers with decimal commas decide.
TEST(DialectTest, OfDelimitersThatDoAlikeTheOneBetweenNumbersIsTaken) {
  const auto commas = FindDialect({"12,5;3,7", "1,25;4,5", "0,5;2,0"}, "f");
  ASSERT_TRUE(commas.ok()) << commas.status().message();
  EXPECT_EQ(commas->schema.delimiter(), ";");
  const auto blanks = FindDialect({"a b c d", "0 12,5 3,7 1", "1 1,25 4,5 0", "1 1,25 4,0 0"}, "f");
  ASSERT_TRUE(blanks.ok()) << blanks.status().message();
  EXPECT_EQ(blanks->schema.delimiter(), " ");
  const auto bags = FindDialect({"0,a|b,c|d,e|f", "1,a|c,c|d,e|g"}, "f");
  ASSERT_TRUE(bags.ok()) << bags.status().message();
  EXPECT_EQ(bags->schema.delimiter(), ",");
}

TEST(DialectTest, AQuotedValueMayHoldLineEnds) {
  const Lines lines = {"a,b", "\"x", "y\",1", "\"\"\"z\"\"", "\",2", "u,3", "\"v\",4"};
  const auto dialect = FindDialect(lines, "f");
  ASSERT_TRUE(dialect.ok()) << dialect.status().message();
  EXPECT_TRUE(dialect->schema.quoted());
  EXPECT_EQ(RecordsOf(dialect->schema, lines),
            (Lines{"a,b", "\"x\ny\",1", "\"\"\"z\"\"\n\",2", "u,3", "\"v\",4"}));
  EXPECT_EQ(SplitLine(dialect->schema, "\"x\ny\",1"), (Lines{"x\ny", "1"}));
  // A quote that nothing closes joins nothing.
  EXPECT_EQ(RecordsOf(dialect->schema, {"\"a", "b,1"}), (Lines{"\"a", "b,1"}));
  Schema plain = dialect->schema;
  plain.set_quoted(false);
  EXPECT_EQ(RecordsOf(plain, lines), lines);
}

TEST(DialectTest, RefusesLinesWithoutDelimiter) {
  const auto dialect = FindDialect({"word", "other"}, "in.txt");
  ASSERT_FALSE(dialect.ok());
  EXPECT_TRUE(dialect.status().message().starts_with("in.txt: no delimiter makes"));
  EXPECT_TRUE(dialect.status().message().ends_with("; no line has one of them"));
  const auto blank = FindDialect({"a,b", "", "1,2", ""}, "in.txt");
  ASSERT_FALSE(blank.ok());
  EXPECT_TRUE(blank.status().message().ends_with("; 2 of the first 4 lines are blank"));
}

}  // namespace
}  // namespace elastor
