#include "trainer/prepare/guess/columns.h"

#include <gtest/gtest.h>

namespace elastor {
namespace {

SampleColumn Summarised(const std::vector<std::string>& values,
                        const std::vector<std::string>& nulls = {}) {
  SampleColumn column;
  for (const std::string& value : values) column.Add(value);
  column.Summarise(nulls);
  return column;
}

TEST(ColumnsTest, CountsNumbersIntegersAndMissingValues) {
  const SampleColumn column = Summarised({"3", "-1", "2.5", "", "NA", "3"}, {"NA", "null"});
  EXPECT_EQ(column.count, 4);
  EXPECT_EQ(column.missing, 2);
  EXPECT_EQ(column.nulls.size(), 1u);
  EXPECT_EQ(column.nulls.at("NA"), 1);
  EXPECT_EQ(column.values.at("3"), 2);
  EXPECT_FALSE(column.values.contains("NA"));
  EXPECT_TRUE(column.numeric());
  EXPECT_FALSE(column.whole());
  EXPECT_EQ(column.integers, 3);
  EXPECT_EQ(column.least, -1);
  EXPECT_EQ(column.largest, 3);
  EXPECT_EQ(column.mean(), 7.5 / 4);
}

TEST(ColumnsTest, TellsWholeNumbersFromIntegersAndZerosInFront) {
  const SampleColumn points = Summarised({"3.0", "1e2"});
  EXPECT_TRUE(points.whole());
  EXPECT_FALSE(points.integral());
  EXPECT_TRUE(Summarised({"007", "12"}).leading_zeros);
  EXPECT_FALSE(Summarised({"0", "-5", "0.5"}).leading_zeros);
}

// Dates of birth are times, and integers only where times of data of users lie.
TEST(ColumnsTest, CountsTimesByFormat) {
  const SampleColumn dates = Summarised({"1931-02-03", "2014-10-21 05:00:00", "0031-02-03"});
  EXPECT_EQ(dates.times[Field::YYYY_MM_DD_HH_MM_SS], 2);
  const SampleColumn seconds = Summarised({"874724710", "1500000000", "12", "14102105"});
  EXPECT_EQ(seconds.times[Field::UNIX_SECONDS], 2);
  EXPECT_EQ(seconds.times[Field::YYMMDDHH], 1);
  EXPECT_EQ(Summarised({"21.10.2014", "$5"}).written_times, 1);
  EXPECT_EQ(Summarised({"21.10.2014", "$5"}).written_numbers, 1);
}

TEST(ColumnsTest, ReadsRowsOfAllFilesFromTheFirstRowOn) {
  Schema schema;
  schema.set_delimiter(",");
  TextSample text{{"f", "g"}, {{"x,y", "1,NA", "bad"}, {"x,y", "2,null"}}, 1};
  const SampleColumns sample = ReadColumns(schema, {"x", "y"}, text);
  EXPECT_EQ(sample.rows, 2);
  EXPECT_EQ(sample.columns[0].name, "x");
  EXPECT_EQ(sample.columns[0].values.size(), 2u);
  text.first_row = 0;
  EXPECT_EQ(ReadColumns(schema, {"x", "y"}, text).rows, 4);
}

}  // namespace
}  // namespace elastor
