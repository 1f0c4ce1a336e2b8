#include "trainer/prepare/guess/read_back.h"

#include <gtest/gtest.h>

#include "trainer/prepare/schema_file.h"

namespace elastor {
namespace {

constexpr char kSchema[] =
    "delimiter: ',' header: true fields { name: 'y' type: LABEL } fields { name: 'a' type: NUMERIC "
    "}";

StatusOr<ReadBack> Read(std::vector<std::vector<std::string>> files) {
  const auto schema = ParseSchema(kSchema, "schema");
  EXPECT_TRUE(schema.ok()) << schema.status().message();
  return ReadSampleBack(*schema, {{"f", "g"}, std::move(files), 1});
}

TEST(ReadBackTest, CountsRowsOfAllFilesAsPrepareReadsThem) {
  const auto read = Read({{"y,a", "1,2", "0,x", "0,3"}, {"y,a", ",1", "1,"}});
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->rows, 3);
  EXPECT_EQ(read->bad_rows, 2);
  EXPECT_EQ(read->positives, 2);
  EXPECT_EQ(read->first_fault, "column 2 (a): found 'x', expected a number");
}

TEST(ReadBackTest, RefusesAnotherHeaderNoRowsAndOneClass) {
  EXPECT_EQ(Read({{"y,a", "1,2"}, {"y,b", "0,1"}}).status().message(),
            "g:1: column 2 of the header: found 'b', expected 'a' (as in the first file)");
  EXPECT_EQ(Read({{"y,a", "1,x"}}).status().message(),
            "f: no schema reads a row of it; column 2 (a): found 'x', expected a number");
  EXPECT_EQ(Read({{"y,a", "1,1", "1,2"}}).status().message(),
            "f: all 2 rows have label 1; expected both 0 and 1");
}

}  // namespace
}  // namespace elastor
