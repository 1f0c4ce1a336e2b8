#include "trainer/prepare/guess/header.h"

#include <gtest/gtest.h>

namespace elastor {
namespace {

bool HasHeader(const std::vector<std::string>& lines, int64_t skip_lines = 0) {
  Schema schema;
  schema.set_delimiter(",");
  schema.set_skip_lines(skip_lines);
  return FirstLineIsHeader(schema, lines);
}

TEST(HeaderTest, NamesAreNoNumbersAndEachIsThereOnce) {
  EXPECT_TRUE(HasHeader({"a,b", "1,2"}));
  EXPECT_FALSE(HasHeader({"a,1", "b,2"}));
  EXPECT_FALSE(HasHeader({"a,a", "b,c"}));
}

TEST(HeaderTest, NoRowHasANameInItsColumn) {
  EXPECT_FALSE(HasHeader({"a,b", "1,b"}));
  EXPECT_TRUE(HasHeader({"a,b", "b,a"}));
}

TEST(HeaderTest, OnlyTheFirstNameMayBeEmpty) {
  EXPECT_TRUE(HasHeader({",b", "1,2"}));
  EXPECT_FALSE(HasHeader({"a,", "1,2"}));
}

TEST(HeaderTest, StandsBehindSkippedLines) {
  EXPECT_TRUE(HasHeader({"1,2", "a,b", "1,2"}, 1));
  EXPECT_FALSE(HasHeader({"a,b", "1,2", "3,4"}, 1));
}

}  // namespace
}  // namespace elastor
