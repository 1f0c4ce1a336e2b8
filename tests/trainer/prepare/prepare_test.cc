#include "trainer/prepare/prepare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <xxhash.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "tests/trainer/prepare/scratch.h"
#include "trainer/data/data_statistics.h"

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

// A conversion is known after a click alone.
TEST(PrepareTest, SeveralLabels) {
  const std::string schema =
      "fields { name: 'click' type: LABEL } fields { name: 'f' type: CATEGORICAL } "
      "fields { name: 'conversion' type: LABEL } max_bad_rows: 1 split { train: 0.5 test: 0.5 }";
  const std::string text = "0\ta\t\n1\tb\t0\n1\ta\t2\n\tc\t1\n1\tb\t-1\n";
  PrepareOptions options = OptionsOf(schema, {WriteScratch("in.tsv", text)}, "out");
  std::vector<std::string> warnings;
  options.warn = [&](const std::string& warning) { warnings.push_back(warning); };
  const auto report = Prepare(options);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->bad_rows, 1);
  EXPECT_THAT(warnings,
              testing::Contains(HasSubstr(
                  "the label conversion of all 1 train rows is 0; is the LABEL field's column")));
  const auto dataset = OpenOrDie(options.output_dir);
  ASSERT_EQ(dataset->info().labels.size(), 2u);
  EXPECT_EQ(dataset->info().labels[1].name, "conversion");
  const Rows train = ReadAll(*dataset, Split::kTrain), test = ReadAll(*dataset, Split::kTest);
  ASSERT_EQ(train.labels.size(), 4u);
  ASSERT_EQ(test.labels.size(), 4u);
  EXPECT_EQ(train.labels[0], 0);
  EXPECT_TRUE(std::isnan(train.labels[1]));
  EXPECT_EQ(train.labels[2], 1);
  EXPECT_EQ(train.labels[3], 0);
  EXPECT_TRUE(std::isnan(test.labels[0]));
  EXPECT_EQ(test.labels[1], 1);
  EXPECT_EQ(test.labels[2], 1);
  EXPECT_EQ(test.labels[3], 0);
  const std::string statistics = FileBytes(options.output_dir + "/stats.json");
  EXPECT_THAT(statistics, HasSubstr("\"conversion\""));
}

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
      {WriteScratch("a", "1 1:3 100:1 7:1 8:1 9:1\n-1 1:5 102:1\n")}, "out");
  options.validation_inputs = {WriteScratch("b", "0 1:4 101:1 9:1 8:1\n")};
  options.test_inputs = {WriteScratch("c", "+1 1:4.5 100:1 7:1")};
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
                          HasSubstr("in.tsv:5: column 1 (label): found '2', expected 0, 1 or -1"),
                          HasSubstr("no validation rows")));
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

// Prepares one STANDARDIZE column of training values, and the same values as test rows.
PrepareOptions ColumnOptions(const std::vector<double>& values) {
  std::string text;
  for (size_t i = 0; i < values.size(); ++i) {
    char number[40];
    std::snprintf(number, sizeof(number), "%.17g", values[i]);
    text += std::to_string(i % 2) + "\t" + number + "\n";
  }
  PrepareOptions options = OptionsOf(
      "fields { name: 'y' type: LABEL } fields { name: 'x' type: NUMERIC transform: STANDARDIZE }",
      {WriteScratch("train", text)}, "out");
  options.test_inputs = {WriteScratch("test", text)};
  options.threads = 2;
  return options;
}

// Mean and deviation in two passes of long double, whose range and digits suffice for floats.
TEST(PrepareTest, StandardisingIsRightForNumbersOfEverySize) {
  const double hour = 1700000000000, ulp = 0x1p-29;  // of numbers from 2^23 to 2^24
  std::map<std::string, std::vector<double>> columns = {
      {"constant", std::vector<double>(999, 14.62)},
      {"constant tenth", std::vector<double>(1000, 0.1)},
      {"zeros", {0.0, -0.0, 0.0, -0.0}},
      {"ones and tens", {}},
      {"an hour of milliseconds", {}},
      {"beside a large mean", {}},
      {"tiny", {}},
      {"denormal", {}},
      {"huge", {}},
      {"one unlike the others", std::vector<double>(500, 1e7)},
      {"the ends of floats", {3.4e38, -3.4e38, 1e-45, 0, 3.4e38}},
      {"far from zero, near each other", {1e30, 1.0000001e30, 1.0000002e30, 1e30}},
  };
  for (int i = 0; i < 600; ++i) {
    const double draw = i * 7919 % 1009 / 1009.0 - 0.5;
    columns["ones and tens"].push_back(i % 10);
    columns["an hour of milliseconds"].push_back(hour + 250 * (i * 7919 % 14400));
    columns["beside a large mean"].push_back(1e9 + i % 3);
    columns["tiny"].push_back(1e-30 * draw);
    columns["denormal"].push_back(1e-44 * (i % 5));
    columns["huge"].push_back(1e38 * draw);
  }
  columns["one unlike the others"][77] += ulp;
  for (const auto& [name, values] : columns) {
    SCOPED_TRACE(name);
    const PrepareOptions options = ColumnOptions(values);
    const auto report = Prepare(options);
    ASSERT_TRUE(report.ok()) << report.status().message();
    // About the first value, so that near numbers keep their digits.
    const long double first = values[0], count = static_cast<long double>(values.size());
    long double mean = 0, variance = 0;
    for (const double value : values) mean += (value - first) / count;
    for (const double value : values) {
      variance += (value - first - mean) * (value - first - mean) / count;
    }
    mean += first;
    const bool equal = std::ranges::count(values, values[0]) == std::ssize(values);
    const long double stddev = equal ? 1 : std::sqrt(variance);
    const auto dataset = OpenOrDie(options.output_dir);
    const DatasetInfo::Numeric& field = dataset->info().numeric[0];
    EXPECT_LE(std::abs(field.stddev - stddev), 1e-9L * stddev);
    const long double half_ulp = std::abs(mean) * 0x1p-53L;
    EXPECT_LE(std::abs(field.mean - mean), equal ? 0 : std::max(1e-9L * stddev, half_ulp));
    for (const Split split : {Split::kTrain, Split::kTest}) {
      const Rows rows = ReadAll(*dataset, split);
      for (size_t i = 0; i < values.size(); ++i) {
        const long double right = equal ? 0 : (values[i] - field.mean) / stddev;
        ASSERT_LE(std::abs(rows.numeric[i] - right), 2e-7L * std::abs(right)) << values[i];
      }
    }
  }
}

// Its nine digits stand for a number a little below it, which Arm would flush (canonical_flush.h).
TEST(PrepareTest, TheLeastNormalNumberIsNotFlushed) {
  const PrepareOptions options = OptionsOf(
      "fields { name: 'y' type: LABEL } fields { name: 'x' type: NUMERIC } "
      "fields { name: 'w' type: WEIGHT }",
      {WriteScratch("in.tsv", "0\t1.17549435e-38\t1.17549435e-38\n1\t-1.17549435e-38\t1\n")},
      "out");
  ASSERT_TRUE(Prepare(options).ok());
  const Rows rows = ReadAll(*OpenOrDie(options.output_dir), Split::kTrain);
  EXPECT_THAT(rows.numeric, ElementsAre(0x1p-126f, -0x1p-126f));
  EXPECT_THAT(rows.weights, ElementsAre(0x1p-126f, 1));
}

TEST(PrepareTest, AScaledValueBeyondFloatsIsRefused) {
  PrepareOptions options = ColumnOptions({1e-10, 2e-10, 3e-10});
  options.test_inputs = {WriteScratch("far", "0\t1\n1\t1e38\n")};
  EXPECT_THAT(Prepare(options).status().message(),
              HasSubstr("field x: the value 1e+38 is 1.22474e+48 times the deviation 8.16497e-11"));
}

// The bytes of the three splits.
std::string SplitBytes(const std::string& set) {
  std::string bytes;
  for (const char* file : {"train.rows", "validation.rows", "test.rows"}) {
    bytes += FileBytes(set + "/" + file);
  }
  return bytes;
}

TEST(PrepareTest, AByteOrderMarkIsNoPartOfTheFirstValue) {
  const std::string mark = "\xef\xbb\xbf", rows = "0\tx\n1\ty\n0\tx\n";
  for (const bool header : {false, true}) {
    const std::string schema = (header ? "header: true " : "") + std::string(kWord);
    const std::string text = (header ? "label\tf\n" : "") + rows;
    PrepareOptions plain = OptionsOf(schema, {WriteScratch("plain", text)}, "plain_set");
    ASSERT_TRUE(Prepare(plain).ok());
    for (const std::string& bytes : {mark + text, Gzip(mark + text)}) {
      PrepareOptions marked = OptionsOf(schema, {WriteScratch("marked", bytes)}, "marked_set");
      const auto report = Prepare(marked);
      ASSERT_TRUE(report.ok()) << report.status().message();
      EXPECT_EQ(SplitBytes(marked.output_dir), SplitBytes(plain.output_dir));
    }
  }
}

TEST(PrepareTest, BytesThatAreNotUtf8AreValuesAndNamesOfInputs) {
  // Also as gzip, zip and a byte order mark begin.
  const std::string text = "0\t\xff\xfe\n1\t\x1f\x8b\n0\tPK\3\4\n1\t\xef\xbb\xbf\n0\t\xc3\n";
  PrepareOptions options = OptionsOf(kWord, {WriteScratch("in\xe9.tsv", text)}, "out");
  ASSERT_TRUE(Prepare(options).ok());
  const Rows rows = ReadAll(*OpenOrDie(options.output_dir), Split::kTrain);
  PrepareOptions later = OptionsOf(kWord, options.inputs, "later");
  later.vocabulary_from = options.output_dir;
  const auto report = Prepare(later);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(ReadAll(*OpenOrDie(later.output_dir), Split::kTrain).ids, rows.ids);
  // The first value of its vocabulary begins like gzip data.
  EXPECT_EQ(FileBytes(options.output_dir + "/vocabulary/f.tsv").substr(0, 2), "\x1f\x8b");
}

TEST(PrepareTest, WhatIsSeldomMeantIsTold) {
  std::vector<std::string> warnings;
  const auto warnings_of = [&](PrepareOptions options) {
    warnings.clear();
    options.warn = [&](const std::string& message) { warnings.push_back(message); };
    const auto report = Prepare(options);
    EXPECT_TRUE(report.ok()) << report.status().message();
    return warnings;
  };
  const std::string rows = "0\tx\n1\ty\n0\tx\n1\tx\n";
  const PrepareOptions options = OptionsOf(kWord, {WriteScratch("in", rows)}, "out");
  EXPECT_THAT(warnings_of(options), ElementsAre(HasSubstr("no validation rows, so")));
  EXPECT_THAT(warnings_of(OptionsOf("split { train: 0.5 validation: 0.5 } " + std::string(kWord),
                                    options.inputs, "out")),
              testing::IsEmpty());
  PrepareOptions by_file = OptionsOf(kWord, {WriteScratch("small", "0\tx\n1\ty\n")}, "out");
  by_file.validation_inputs = options.inputs;
  EXPECT_THAT(warnings_of(by_file), ElementsAre(HasSubstr("are --input and --validation_input "
                                                          "swapped?")));
  std::swap(by_file.inputs, by_file.validation_inputs);
  by_file.output_dir = ScratchPath("out");
  EXPECT_THAT(warnings_of(by_file), testing::IsEmpty());
  by_file.inputs.push_back(WriteScratch("empty", ""));
  by_file.output_dir = ScratchPath("out");
  EXPECT_THAT(warnings_of(by_file), ElementsAre(HasSubstr("empty: has no rows")));
  by_file.inputs = {WriteScratch("ones", "1\tx\n1\ty\n")};
  by_file.output_dir = ScratchPath("out");
  EXPECT_THAT(warnings_of(by_file),
              ElementsAre(HasSubstr("the label of all 2 train rows is 1; is the LABEL field's")));
}

TEST(PrepareTest, DataOfWhichNothingIsLeftAreTold) {
  std::vector<std::string> warnings;
  const auto warnings_of = [&](const std::string& schema, const std::string& train,
                               const std::string& validation) {
    PrepareOptions options = OptionsOf("fields { name: 'y' type: LABEL } " + schema,
                                       {WriteScratch("train", train)}, "out");
    options.validation_inputs = {WriteScratch("validation", validation)};
    warnings.clear();
    options.warn = [&](const std::string& message) { warnings.push_back(message); };
    const auto report = Prepare(options);
    EXPECT_TRUE(report.ok()) << report.status().message();
    EXPECT_EQ(WarningsOf(options.output_dir), warnings);  // for trainings
    return warnings;
  };
  const std::string user = "fields { name: 'user' type: CATEGORICAL } ";
  EXPECT_THAT(warnings_of(user, "0\t1\n1\t2\n0\t3\n", "0\t1.0\n1\t2.0\n"),
              ElementsAre(HasSubstr("field user: all values of the validation rows are unknown to "
                                    "the vocabulary and get id 0; are they written as in")));
  EXPECT_THAT(warnings_of(user, "0\t1\n1\t2\n0\t3\n", "0\t1.0\n1\t2\n"), testing::IsEmpty());
  EXPECT_THAT(warnings_of(user, "0\t1\n1\t2\n0\t3\n", "0\t\n1\t\n"),
              ElementsAre("field user: missing in all 2 validation rows; is the column right?"));
  EXPECT_THAT(
      warnings_of("fields { names: 'a1..a6' type: NUMERIC }", "0\t\t\t\t\t\t\n1\t\t\t\t\t\t\n",
                  "0\t1\t1\t1\t1\t1\t1\n1\t1\t1\t1\t1\t1\t1\n"),
      ElementsAre("fields a1, a2, a3, a4, a5, ... (6 in all): missing in all 2 train rows; "
                  "is the column right?"));
  EXPECT_THAT(warnings_of("fields { name: 'user' type: CATEGORICAL min_count: 2 }",
                          "0\t1\n1\t2\n0\t3\n", "0\t1\n1\t2\n"),
              ElementsAre("field user: no value is there min_count times in the training rows, so "
                          "all values get id 0"));
  const std::string weight = "fields { name: 'w' type: WEIGHT } " + user;
  EXPECT_THAT(warnings_of(weight, "0\t1\ta\n1\t2\tb\n0\t0\ta\n", "0\t0\ta\n1\t0\tb\n"),
              ElementsAre(HasSubstr("the weight of all 2 validation rows is 0, so nothing can be "
                                    "measured on them")));
  EXPECT_THAT(warnings_of(weight, "0\t0\ta\n1\t0\tb\n0\t0\ta\n", "0\t\ta\n1\t0\tb\n"),
              ElementsAre(HasSubstr("the weight of all 3 train rows is 0, so nothing can be "
                                    "learned from them")));
  std::string bag;
  for (int i = 0; i < 98; ++i) bag += (i == 0 ? "" : "|") + std::to_string(i % 30);
  const std::string rows = "0\t" + bag + "\n1\t" + bag + "\n";
  EXPECT_THAT(warnings_of("fields { name: 'h' type: SEQUENCE }", rows, rows),
              ElementsAre("field h: 136 of 392 ids are left out, as a row keeps 64 where the "
                          "schema gives no max_length"));
  EXPECT_THAT(warnings_of("fields { name: 'h' type: SEQUENCE max_length: 64 }", rows, rows),
              testing::IsEmpty());
  std::string commas, bars;
  for (int i = 0; i < 1000; ++i) {
    commas += std::to_string(i % 2) + "\ta,b,c\n";
    bars += std::to_string(i % 2) + (i == 7 ? "\ta|b\n" : "\ta\n");
  }
  EXPECT_THAT(warnings_of("fields { name: 'l' type: MULTI_HOT }", commas, rows),
              testing::Contains("field l: no training row has more than one value; are these "
                                "lists, and is the separator right?"));
  EXPECT_THAT(warnings_of("fields { name: 'l' type: MULTI_HOT max_length: 99 }", bars, bars),
              testing::IsEmpty());
  std::string pairs;
  for (int i = 0; i < 1000; ++i) pairs += std::to_string(i % 2) + " 7:1\n";
  EXPECT_THAT(warnings_of("layout: LIBSVM fields { name: 'l' type: MULTI_HOT }", pairs, pairs),
              testing::IsEmpty());
  const std::string time = "fields { name: 't' type: TIME } " + user;
  EXPECT_THAT(warnings_of(time, "0\t100\ta\n1\t300\tb\n0\t50\ta\n", "0\t299\ta\n1\t400\tb\n"),
              ElementsAre("training rows are later than validation rows (the last at 1970-01-01 "
                          "00:05:00, the first validation row at 1970-01-01 00:04:59), so a model "
                          "learns from the future; `by: TIME` in the schema's split cuts by time"));
  EXPECT_THAT(warnings_of(time, "0\t100\ta\n1\t300\tb\n0\t50\ta\n", "0\t300\ta\n1\t400\tb\n"),
              testing::IsEmpty());
}

TEST(PrepareTest, WhatStandsInTheWayIsRefusedBeforeAnyWork) {
  const std::string input = WriteScratch("in", "0\tx\n1\ty\n");
  const auto message_of = [](const PrepareOptions& options) {
    const Status status = Prepare(options).status();
    EXPECT_EQ(status.code(), StatusCode::kUser);
    return status.message();
  };
  PrepareOptions options = OptionsOf(
      kWord, {input, testing::TempDir() + "/./" + std::filesystem::path(input).filename().string()},
      "out");
  EXPECT_THAT(message_of(options), HasSubstr("stands twice in --input; expected each file once"));
  options.inputs = {input};
  // A folder of the user's, of the name that working files go to.
  std::filesystem::create_directories(options.output_dir + ".partial");
  std::ofstream(options.output_dir + ".partial/mine.tsv") << "0\tx\n";
  EXPECT_THAT(message_of(options), HasSubstr(".partial/mine.tsv: is not of an unfinished run"));
  EXPECT_EQ(FileBytes(options.output_dir + ".partial/mine.tsv"), "0\tx\n");
  std::filesystem::remove_all(options.output_dir + ".partial");

  options.output_dir = ScratchPath("out\xe9");
  EXPECT_THAT(message_of(options), HasSubstr("--output_dir is not UTF-8"));
  std::filesystem::create_symlink("nowhere", options.output_dir = ScratchPath("dangling"));
  EXPECT_THAT(message_of(options), HasSubstr("dangling: is a link that leads nowhere"));
  const PrepareOptions long_name = OptionsOf("fields { name: 'y' type: LABEL } fields { name: '" +
                                                 std::string(250, 'f') + "' type: CATEGORICAL }",
                                             {input}, "long");
  EXPECT_THAT(message_of(long_name), HasSubstr("would have 254 bytes; expected 251 at most"));
}

TEST(PrepareTest, ALinkToAnEmptyFolderIsTheFolder) {
  const std::string folder = ScratchPath("folder");
  PrepareOptions options = OptionsOf(kWord, {WriteScratch("in", "0\tx\n1\ty\n")}, "link");
  std::filesystem::create_directories(folder);
  std::filesystem::create_symlink(folder, options.output_dir);
  options.output_dir += "/";
  const auto report = Prepare(options);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(OpenOrDie(folder)->rows(Split::kTrain), 2);
}

}  // namespace
}  // namespace elastor
