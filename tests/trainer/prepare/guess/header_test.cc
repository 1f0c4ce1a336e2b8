#include "trainer/prepare/guess/header.h"

#include <gtest/gtest.h>

namespace elastor {
namespace {

using Texts = std::vector<std::string>;

Header Find(const Texts& lines, size_t columns = 2, size_t skipped = 0) {
  Dialect dialect;
  dialect.schema.set_delimiter(",");
  dialect.schema.set_skip_lines(static_cast<int64_t>(skipped));
  dialect.columns = columns;
  dialect.skipped = skipped;
  const auto header = FindHeader(dialect, lines, "f");
  EXPECT_TRUE(header.ok()) << header.status().message();
  return header.ok() ? *header : Header();
}

bool HasHeader(const Texts& lines, size_t columns = 2, size_t skipped = 0) {
  const Header header = Find(lines, columns, skipped);
  EXPECT_EQ(header.first_row, skipped + (header.named ? 1 : 0));
  EXPECT_EQ(header.names.size(), columns);
  return header.schema.header();
}

TEST(HeaderTest, NamesAreNoNumbersAndEachIsThereOnce) {
  EXPECT_TRUE(HasHeader({"a,b", "1,2"}));
  EXPECT_FALSE(HasHeader({"a,1", "b,2"}));
  EXPECT_FALSE(HasHeader({"a,a", "b,c"}));
}

TEST(HeaderTest, NoRowHasANameInItsColumn) {
  EXPECT_FALSE(HasHeader({"a,b", "c,b"}));
  EXPECT_TRUE(HasHeader({"a,b", "b,a"}));
  // But for names that stand over numbers.
  EXPECT_TRUE(HasHeader({"age,y", "31,n", "25,y"}));
}

TEST(HeaderTest, TheFirstNameMayBeEmpty) {
  const Header header = Find({",b", "1,2"});
  EXPECT_TRUE(header.schema.header());
  EXPECT_EQ(header.names, (Texts{"", "b"}));
}

TEST(HeaderTest, NamesMayBeTheNumbersOfColumnsOrYears) {
  EXPECT_TRUE(HasHeader({"0,1,2,3", "1,0.5,a,7", "0,0.25,b,1"}, 4));
  EXPECT_TRUE(HasHeader({",0,1,2", "0,1,0.5,a", "1,0,0.25,b"}, 4));
  EXPECT_TRUE(HasHeader({"user,2019,2020", "1,31,4", "2,17,5"}, 3));
  EXPECT_FALSE(HasHeader({"5,1,2,3", "1,0.5,4,7", "0,0.25,2,1"}, 4));
}

TEST(HeaderTest, NamesThatNoSchemaCanHaveAreRepairedAndFieldsGoByPlace) {
  const Header twice = Find({"a,b,a", "1,2,3", "4,5,6"}, 3);
  EXPECT_FALSE(twice.schema.header());
  EXPECT_EQ(twice.schema.skip_lines(), 1);
  EXPECT_EQ(twice.first_row, 1u);
  EXPECT_EQ(twice.names, (Texts{"a", "b", "a_2"}));
  EXPECT_EQ(twice.fault, "'a' names two columns");
  const Header none = Find({"a,", "1,2"});
  EXPECT_EQ(none.names, (Texts{"a", "c2"}));
  EXPECT_EQ(none.fault, "column 2 is named ''");
  EXPECT_TRUE(none.named);
}

TEST(HeaderTest, ShortHeadersOfRNameNoRowNames) {
  const Header header = Find({"x,y", "1,5,0", "2,7,1"}, 3, 1);
  EXPECT_TRUE(header.named);
  EXPECT_EQ(header.first_row, 1u);
  EXPECT_EQ(header.names, (Texts{"c1", "x", "y"}));
  const Header trailing = Find({"x,y", "5,0,", "7,1,"}, 3, 1);
  EXPECT_EQ(trailing.names, (Texts{"x", "y", "c3"}));
}

// A name of a row stands once: here values have an unquoted comma.
TEST(HeaderTest, ShortHeadersOverValuesThatRepeatAreRefused) {
  Dialect dialect;
  dialect.schema.set_delimiter(",");
  dialect.columns = 3;
  dialect.skipped = 1;
  const auto header = FindHeader(dialect, {"click,city", "0,Paris, FR", "0,Rome, IT"}, "f");
  EXPECT_EQ(
      header.status().message(),
      "f: the header has 2 names for 3 columns, and the first column repeats values; expected a "
      "name for each column, and quotes around values that hold ','");
}

TEST(HeaderTest, HeadersWithMoreNamesThanColumnsNameNone) {
  const Header header = Find({"x,y,z", "1,5", "2,7"}, 2, 1);
  EXPECT_FALSE(header.named);
  EXPECT_EQ(header.names, (Texts{"c1", "c2"}));
  EXPECT_EQ(header.fault, "it has 3 names for 2 columns");
  const Header trailing = Find({"x,y,", "1,5", "2,7"}, 2, 1);
  EXPECT_TRUE(trailing.named);
  EXPECT_EQ(trailing.names, (Texts{"x", "y"}));
  EXPECT_EQ(trailing.fault, "it has a delimiter behind the last name");
}

TEST(HeaderTest, NamesThatSteerATerminalAreRepaired) {
  for (const std::string name : {"a\x1b[31m", "a\xc2\x9b", "a\u202e", "a\tb"}) {
    EXPECT_EQ(Find({name + ",b", "1,2"}).names, (Texts{"c1", "b"})) << name;
  }
}

// They would name a vocabulary's file.
TEST(HeaderTest, LongNamesAreRepaired) {
  EXPECT_EQ(Find({std::string(72, 'a') + ",b", "1,2"}).names[0].size(), 72u);
  EXPECT_EQ(Find({std::string(73, 'a') + ",b", "1,2"}).names, (Texts{"c1", "b"}));
}

TEST(HeaderTest, StandsBehindSkippedLines) {
  EXPECT_TRUE(HasHeader({"1,2,3", "a,b", "1,2"}, 2, 1));
  EXPECT_FALSE(HasHeader({"a,b,c", "1,2", "3,4"}, 2, 1));
}

TEST(HeaderTest, ATitleOfManyWordsIsNoHeader) {
  EXPECT_TRUE(HasHeader({"exported,by,us", "a,b", "1,x", "2,x"}, 2, 1));
  EXPECT_TRUE(HasHeader({"# exported,by,us", "a,b", "x,y", "z,y"}, 2, 1));
  // The first row may differ from all others.
  EXPECT_EQ(Find({"a,b,c", "x,y", "z,y", "w,v"}, 2, 1).fault, "it has 3 names for 2 columns");
  EXPECT_EQ(Find({"# a,b,c", "1,5", "2,7"}, 2, 1).fault, "it has 3 names for 2 columns");
}

}  // namespace
}  // namespace elastor
