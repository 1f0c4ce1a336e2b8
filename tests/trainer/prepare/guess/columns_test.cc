#include "trainer/prepare/guess/columns.h"

#include <gtest/gtest.h>

namespace elastor {
namespace {

SampleColumn ColumnOf(const std::vector<std::string>& values) {
  SampleColumn column;
  for (const std::string& value : values) column.Add(value);
  return column;
}

TEST(ColumnsTest, CountsNumbersIntegersAndMissingValues) {
  const SampleColumn column = ColumnOf({"3", "-1", "2.5", "", "NA", "3"});
  EXPECT_EQ(column.count, 4);
  EXPECT_EQ(column.missing, 2);
  EXPECT_EQ(column.nulls.at("NA"), 1);
  EXPECT_EQ(column.values.at("3"), 2);
  EXPECT_TRUE(column.numeric());
  EXPECT_FALSE(column.integral());
  EXPECT_EQ(column.least, -1);
  EXPECT_EQ(column.largest, 3);
  EXPECT_EQ(column.mean(), 7.5 / 4);
}

TEST(ColumnsTest, CountsTheItemsOfBagsBySeparator) {
  const SampleColumn column = ColumnOf({"a|b|c", "d", "e^f"});
  EXPECT_EQ(column.bags[0], 1);
  EXPECT_EQ(column.longest_bag[0], 3);
  EXPECT_EQ(column.bags[1], 1);
  EXPECT_EQ(column.longest_bag[2], 1);
}

TEST(ColumnsTest, ReadsRowsOfAllFilesBehindTheirHeaders) {
  Schema schema;
  schema.set_delimiter(",");
  schema.set_header(true);
  const TextSample text{{"f", "g"}, {{"x,y", "1,NA", "bad"}, {"x,y", "2,null"}}};
  const SampleColumns sample = ReadColumns(schema, 2, text);
  EXPECT_EQ(sample.rows, 2);
  EXPECT_EQ(sample.bad_rows, 1);
  EXPECT_EQ(sample.columns[0].name, "x");
  EXPECT_EQ(sample.columns[0].values.size(), 2u);
  EXPECT_EQ(NullTexts(sample.columns), (std::vector<std::string>{"NA", "null"}));
  schema.set_header(false);
  EXPECT_EQ(ReadColumns(schema, 2, text).columns[1].name, "c2");
}

}  // namespace
}  // namespace elastor
