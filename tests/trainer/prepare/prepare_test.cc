#include "trainer/prepare/prepare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <xxhash.h>

#include <cmath>
#include <string>
#include <vector>

#include "tests/trainer/prepare/scratch.h"

namespace elastor {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kWord[] =
    "fields { name: 'label' type: LABEL } fields { name: 'f' type: CATEGORICAL }";

constexpr char kSmallSchema[] = R"(
    name: "small"
    fields { name: "label" type: LABEL }
    fields { name: "raw" type: NUMERIC }
    fields { name: "log" type: NUMERIC transform: LOG2_STANDARDIZE }
    fields { name: "word" type: CATEGORICAL min_count: 2 }
    fields { name: "id" type: CATEGORICAL encoding: IDENTITY offset: 10 buckets: 5 }
    fields { name: "hash" type: CATEGORICAL encoding: HASH buckets: 1000 }
    split { train: 0.6 validation: 0.2 test: 0.2 } rows_per_block: 2)";

// Training rows have the logs 1, 9 (= floor(ln(22)^2)), -3, missing, 1, 4; then 2 and 2 rows.
constexpr char kSmallText[] =
    "0\t5\t1\tbb\t10\tx\n"
    "1\t-7\t22\tbb\t11\ty\n"
    "0\t\t-3\taa\t12\t\n"
    "1\t2.5\t\taa\t13\tlonger than eight\n"
    "0\t0\t1\trare\t14\tx\n"
    "1\t1\t8\t\t10\tx\n"
    "0\t1\t22\tunseen\t10\tx\n"
    "0\t1\t\tbb\t10\tx\n"
    "1\t1\t2\taa\t10\tx\n"
    "1\t1\t3\trare\t14\tx\n";

TEST(PrepareTest, EveryValueOfASmallFile) {
  const PrepareOptions options =
      OptionsOf(kSmallSchema, {WriteScratch("in.tsv", kSmallText)}, "out");
  const auto report = Prepare(options);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_THAT(report->rows, ElementsAre(6, 2, 2));
  EXPECT_EQ(report->bad_rows, 0);
  EXPECT_EQ(report->ids, 3 + 5 + 1000);
  const auto dataset = OpenOrDie(options.output_dir);
  // aa and bb occur twice each in the training rows: equal counts go by value.
  EXPECT_EQ(dataset->info().categorical[0].ids, 3);
  EXPECT_EQ(dataset->info().categorical[1].ids, 5);

  const Rows train = ReadAll(*dataset, Split::kTrain);
  EXPECT_THAT(train.labels, ElementsAre(0, 1, 0, 1, 0, 1));
  const double logs[] = {1, 9, -3, NAN, 1, 4};
  const double mean = 12.0 / 5, stddev = std::sqrt((1 + 81 + 9 + 1 + 16) / 5.0 - mean * mean);
  const float raw[] = {5, -7, NAN, 2.5, 0, 1};
  for (int row = 0; row < 6; ++row) {
    if (row == 2) {
      EXPECT_TRUE(std::isnan(train.numeric[2 * row]));
    } else {
      EXPECT_EQ(train.numeric[2 * row], raw[row]);
    }
    if (row == 3) {
      EXPECT_TRUE(std::isnan(train.numeric[2 * row + 1]));
    } else {
      EXPECT_FLOAT_EQ(train.numeric[2 * row + 1], static_cast<float>((logs[row] - mean) / stddev));
    }
  }
  const auto hash = [](std::string_view text) {
    return static_cast<int64_t>(XXH3_64bits(text.data(), text.size()) % 1000);
  };
  EXPECT_THAT(train.ids, ElementsAre(2, 0, hash("x"), 2, 1, hash("y"), 1, 2, hash(""), 1, 3,
                                     hash("longer than eight"), 0, 4, hash("x"), 0, 0, hash("x")));

  // Values of other splits use the training split's vocabulary and scale.
  const Rows validation = ReadAll(*dataset, Split::kValidation);
  EXPECT_THAT(validation.ids, ElementsAre(0, 0, hash("x"), 2, 0, hash("x")));
  EXPECT_FLOAT_EQ(validation.numeric[1], static_cast<float>((9 - mean) / stddev));
  const Rows test = ReadAll(*dataset, Split::kTest);
  EXPECT_THAT(test.ids, ElementsAre(1, 0, hash("x"), 0, 4, hash("x")));
  EXPECT_FLOAT_EQ(test.numeric[3], static_cast<float>((1 - mean) / stddev));  // floor(ln(3)^2)
}

TEST(PrepareTest, VocabularyByCountThenValue) {
  std::string text;
  for (const char* value : {"z", "b", "a", "c", "z", "c", "b", "z"}) {
    text += std::string("0\t") + value + "\n";
  }
  const PrepareOptions options = OptionsOf(kWord, {WriteScratch("in.tsv", text)}, "out");
  ASSERT_TRUE(Prepare(options).ok());
  const Rows rows = ReadAll(*OpenOrDie(options.output_dir), Split::kTrain);
  EXPECT_THAT(rows.ids, ElementsAre(1, 2, 4, 3, 1, 3, 2, 1));  // z 3, b 2, c 2, a 1
}

TEST(PrepareTest, LibsvmSplitByFileWithMultiHot) {
  PrepareOptions options = OptionsOf(
      R"(layout: LIBSVM
         fields { name: "price" type: NUMERIC transform: STANDARDIZE }
         fields { name: "user" type: CATEGORICAL encoding: IDENTITY offset: 100 buckets: 3 }
         fields { name: "tags" type: MULTI_HOT pooling: MEAN max_length: 2 })",
      {WriteScratch("a", "1 0:3 100:1 7:1 8:1 9:1\n-1 0:5 102:1\n")}, "out");
  options.validation_inputs = {WriteScratch("b", "0 0:4 101:1 9:1 8:1\n")};
  options.test_inputs = {WriteScratch("c", "+1 0:4.5 100:1 7:1")};
  const auto report = Prepare(options);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_THAT(report->rows, ElementsAre(2, 1, 1));
  const auto dataset = OpenOrDie(options.output_dir);
  EXPECT_TRUE(dataset->info().categorical[1].multi_hot);
  EXPECT_TRUE(dataset->info().categorical[1].mean_pooling);
  const Rows train = ReadAll(*dataset, Split::kTrain);
  EXPECT_THAT(train.labels, ElementsAre(1, 0));
  EXPECT_THAT(train.numeric, ElementsAre(-1, 1));
  EXPECT_THAT(train.ids, ElementsAre(0, 1, 2, 2));  // tags 7 -> 1, 8 -> 2; 9 was cut off
  EXPECT_THAT(train.offsets, ElementsAre(0, 1, 3, 4, 4));
  const Rows validation = ReadAll(*dataset, Split::kValidation);
  EXPECT_THAT(validation.ids, ElementsAre(1, 0, 2));
  EXPECT_THAT(validation.numeric, ElementsAre(0));
  EXPECT_THAT(ReadAll(*dataset, Split::kTest).ids, ElementsAre(0, 1));
}

TEST(PrepareTest, MultiHotInTsv) {
  const PrepareOptions options = OptionsOf(
      "fields { name: 'label' type: LABEL } fields { name: 't' type: MULTI_HOT separator: ',' }",
      {WriteScratch("in.tsv", "0\tb,a\n1\t\n0\ta,,a\n")}, "out");
  ASSERT_TRUE(Prepare(options).ok());
  const Rows rows = ReadAll(*OpenOrDie(options.output_dir), Split::kTrain);
  EXPECT_THAT(rows.ids, ElementsAre(2, 1, 1, 1));
  EXPECT_THAT(rows.offsets, ElementsAre(0, 2, 2, 4));
}

TEST(PrepareTest, BadRowsAreLocatedCountedAndSkipped) {
  const std::string schema =
      "fields { name: 'label' type: LABEL } max_bad_rows: 3 fields { name: 'n' type: NUMERIC }"
      "fields { name: 'f' type: CATEGORICAL encoding: IDENTITY buckets: 4 }";
  const std::string path = WriteScratch("in.tsv", "0\t1\t1\n0\t2\n1\tx7\t1\n1\t3\t3\n2\t1\t1\n");
  PrepareOptions options = OptionsOf(schema, {path}, "out");
  std::vector<std::string> warnings;
  options.warn = [&](const std::string& message) { warnings.push_back(message); };
  const auto report = Prepare(options);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->bad_rows, 3);
  EXPECT_THAT(report->rows, ElementsAre(2, 0, 0));
  EXPECT_THAT(warnings,
              ElementsAre(HasSubstr("in.tsv:2: found 2 columns, expected 3"),
                          HasSubstr("in.tsv:3: column 2 (n): found 'x7', expected a number"),
                          HasSubstr("in.tsv:5: column 1 (label): found '2', expected 0, 1 or -1")));
  EXPECT_THAT(ReadAll(*OpenOrDie(options.output_dir), Split::kTrain).ids, ElementsAre(1, 3));

  options.inputs.push_back(WriteScratch("in2.tsv", "0\t1\t4\n"));
  options.output_dir = ScratchPath("out2");
  const Status status = Prepare(options).status();
  EXPECT_EQ(status.code(), StatusCode::kUser);
  EXPECT_THAT(status.message(), HasSubstr("in2.tsv:1: column 3 (f): found '4', expected an id in "
                                          "[0, 4); 4 bad rows so far, max_bad_rows is 3"));
  EXPECT_FALSE(std::filesystem::exists(options.output_dir));
}

// About four chunks of text with bags, numbers, repeated and rare values.
std::string LongText() {
  std::string text;
  for (int row = 0; text.size() < (2 << 20); ++row) {
    text += std::to_string(row % 3 == 0) + "\t" + (row % 11 == 0 ? "" : std::to_string(row % 977)) +
            "\tv" + std::to_string(row * 7919LL % 10007) + "\tt" + std::to_string(row % 13) + "|t" +
            std::to_string(row % 17) + "\n";
    if (row % 5000 == 4999) text += "not a row\n";
  }
  return text;
}

TEST(PrepareTest, ThreadsAndPackingDoNotChangeTheBytes) {
  const std::string schema =
      "fields { name: 'label' type: LABEL } max_bad_rows: 1000 split { train: 0.7 validation: 0.3 }"
      "fields { name: 'n' type: NUMERIC transform: STANDARDIZE }"
      "fields { name: 'f' type: CATEGORICAL min_count: 3 } fields { name: 't' type: MULTI_HOT }";
  const std::string text = LongText();
  PrepareOptions options = OptionsOf(schema, {WriteScratch("in.tsv", text)}, "out");
  ASSERT_TRUE(Prepare(options).ok());
  const std::string first = options.output_dir;
  for (const int threads : {2, 5}) {
    options.threads = threads;
    options.output_dir = ScratchPath("out" + std::to_string(threads));
    // Two gzip members, cut in the middle of a line.
    options.inputs = {
        WriteScratch("in.gz", Gzip(text.substr(0, 777777)) + Gzip(text.substr(777777)))};
    const auto report = Prepare(options);
    ASSERT_TRUE(report.ok()) << report.status().message();
    EXPECT_GT(report->bad_rows, 10);
    for (const char* file : {"train.rows", "validation.rows", "test.rows", "meta.json"}) {
      EXPECT_EQ(FileBytes(first + "/" + file), FileBytes(options.output_dir + "/" + file)) << file;
    }
  }
}

TEST(PrepareTest, UsersMistakes) {
  const std::string schema = kWord;
  const auto message_of = [](const PrepareOptions& options) {
    const Status status = Prepare(options).status();
    EXPECT_EQ(status.code(), StatusCode::kUser);
    return status.message();
  };
  EXPECT_THAT(message_of(OptionsOf(schema, {}, "out")), HasSubstr("--input is missing"));
  EXPECT_THAT(message_of(OptionsOf(schema, {"/no/such/file"}, "out")), HasSubstr("/no/such/file"));
  EXPECT_THAT(message_of(OptionsOf(schema, {WriteScratch("empty", "")}, "out")),
              HasSubstr("no rows"));
  PrepareOptions twofold =
      OptionsOf(schema + "split { train: 0.5 test: 0.5 }", {WriteScratch("a", "0\tx\n")}, "out");
  twofold.test_inputs = twofold.inputs;
  EXPECT_THAT(message_of(twofold), HasSubstr("--test_input split by file"));
  twofold.schema.clear_split();
  twofold.test_inputs = {testing::TempDir() + "/./" +
                         std::filesystem::path(twofold.inputs[0]).filename().string()};
  EXPECT_THAT(message_of(twofold), HasSubstr("a: stands in --input and in --test_input"));
  PrepareOptions used = OptionsOf(schema, {WriteScratch("a", "0\tx\n")}, "out");
  ASSERT_TRUE(Prepare(used).ok());
  EXPECT_THAT(message_of(used), HasSubstr("not empty"));
  const std::string packed = Gzip(LongText());
  EXPECT_THAT(
      message_of(OptionsOf(schema + "max_bad_rows: 1000000",
                           {WriteScratch("cut.gz", packed.substr(0, packed.size() / 2))}, "out2")),
      testing::AllOf(HasSubstr("cut.gz: gzip data cut off at byte "),
                     HasSubstr(std::to_string(packed.size() / 2))));
}

}  // namespace
}  // namespace elastor
