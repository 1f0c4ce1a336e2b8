// The passes of prepare together: what they make must not depend on threads, memory, segments or
// how the text is packed, and must be what a plain program makes.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <xxhash.h>

#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/base/json.h"
#include "tests/trainer/prepare/prepare_reference.h"
#include "tests/trainer/prepare/scratch.h"
#include "trainer/prepare/values/field_statistics.h"

namespace elastor {
namespace {

using testing::HasSubstr;

constexpr int64_t kRows = 36000;  // more than two chunks of text
constexpr char kShares[] = "split { train: 0.6 validation: 0.1 test: 0.3 }";

void ExpectSameFolders(const std::string& a, const std::string& b) {
  std::set<std::string> files[2];
  for (int i = 0; i < 2; ++i) {
    const std::string& folder = i == 0 ? a : b;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
      if (entry.is_regular_file()) {
        files[i].insert(std::filesystem::relative(entry.path(), folder).string());
      }
    }
  }
  EXPECT_EQ(files[0], files[1]);
  for (const std::string& file : files[0]) {
    EXPECT_EQ(FileBytes(a + "/" + file), FileBytes(b + "/" + file)) << file;
  }
}

PrepareReport PrepareOrDie(const PrepareOptions& options) {
  const auto report = Prepare(options);
  EXPECT_TRUE(report.ok()) << report.status().message();
  return *report;
}

// The rows of fixed series in one file.
PrepareOptions SeriesOptions(const std::string& output_name) {
  return OptionsOf(std::string(kRawSchema) + kShares,
                   {WriteScratch("series.tsv", RawTexts(0, kRows))}, output_name);
}

std::map<std::string, int64_t> WordIds(int64_t begin, int64_t end) {
  std::vector<std::string> words;
  for (int64_t r = begin; r < end; ++r) {
    const RawRow row = RawRowAt(r);
    words.push_back(row.word);
    words.insert(words.end(), row.bag.begin(), row.bag.end());
  }
  return PlainRanks(words, 2);
}

// Rows [begin, begin + rows.rows) of the series, encoded by `ids` and the scale.
void ExpectRows(const Rows& rows, int64_t begin, const std::map<std::string, int64_t>& ids,
                double mean, double stddev) {
  const auto id_of = [&](const std::string& word) {
    const auto found = ids.find(word);
    return found == ids.end() ? 0 : found->second;
  };
  std::vector<int64_t> expected, offsets = {0};
  for (int64_t r = 0; r < rows.rows; ++r) {
    const RawRow row = RawRowAt(begin + r);
    ASSERT_EQ(rows.labels[r], row.label);
    if (row.number < 0) {
      ASSERT_TRUE(std::isnan(rows.numeric[r]));
    } else {
      ASSERT_FLOAT_EQ(rows.numeric[r], static_cast<float>((row.number - mean) / stddev));
    }
    expected.push_back(id_of(row.word));
    offsets.push_back(static_cast<int64_t>(expected.size()));
    for (const std::string& word : row.bag) expected.push_back(id_of(word));
    offsets.push_back(static_cast<int64_t>(expected.size()));
    expected.push_back(
        static_cast<int64_t>(XXH3_64bits(row.hashed.data(), row.hashed.size()) % 1000));
    offsets.push_back(static_cast<int64_t>(expected.size()));
    expected.push_back(row.integer + 7);
    offsets.push_back(static_cast<int64_t>(expected.size()));
  }
  EXPECT_EQ(rows.ids, expected);
  EXPECT_EQ(rows.offsets, offsets);
}

std::pair<double, double> MeanAndStddev(int64_t begin, int64_t end) {
  double sum = 0, squares = 0, count = 0;
  for (int64_t r = begin; r < end; ++r) {
    const double number = RawRowAt(r).number;
    if (number < 0) continue;
    sum += number;
    squares += number * number;
    ++count;
  }
  return {sum / count, std::sqrt(squares / count - sum / count * (sum / count))};
}

TEST(EngineTest, EveryValueIsWhatAPlainProgramMakes) {
  const PrepareOptions options = SeriesOptions("out");
  const PrepareReport report = PrepareOrDie(options);
  const auto dataset = OpenOrDie(options.output_dir);
  const int64_t train = kRows * 6 / 10, validation = kRows / 10;
  const auto ids = WordIds(0, train);
  EXPECT_EQ(dataset->info().categorical[0].ids, static_cast<int64_t>(ids.size()) + 1);
  EXPECT_EQ(dataset->info().categorical[1].ids, static_cast<int64_t>(ids.size()) + 1);
  EXPECT_EQ(dataset->info().categorical[1].shares, 0);
  EXPECT_EQ(report.ids, static_cast<int64_t>(ids.size()) + 1 + 1000 + 400);
  const auto [mean, stddev] = MeanAndStddev(0, train);
  ExpectRows(ReadAll(*dataset, Split::kTrain), 0, ids, mean, stddev);
  ExpectRows(ReadAll(*dataset, Split::kValidation), train, ids, mean, stddev);
  ExpectRows(ReadAll(*dataset, Split::kTest), train + validation, ids, mean, stddev);
  EXPECT_EQ(dataset->rows(Split::kTest), kRows - train - validation);
  EXPECT_FALSE(std::filesystem::exists(options.output_dir + "/work"));

  // Line i of the vocabulary is id i.
  std::ifstream lines(options.output_dir + "/vocabulary/word.tsv");
  std::string line;
  for (int64_t id = 1; std::getline(lines, line); ++id) {
    ASSERT_EQ(ids.at(line.substr(0, line.find('\t'))), id);
  }
}

TEST(EngineTest, ThreadsMemorySegmentsAndPackingDoNotChangeTheBytes) {
  PrepareOptions options = SeriesOptions("out");
  EXPECT_EQ(PrepareOrDie(options).segments, 1);
  const std::string first = options.output_dir;
  int number = 0;
  for (const int threads : {1, 2, 8}) {
    for (const bool packed : {false, true}) {
      options.threads = threads;
      // Every chunk a segment; or as many as the memory asks for, and values merged in small parts.
      options.segment_bytes = packed ? int64_t{1} << 30 : 1;
      options.memory_bytes = packed ? 1 << 20 : int64_t{1} << 30;
      options.output_dir = ScratchPath("out" + std::to_string(++number));
      if (packed) {
        const std::string text = RawTexts(0, kRows);
        const std::string start = text.substr(0, text.size() / 2);
        const size_t cut = start.rfind('\n') + 1;
        options.inputs = {
            WriteScratch("a.gz", Gzip(text.substr(0, 100)) + Gzip(text.substr(100, cut - 100))),
            WriteScratch("b.tsv", text.substr(cut, 300000)),
            WriteScratch("c.gz", Gzip(text.substr(cut + 300000)))};
        // A line cut in two by files is two lines: move it into one of them.
        const std::string b = text.substr(cut, 300000);
        const size_t end = b.rfind('\n') + 1;
        options.inputs[1] = WriteScratch("b.tsv", b.substr(0, end));
        options.inputs[2] = WriteScratch("c.gz", Gzip(text.substr(cut + end)));
      }
      const PrepareReport report = PrepareOrDie(options);
      EXPECT_GT(report.segments, 1);
      ExpectSameFolders(first, options.output_dir);
    }
    options.inputs = SeriesOptions("unused").inputs;
  }
}

constexpr char kKeySchema[] = R"(
    fields { name: "label" type: LABEL }
    fields { name: "number" type: NUMERIC transform: STANDARDIZE }
    fields { name: "word" type: CATEGORICAL encoding: HASHED_KEY }
    fields { name: "bag" type: SEQUENCE shares: "word" max_length: 2 }
    fields { name: "hashed" type: CATEGORICAL }
    fields { name: "integer" type: CATEGORICAL encoding: IDENTITY_KEY }
    rows_per_block: 512 )";

// Keys stand beside ids of a vocabulary, and nothing is counted of them.
TEST(EngineTest, KeysAreThoseOfAPlainProgram) {
  PrepareOptions options = OptionsOf(std::string(kKeySchema) + kShares,
                                     {WriteScratch("series.tsv", RawTexts(0, kRows))}, "out");
  EXPECT_EQ(PrepareOrDie(options).segments, 1);
  const auto dataset = OpenOrDie(options.output_dir);
  const int64_t train = kRows * 6 / 10;
  std::vector<std::string> texts;
  for (int64_t r = 0; r < train; ++r) texts.push_back(RawRowAt(r).hashed);
  const std::map<std::string, int64_t> ids = PlainRanks(texts, 1);
  std::vector<int64_t> expected, offsets = {0};
  std::set<int64_t> words, bags;
  int64_t missing = 0;
  const auto key_of = [](const std::string& text) {
    return text.empty() ? 0 : static_cast<int64_t>(XXH3_64bits(text.data(), text.size()));
  };
  for (int64_t r = 0; r < train; ++r) {
    const RawRow row = RawRowAt(r);
    missing += row.word.empty();
    if (!row.word.empty()) words.insert(key_of(row.word));
    expected.push_back(key_of(row.word));
    offsets.push_back(static_cast<int64_t>(expected.size()));
    for (size_t i = row.bag.size() > 2 ? row.bag.size() - 2 : 0; i < row.bag.size(); ++i) {
      expected.push_back(key_of(row.bag[i]));
      bags.insert(expected.back());
    }
    offsets.push_back(static_cast<int64_t>(expected.size()));
    expected.push_back(ids.at(row.hashed));
    offsets.push_back(static_cast<int64_t>(expected.size()));
    expected.push_back(row.integer);
    offsets.push_back(static_cast<int64_t>(expected.size()));
  }
  const Rows rows = ReadAll(*dataset, Split::kTrain);
  EXPECT_EQ(rows.ids, expected);
  EXPECT_EQ(rows.offsets, offsets);
  EXPECT_TRUE(std::filesystem::exists(options.output_dir + "/vocabulary/hashed.tsv"));
  EXPECT_FALSE(std::filesystem::exists(options.output_dir + "/vocabulary/word.tsv"));

  const auto json = Json::parse(FileBytes(options.output_dir + "/stats.json"));
  const auto& word = json["categorical"][0];
  EXPECT_EQ(word["encoding"], "HASHED_KEY");
  EXPECT_EQ(word["train"]["values"], train);
  EXPECT_EQ(word["train"]["missing"], missing);
  EXPECT_FALSE(word.contains("drift"));
  const auto near = [](const Json& part, size_t exact) {
    EXPECT_NEAR(part["distinct_estimate"].get<double>(), static_cast<double>(exact),
                0.03 * static_cast<double>(exact));
  };
  near(word["train"], words.size());
  near(json["categorical"][1]["train"], bags.size());
  near(json["categorical"][3]["train"], 300);

  // The same bytes for any threads, segments and memory, and sorted out by sharing.
  const std::string first = options.output_dir;
  for (const int threads : {1, 3}) {
    options.threads = threads;
    options.segment_bytes = 1;
    options.memory_bytes = 1 << 20;
    options.output_dir = ScratchPath("threads" + std::to_string(threads));
    EXPECT_GT(PrepareOrDie(options).segments, 1);
    ExpectSameFolders(first, options.output_dir);
  }

  // A later day has the same keys for the same values without any preparing.
  PrepareOptions day = OptionsOf(kKeySchema, {WriteScratch("day", RawTexts(0, 100))}, "later");
  day.vocabulary_from = first;
  PrepareOrDie(day);
  const Rows later = ReadAll(*OpenOrDie(day.output_dir), Split::kTrain);
  EXPECT_TRUE(std::equal(later.ids.begin(), later.ids.end(), expected.begin()));
  EXPECT_EQ(later.numeric[0], rows.numeric[0]);
}

// Line ends within quotes, in chunks that would end at them.
TEST(EngineTest, RecordsOfSeveralLinesAreRowsInEveryChunking) {
  constexpr int64_t kRecords = 20000;
  std::vector<std::string> words;
  std::string text = "a \"title\nlabel,n,\"two\nlines\",note\n";
  for (int64_t i = 0; i < kRecords; ++i) {
    words.push_back("w" + std::to_string(i * 7919 % 1009) + (i % 3 == 0 ? "\n1,2,x,\"y\"\n" : ""));
    std::string quoted;
    for (const char c : words.back()) quoted += c == '"' ? "\"\"" : std::string(1, c);
    text += std::to_string(i % 2) + "," + std::to_string(i % 977) + ",\"" + quoted + "\",";
    // Notes of every length, now and then a long one; quotes within bare values.
    text += i % 5 == 0 ? "5'9\" tall" : "\"" + std::string(i * i % 97, '\n') + "\"";
    text += i % 4999 == 4998 ? ",one more\n" : i % 7 == 0 ? "\r\n" : "\n";
    if (i % 5000 == 77) text += "0,1,w,\"" + std::string(600000, '\n') + "\",bad\n";
  }
  PrepareOptions options = OptionsOf(
      "delimiter: ',' header: true quoted: true skip_lines: 1 max_bad_rows: 8 "
      "fields { name: 'label' type: LABEL } fields { name: 'n' type: NUMERIC }"
      "fields { name: 'word' column: 'two\\nlines' type: CATEGORICAL } rows_per_block: 512",
      {WriteScratch("in.csv", text)}, "out");
  EXPECT_EQ(PrepareOrDie(options).bad_rows, 8);
  const std::string first = options.output_dir;
  const Rows rows = ReadAll(*OpenOrDie(first), Split::kTrain);
  ASSERT_EQ(rows.rows, kRecords - 4);
  std::vector<std::string> kept;
  std::vector<int64_t> numbers;
  for (int64_t i = 0; i < kRecords; ++i) {
    if (i % 4999 == 4998) continue;
    kept.push_back(words[i]);
    numbers.push_back(i % 977);
  }
  const auto ids = PlainRanks(kept, 1);
  for (size_t row = 0; row < kept.size(); ++row) {
    ASSERT_EQ(rows.numeric[row], numbers[row]) << row;
    ASSERT_EQ(rows.ids[row], ids.at(kept[row])) << row;
  }
  for (const int threads : {1, 3}) {
    options.threads = threads;
    options.segment_bytes = 1;
    options.inputs = {threads == 1 ? WriteScratch("again.csv", text)
                                   : WriteScratch("in.gz", Gzip(text))};
    options.output_dir = ScratchPath("out" + std::to_string(threads));
    EXPECT_GT(PrepareOrDie(options).segments, 4);
    ExpectSameFolders(first, options.output_dir);
  }
}

TEST(EngineTest, SplitByFilesAndSeveralFilesASplit) {
  PrepareOptions options = SeriesOptions("by_order");
  PrepareOrDie(options);
  const std::string by_order = options.output_dir;
  const int64_t train = kRows * 6 / 10, validation = kRows / 10;
  options = OptionsOf(
      kRawSchema, {WriteScratch("a", RawTexts(0, 1000)), WriteScratch("b", RawTexts(1000, train))},
      "by_file");
  options.validation_inputs = {WriteScratch("c", RawTexts(train, train + validation))};
  options.test_inputs = {WriteScratch("d", RawTexts(train + validation, train + validation + 1)),
                         WriteScratch("e", RawTexts(train + validation + 1, kRows))};
  options.threads = 2;
  PrepareOrDie(options);
  ExpectSameFolders(by_order, options.output_dir);
}

TEST(EngineTest, SplitByHashOfTheLine) {
  PrepareOptions options =
      OptionsOf(std::string(kRawSchema) + "split { train: 0.5 validation: 0.2 test: 0.3 by: HASH }",
                {WriteScratch("series.tsv", RawTexts(0, kRows))}, "out");
  options.segment_bytes = 1;
  PrepareOrDie(options);
  std::vector<float> labels[3];
  std::vector<int64_t> integers[3];
  for (int64_t r = 0; r < kRows; ++r) {
    const RawRow row = RawRowAt(r);
    std::string line = RawText(row);
    line.pop_back();
    const double place =
        static_cast<double>(XXH3_64bits(line.data(), line.size()) >> 11) / 9007199254740992.0;
    const int split = place < 0.5 ? 0 : place < 0.7 ? 1 : 2;
    labels[split].push_back(static_cast<float>(row.label));
    integers[split].push_back(row.integer + 7);
  }
  EXPECT_NEAR(static_cast<double>(labels[1].size()) / kRows, 0.2, 0.01);
  const auto dataset = OpenOrDie(options.output_dir);
  for (int split = 0; split < 3; ++split) {
    const Rows rows = ReadAll(*dataset, static_cast<Split>(split));
    EXPECT_EQ(rows.labels, labels[split]);
    for (int64_t row = 0; row < rows.rows; ++row) {
      ASSERT_EQ(rows.ids[rows.offsets[row * 4 + 3]], integers[split][row]);
    }
  }
  const std::string first = options.output_dir;
  options.output_dir = ScratchPath("out2");
  options.threads = 3;
  PrepareOrDie(options);
  ExpectSameFolders(first, options.output_dir);
}

TEST(EngineTest, HeadersAreNoRows) {
  const std::string schema =
      "header: true delimiter: ',' max_bad_rows: 1 fields { name: 'y' type: LABEL } "
      "fields { name: 'f' type: CATEGORICAL }";
  PrepareOptions options = OptionsOf(
      schema, {WriteScratch("a.csv", "f,y\nx,1\nz,0\n"), WriteScratch("b.csv", "f,y\nx,1\nx\n")},
      "out");
  std::string warning;
  options.warn = [&](const std::string& message) { warning += message; };
  EXPECT_EQ(PrepareOrDie(options).rows[0], 3);
  EXPECT_THAT(warning, HasSubstr("b.csv:3: "));
  EXPECT_EQ(ReadAll(*OpenOrDie(options.output_dir), Split::kTrain).ids,
            (std::vector<int64_t>{1, 2, 1}));
}

TEST(EngineTest, WeightsGroupsAndTimes) {
  const std::string schema =
      "fields { name: 'y' type: LABEL } fields { name: 'w' type: WEIGHT } "
      "fields { name: 'g' type: GROUP } fields { name: 't' type: TIME }"
      "fields { name: 'f' type: CATEGORICAL }";
  const PrepareOptions options = OptionsOf(
      schema, {WriteScratch("a", "1\t0.1\tu\t-5\tx\n0\t\tu\t99\tx\n1\t2\tv\t7\ty\n")}, "out");
  PrepareOrDie(options);
  const Rows rows = ReadAll(*OpenOrDie(options.output_dir), Split::kTrain);
  EXPECT_EQ(rows.weights, (std::vector<float>{0.1f, 1, 2}));
  EXPECT_EQ(rows.times, (std::vector<int64_t>{-5, 99, 7}));
  EXPECT_EQ(rows.groups,
            (std::vector<uint64_t>{XXH3_64bits("u", 1), XXH3_64bits("u", 1), XXH3_64bits("v", 1)}));
}

TEST(EngineTest, VocabulariesOfAnEarlierSet) {
  const int64_t train = kRows * 6 / 10;
  const PrepareOptions day1 = SeriesOptions("day1");
  PrepareOrDie(day1);
  PrepareOptions day2 =
      OptionsOf(kRawSchema, {WriteScratch("day2.tsv", RawTexts(kRows, kRows + 5000))}, "day2");
  day2.vocabulary_from = day1.output_dir;
  const PrepareReport report = PrepareOrDie(day2);
  const auto ids = WordIds(0, train);
  const auto [mean, stddev] = MeanAndStddev(0, train);
  const auto dataset = OpenOrDie(day2.output_dir);
  ExpectRows(ReadAll(*dataset, Split::kTrain), kRows, ids, mean, stddev);
  EXPECT_EQ(dataset->info().categorical[0].ids, static_cast<int64_t>(ids.size()) + 1);
  EXPECT_EQ(FileBytes(day1.output_dir + "/vocabulary/word.tsv"),
            FileBytes(day2.output_dir + "/vocabulary/word.tsv"));
  int64_t unknown = 0, values = 0;
  for (int64_t r = kRows; r < kRows + 5000; ++r) {
    const std::string word = RawRowAt(r).word;
    values += !word.empty();
    unknown += !word.empty() && ids.count(word) == 0;
  }
  ASSERT_EQ(report.unknown_shares.size(), 2u);
  EXPECT_EQ(report.unknown_shares[0].first, "word");
  EXPECT_GT(unknown, 0);
  EXPECT_DOUBLE_EQ(report.unknown_shares[0].second,
                   static_cast<double>(unknown) / static_cast<double>(values));

  // Whatever the memory, and from a set that was made so itself.
  PrepareOptions again = day2;
  again.vocabulary_from = day2.output_dir;
  again.output_dir = ScratchPath("again");
  again.memory_bytes = 1 << 16;
  again.threads = 2;
  PrepareOrDie(again);
  ExpectSameFolders(day2.output_dir, again.output_dir);

  const std::string tsv = day1.output_dir + "/vocabulary/word.tsv";
  std::string damaged = FileBytes(tsv);
  damaged[damaged.size() / 2] ^= 1;
  std::ofstream(tsv, std::ios::binary) << damaged;
  again.output_dir = ScratchPath("damaged");
  again.vocabulary_from = day1.output_dir;
  EXPECT_THAT(Prepare(again).status().message(), HasSubstr("word.tsv: "));
}

// Words that are new on the second day, and seen twice in its training split, come behind the
// first day's, whatever the memory; those of a third day behind these.
TEST(EngineTest, VocabulariesThatGrow) {
  constexpr int64_t kFirst = 2000, kDay = 6000;
  const auto day = [](const std::string& name, int64_t begin, int64_t rows) {
    return OptionsOf(std::string(kRawSchema) + "split { train: 0.75 validation: 0.25 }",
                     {WriteScratch(name + ".tsv", RawTexts(begin, begin + rows))}, name);
  };
  PrepareOptions day1 = day("day1", 0, kFirst);
  PrepareOrDie(day1);
  std::map<std::string, int64_t> ids = WordIds(0, kFirst * 3 / 4);
  const auto [mean, stddev] = MeanAndStddev(0, kFirst * 3 / 4);
  // Adds the words that rows [begin, end) bring.
  const auto grow = [&ids](int64_t begin, int64_t end) {
    std::vector<std::string> words;
    for (int64_t r = begin; r < end; ++r) {
      const RawRow row = RawRowAt(r);
      for (const std::string& word : row.bag) {
        if (ids.count(word) == 0) words.push_back(word);
      }
      if (ids.count(row.word) == 0) words.push_back(row.word);
    }
    const auto known = static_cast<int64_t>(ids.size());
    for (const auto& [word, rank] : PlainRanks(words, 2)) ids[word] = known + rank;
    return static_cast<int64_t>(ids.size()) - known;
  };

  PrepareOptions day2 = day("day2", kFirst, kDay);
  day2.vocabulary_from = day1.output_dir;
  day2.grow = true;
  PrepareOrDie(day2);
  ASSERT_GT(grow(kFirst, kFirst + kDay * 3 / 4), 100);
  const auto grown = OpenOrDie(day2.output_dir);
  ExpectRows(ReadAll(*grown, Split::kTrain), kFirst, ids, mean, stddev);
  ExpectRows(ReadAll(*grown, Split::kValidation), kFirst + kDay * 3 / 4, ids, mean, stddev);
  EXPECT_EQ(grown->info().categorical[0].ids, static_cast<int64_t>(ids.size()) + 1);
  EXPECT_EQ(grown->info().categorical[1].ids, static_cast<int64_t>(ids.size()) + 1);
  const std::string file = "/vocabulary/word.tsv";
  EXPECT_TRUE(FileBytes(day2.output_dir + file).starts_with(FileBytes(day1.output_dir + file)));
  PrepareOptions again = day2;
  again.output_dir = ScratchPath("again");
  again.memory_bytes = 1 << 16;
  again.threads = 2;
  PrepareOrDie(again);
  ExpectSameFolders(day2.output_dir, again.output_dir);

  PrepareOptions day3 = day("day3", kFirst + kDay, kDay);
  day3.vocabulary_from = day2.output_dir;
  day3.grow = true;
  PrepareOrDie(day3);
  ASSERT_GT(grow(kFirst + kDay, kFirst + kDay + kDay * 3 / 4), 0);
  const auto last = OpenOrDie(day3.output_dir);
  ExpectRows(ReadAll(*last, Split::kTrain), kFirst + kDay, ids, mean, stddev);
  const DatasetInfo::Categorical& word = last->info().categorical[0];
  ASSERT_EQ(word.grown_from.size(), 2u);
  const auto first = OpenOrDie(day1.output_dir);
  EXPECT_EQ(word.grown_from[0].checksum, first->info().categorical[0].vocabulary);
  EXPECT_EQ(word.grown_from[0].ids, first->info().categorical[0].ids);
  EXPECT_EQ(word.grown_from[1].checksum, grown->info().categorical[0].vocabulary);
  EXPECT_TRUE(last->info().categorical[1].grown_from.empty());  // it has no table of its own
  // Without a new word, the vocabulary is the same one.
  day3.vocabulary_from = day3.output_dir;
  day3.output_dir = ScratchPath("same");
  PrepareOrDie(day3);
  const auto same = OpenOrDie(day3.output_dir);
  EXPECT_EQ(same->info().categorical[0].vocabulary, word.vocabulary);
  EXPECT_EQ(same->info().categorical[0].grown_from.size(), 2u);
}

TEST(EngineTest, WhatCannotGrow) {
  PrepareOptions options = OptionsOf(
      "fields { name: 'y' type: LABEL } fields { name: 'f' type: CATEGORICAL encoding: HASH "
      "buckets: 9 }",
      {WriteScratch("a", "1\tx\n")}, "out");
  options.grow = true;
  EXPECT_EQ(Prepare(options).status().message(),
            "--grow adds to the vocabularies of --vocabulary_from, which is missing");
  options.vocabulary_from = "anything";
  EXPECT_THAT(Prepare(options).status().message(),
              HasSubstr("--grow: no field of the schema has a vocabulary"));
}

TEST(EngineTest, VocabularyOfOtherFieldsIsRefused) {
  const std::string label = "fields { name: 'y' type: LABEL } ";
  const std::string path = WriteScratch("a", "1\tx\n");
  const PrepareOptions made =
      OptionsOf(label + "fields { name: 'f' type: CATEGORICAL }", {path}, "m");
  PrepareOrDie(made);
  const auto message_of = [&](const std::string& fields) {
    PrepareOptions options = OptionsOf(label + fields, {path}, "out");
    options.vocabulary_from = made.output_dir;
    const Status status = Prepare(options).status();
    EXPECT_EQ(status.code(), StatusCode::kUser);
    return status.message();
  };
  EXPECT_THAT(message_of("fields { name: 'g' type: CATEGORICAL }"),
              HasSubstr("has the field f, the schema g"));
  EXPECT_THAT(message_of("fields { name: 'f' type: NUMERIC }"),
              HasSubstr("has 0 numeric fields, the schema 1"));
  EXPECT_THAT(message_of("fields { name: 'f' type: CATEGORICAL encoding: HASH buckets: 9 }"),
              HasSubstr("has a vocabulary of field f"));
  EXPECT_THAT(message_of("fields { name: 'f' type: CATEGORICAL encoding: HASHED_KEY }"),
              HasSubstr("encodes field f as vocabulary, the schema as hashed_key"));
}

TEST(EngineTest, Statistics) {
  const PrepareOptions options = SeriesOptions("out");
  PrepareOrDie(options);
  const auto json = Json::parse(FileBytes(options.output_dir + "/stats.json"));
  const int64_t train = kRows * 6 / 10;
  std::map<std::string, int64_t> words[2];  // training, test
  int64_t positives = 0, missing = 0, empty = 0;
  for (int64_t r = 0; r < kRows; ++r) {
    const RawRow row = RawRowAt(r);
    if (r < train) {
      positives += row.label;
      missing += row.number < 0;
      empty += row.bag.empty();
      ++words[0][row.word];
    } else if (r >= train + kRows / 10) {
      ++words[1][row.word];
    }
  }
  EXPECT_EQ(json["splits"]["train"]["rows"], train);
  EXPECT_EQ(json["splits"]["train"]["positives"], positives);
  const auto& number = json["numeric"][0];
  EXPECT_EQ(number["train"]["missing"], missing);
  EXPECT_EQ(number["train"]["count"], train - missing);
  EXPECT_EQ(number["train"]["max"], 869);
  const auto [mean, stddev] = MeanAndStddev(0, train);
  EXPECT_DOUBLE_EQ(number["train"]["mean"].get<double>(), mean);
  EXPECT_NEAR(number["train"]["stddev"].get<double>(), stddev, 1e-9 * stddev);
  const auto& word = json["categorical"][0];
  EXPECT_EQ(word["train"]["missing"], words[0][""]);
  EXPECT_EQ(word["train"]["distinct"], words[0].size() - 1);
  EXPECT_EQ(word["test"]["distinct"], words[1].size() - 1);
  EXPECT_EQ(json["categorical"][1]["train"]["empty"], empty);
  std::pair<std::string, int64_t> most;
  for (const auto& [value, count] : words[0]) {
    if (!value.empty() && count > most.second) most = {value, count};
  }
  EXPECT_EQ(word["top"][0]["value"], most.first);
  EXPECT_EQ(word["top"][0]["train"], most.second);
  EXPECT_EQ(word["top"][0]["test"], words[1][most.first]);
  EXPECT_EQ(word["top"].size(), 10u);
  EXPECT_GE(json["categorical"][3]["top"][0]["value"].get<int64_t>(),
            0);  // the integer, not its id
  EXPECT_LT(json["categorical"][3]["top"][0]["value"].get<int64_t>(), 300);

  std::vector<int64_t> histograms[2];
  for (const auto& [value, count] : words[1]) words[0].try_emplace(value, 0);
  for (const auto& [value, count] : words[0]) {
    histograms[0].push_back(count);
    histograms[1].push_back(words[1].count(value) ? words[1][value] : 0);
  }
  EXPECT_NEAR(word["drift"]["test"].get<double>(),
              HistogramDivergence(histograms[0], histograms[1]), 1e-12);
}

TEST(EngineTest, DivergenceOfHistograms) {
  EXPECT_EQ(HistogramDivergence({1, 2, 3}, {2, 4, 6}), 0);
  EXPECT_DOUBLE_EQ(HistogramDivergence({5, 0}, {0, 3}), 1);
  EXPECT_EQ(HistogramDivergence({5, 0}, {0, 0}), 0);
  // p = (1, 0), q = (1/2, 1/2): 1/2 log2(4/3) + 1/4 log2(2/3) + 1/4 log2(2).
  EXPECT_NEAR(HistogramDivergence({7, 0}, {2, 2}),
              0.5 * std::log2(4.0 / 3) + 0.25 * std::log2(2.0 / 3) + 0.25, 1e-14);
}

}  // namespace
}  // namespace elastor
