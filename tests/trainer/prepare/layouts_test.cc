// Delimited layouts from files to what the trainer reads.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <xxhash.h>

#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/trainer/prepare/real_data.h"
#include "tests/trainer/prepare/scratch.h"
#include "trainer/prepare/prepare.h"

namespace elastor {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

uint64_t Hash(const std::string& text) { return XXH3_64bits(text.data(), text.size()); }

constexpr char kEverything[] = R"(
    delimiter: ',' header: true quoted: true rows_per_block: 2
    fields { name: "y" type: LABEL }
    fields { name: "weight" type: WEIGHT column: "w" }
    fields { name: "user" type: GROUP }
    fields { name: "time" type: TIME time_format: YYMMDDHH }
    fields { name: "item" type: CATEGORICAL min_count: 2 }
    fields { name: "hour" type: CATEGORICAL transform: HOUR time_format: YYMMDDHH column: "time" }
    fields { name: "log" type: NUMERIC transform: LOG2 column: "n" }
    fields { name: "seen" type: SEQUENCE max_length: 2 shares: "item" })";

// Items, and what is kept of seen: a 3 times, b twice, "c,d" and e once.
constexpr char kEverythingText[] =
    "user,item,seen,n,y,w,time,unused\n"
    "ann,a,\"c,d|b|a\",23255,1,0.5,14102105,\n"
    "bob,b,,,0,,14102123,x\n"
    "ann,\"c,d\",e|a,-3,0,2,14102205,y\n";

TEST(LayoutsTest, EveryTypeOfColumn) {
  const PrepareOptions options =
      OptionsOf(kEverything, {WriteScratch("in.csv", kEverythingText)}, "out");
  const auto report = Prepare(options);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->bad_rows, 0);
  const auto dataset = OpenOrDie(options.output_dir);
  ASSERT_EQ(dataset->info().categorical.size(), 3u);
  EXPECT_EQ(dataset->info().categorical[2].shares, 0);
  EXPECT_EQ(dataset->info().categorical[2].ids, dataset->info().categorical[0].ids);
  const Rows rows = ReadAll(*dataset, Split::kTrain);
  EXPECT_THAT(rows.labels, ElementsAre(1, 0, 0));
  EXPECT_THAT(rows.weights, ElementsAre(0.5f, 1, 2));
  EXPECT_THAT(rows.groups, ElementsAre(Hash("ann"), Hash("bob"), Hash("ann")));
  EXPECT_THAT(rows.times, ElementsAre(1413867600, 1413932400, 1413954000));
  EXPECT_EQ(rows.numeric[0], 101);
  EXPECT_TRUE(std::isnan(rows.numeric[1]));
  EXPECT_EQ(rows.numeric[2], -3);
  // Shared ids: a 1, b 2, "c,d" and e 0 (rare). Hours: 5 is 1 (twice), 23 is 2.
  EXPECT_THAT(rows.ids, ElementsAre(1, 1, 2, 1, 2, 2, 0, 1, 0, 1));
  EXPECT_THAT(rows.offsets, ElementsAre(0, 1, 2, 4, 5, 6, 6, 7, 8, 10));
}

TEST(LayoutsTest, FilesMustHaveOneHeader) {
  PrepareOptions options = OptionsOf(kEverything, {WriteScratch("in.csv", kEverythingText)}, "out");
  options.test_inputs = {WriteScratch("other.csv", "user,items,seen,n,y,w,time,unused\n")};
  const Status status = Prepare(options).status();
  EXPECT_EQ(status.code(), StatusCode::kUser);
  EXPECT_THAT(status.message(),
              HasSubstr("other.csv:1: column 2 of the header: found 'items', expected 'item'"));
}

// Adult's test file begins with a line of its own, and MovieLens has no header.
TEST(LayoutsTest, SkippedLinesAreNoRows) {
  const std::string schema =
      "delimiter: '::' skip_lines: 2 fields { name: 'rating' type: LABEL at_least: 4 }"
      "fields { names: ['user', 'item'] type: CATEGORICAL } ";
  const std::string rows = "5::u::i\n3::v::i\n4::u::j\n";
  PrepareOptions options = OptionsOf(
      schema,
      {WriteScratch("a", "\xef\xbb\xbf# one\n# two\n" + rows), WriteScratch("b", "\n\n" + rows)},
      "out");
  const auto report = Prepare(options);
  ASSERT_TRUE(report.ok()) << report.status().message();
  const Rows read = ReadAll(*OpenOrDie(options.output_dir), Split::kTrain);
  EXPECT_THAT(read.labels, ElementsAre(1, 0, 1, 1, 0, 1));
  EXPECT_THAT(read.ids, ElementsAre(1, 1, 2, 1, 1, 2, 1, 1, 2, 1, 1, 2));
  const auto message_of = [&](const std::string& more, const std::string& text) {
    options = OptionsOf(schema + more, {WriteScratch("in", text)}, "other");
    const Status status = Prepare(options).status();
    EXPECT_EQ(status.code(), StatusCode::kUser);
    return status.message();
  };
  EXPECT_THAT(message_of("", "x\ny\n5::u::i\n5:u::i\n"),
              HasSubstr("in:4: found 2 columns, expected 3"));
  EXPECT_THAT(message_of("header: true ", "x\ny\nrating::usr::item\n"),
              HasSubstr("in:3: field user: found columns 'rating', 'usr', 'item'"));
  EXPECT_THAT(message_of("", "x\n"), HasSubstr("in: ends after line 1, expected 2 lines to skip"));
  EXPECT_THAT(message_of("header: true ", "x\ny\n"),
              HasSubstr("in: ends after line 2, expected a header line"));
  EXPECT_THAT(message_of("", std::string(99 << 10, 'x') + "\ny\n" + rows),
              HasSubstr("in: found 1 lines in the first 65536 bytes, expected 2 lines to skip"));
}

TEST(LayoutsTest, HashSplitKeepsAUserTogether) {
  const std::string schema =
      "layout: DELIMITED fields { name: 'y' type: LABEL } fields { name: 'user' type: GROUP }"
      "fields { name: 'n' type: NUMERIC }"
      "split { train: 0.5 validation: 0.25 test: 0.25 by: HASH hash_field: 'user' }";
  std::string text;
  for (int row = 0; row < 20000; ++row) {
    text += "0\tu" + std::to_string(row * 7919 % 4001) + "\t" + std::to_string(row) + "\n";
  }
  const PrepareOptions options = OptionsOf(schema, {WriteScratch("in.tsv", text)}, "out");
  const auto report = Prepare(options);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_NEAR(report->rows[0], 10000, 400);
  EXPECT_NEAR(report->rows[1], 5000, 400);
  const auto dataset = OpenOrDie(options.output_dir);
  std::map<uint64_t, Split> split_of;
  std::set<float> numbers;
  for (const Split split : {Split::kTrain, Split::kValidation, Split::kTest}) {
    const Rows rows = ReadAll(*dataset, split);
    for (int64_t row = 0; row < rows.rows; ++row) {
      EXPECT_EQ(split_of.try_emplace(rows.groups[row], split).first->second, split);
      EXPECT_TRUE(row == 0 || rows.numeric[row] > rows.numeric[row - 1]) << row;
    }
    numbers.insert(rows.numeric.begin(), rows.numeric.end());
  }
  EXPECT_EQ(numbers.size(), 20000u);
}

TEST(LayoutsTest, RealTaobao) {
  const std::string file = "taobao_ad_10k.csv.gz";
  SKIP_WITHOUT(file);
  PrepareOptions options;
  auto schema = ReadSchemaFile("configs/taobao/schema.textproto");
  ASSERT_TRUE(schema.ok()) << schema.status().message();
  options.schema = *schema;
  options.inputs = {DataFolder() + "/" + file};
  options.output_dir = ScratchPath("out");
  const auto report = Prepare(options);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->rows[0] + report->rows[1] + report->rows[2], 9999);
  const auto dataset = OpenOrDie(options.output_dir);
  const auto& fields = dataset->info().categorical;
  double positives = 0;
  for (const Split split : {Split::kTrain, Split::kValidation, Split::kTest}) {
    const Rows rows = ReadAll(*dataset, split);
    for (const float label : rows.labels) positives += label;
    ASSERT_EQ(rows.offsets.size(), rows.rows * fields.size() + 1);
    for (size_t bag = 0; bag + 1 < rows.offsets.size(); ++bag) {
      for (int64_t i = rows.offsets[bag]; i < rows.offsets[bag + 1]; ++i) {
        ASSERT_LT(rows.ids[i], fields[bag % fields.size()].ids);
      }
    }
    EXPECT_THAT(rows.weights, IsEmpty());
    EXPECT_EQ(static_cast<int64_t>(rows.times.size()), rows.rows);
  }
  EXPECT_EQ(positives, 435);
}

}  // namespace
}  // namespace elastor
