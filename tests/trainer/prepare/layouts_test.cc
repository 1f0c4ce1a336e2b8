// Delimited layouts from files to what the trainer reads.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <xxhash.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "tests/trainer/prepare/real_data.h"
#include "tests/trainer/prepare/scratch.h"
#include "trainer/prepare/guess/guess.h"
#include "trainer/prepare/media/page_text.h"
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
              HasSubstr("in: found 0 lines in the first 65536 bytes, expected 2 lines to skip"));
}

// heart_scale's form: features that are 0 are left out, and classes are 1 and 2.
TEST(LayoutsTest, LibsvmByIndexIsTheSameAsDenseColumns) {
  const std::string fields =
      "fields { name: 'label' type: LABEL at_least: 2 } fields { name: 'q' type: GROUP }"
      "fields { names: 'f1..f3' type: NUMERIC transform: STANDARDIZE }";
  PrepareOptions pairs =
      OptionsOf("layout: LIBSVM " + fields,
                {WriteScratch("s", "2 qid:a 3:-1 1:.5\n1 qid:b\n2 2:8 qid:a\n")}, "pairs");
  pairs.test_inputs = {WriteScratch("t", "7 qid:a 3:4\n2:1\n")};
  pairs.unlabelled_test = true;
  PrepareOptions columns = OptionsOf(
      fields, {WriteScratch("c", "2\ta\t.5\t0\t-1\n1\tb\t0\t0\t0\n2\ta\t0\t8\t0\n")}, "columns");
  columns.test_inputs = {WriteScratch("d", "a\t0\t0\t4\n\t0\t1\t0\n")};
  columns.unlabelled_test = true;
  for (const PrepareOptions& options : {pairs, columns}) {
    const auto report = Prepare(options);
    ASSERT_TRUE(report.ok()) << report.status().message();
  }
  for (const char* file : {"/train.rows", "/test.rows"}) {
    EXPECT_EQ(FileBytes(pairs.output_dir + file), FileBytes(columns.output_dir + file)) << file;
  }
}

// Two chunks of rows of ten days, in no order of time; several have the same second.
struct ShuffledLog {
  std::vector<int64_t> times;
  std::vector<std::string> lines;

  ShuffledLog() {
    uint64_t state = 7;
    for (int i = 0; i < 40000; ++i) {
      state = state * 6364136223846793005 + 1442695040888963407;
      times.push_back(1413849600 + static_cast<int64_t>(state >> 40) % (10 * 86400));
      lines.push_back(std::to_string(state >> 63) + "\t" + std::to_string(times.back()) + "\tu" +
                      std::to_string((state >> 33) % 5000) + "\n");
    }
  }
  // The lines of each split, as it begins.
  std::vector<std::string> Split(int64_t validation, int64_t test) const {
    std::vector<std::string> texts(3);
    for (size_t i = 0; i < lines.size(); ++i) {
      texts[times[i] >= test ? 2 : times[i] >= validation ? 1 : 0] += lines[i];
    }
    return texts;
  }
};

constexpr char kTimedFields[] =
    "fields { name: 'y' type: LABEL } fields { name: 't' type: TIME }"
    "fields { name: 'u' type: CATEGORICAL min_count: 2 } ";

// As the user would cut the log into three files.
TEST(LayoutsTest, ASplitByTimeIsThatOfFilesCutByTime) {
  const ShuffledLog log;
  std::string all;
  for (const std::string& line : log.lines) all += line;
  const std::string input = WriteScratch("all", all);
  std::vector<int64_t> sorted = log.times;
  std::ranges::sort(sorted);
  const int64_t day9 = 1413849600 + 8 * 86400, day10 = day9 + 86400;
  const int64_t from = sorted[32000], test_from = sorted[36000];
  const struct {
    const char* split;
    int64_t validation, test;
  } kCases[] = {{"validation_from: '2014-10-29' test_from: '2014-10-30'", day9, day10},
                {"test_from: '2014-10-30T00:00:00'", day10, day10},
                {"train: 0.8 validation: 0.1 test: 0.1", from, test_from},
                {"train: 0.8 validation: 0.1 test: 0.1 whole_days: true", from - from % 86400,
                 test_from - test_from % 86400},
                {"train: 0.8 validation: 0.2", from, INT64_MAX}};
  for (const auto& each : kCases) {
    const std::vector<std::string> texts = log.Split(each.validation, each.test);
    PrepareOptions files = OptionsOf(kTimedFields, {WriteScratch("train", texts[0])}, "files");
    if (!texts[1].empty()) files.validation_inputs = {WriteScratch("validation", texts[1])};
    if (!texts[2].empty()) files.test_inputs = {WriteScratch("test", texts[2])};
    PrepareOptions times = OptionsOf(
        kTimedFields + std::string("split { by: TIME ") + each.split + " }", {input}, "times");
    times.threads = 3;
    times.segment_bytes = 1 << 19;
    for (const PrepareOptions& options : {files, times}) {
      const auto report = Prepare(options);
      ASSERT_TRUE(report.ok()) << report.status().message();
    }
    for (const char* file :
         {"/train.rows", "/validation.rows", "/test.rows", "/vocabulary/u.tsv"}) {
      EXPECT_EQ(FileBytes(times.output_dir + file), FileBytes(files.output_dir + file))
          << each.split << file;
    }
  }
}

// As a stable sort of the file's lines; in a memory for a few hundred rows and in one for all.
TEST(LayoutsTest, RowsInOrderOfTimeAreThoseOfASortedFile) {
  const ShuffledLog log;
  std::vector<size_t> order(log.lines.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, {}, [&](size_t i) { return log.times[i] / 3600; });
  std::string all, sorted;
  // Hours, so that many rows have one time; other values tell them apart.
  const auto line_of = [&](size_t i) {
    return std::to_string(i % 2) + "\t" + std::to_string(log.times[i] / 3600 * 3600) + "\tu" +
           std::to_string(i % 1000) + "\t" + std::to_string(i % 7) + "|" + std::to_string(i % 11) +
           "\t0.5\n";
  };
  for (size_t i = 0; i < order.size(); ++i) {
    all += line_of(i);
    sorted += line_of(order[i]);
  }
  const std::string fields = std::string(kTimedFields) +
                             "fields { name: 'b' type: SEQUENCE }"
                             "fields { name: 'w' type: WEIGHT } rows_per_block: 1000 ";
  const std::string split = "split { by: TIME train: 0.8 validation: 0.1 test: 0.1 } ";
  const PrepareOptions expected =
      OptionsOf(fields + split, {WriteScratch("sorted", sorted)}, "expected");
  ASSERT_TRUE(Prepare(expected).ok());
  for (const int64_t memory : {int64_t{200} << 10, int64_t{1} << 30}) {
    PrepareOptions options =
        OptionsOf(fields + split + "sort_by_time: true", {WriteScratch("all", all)}, "out");
    options.threads = 3;
    options.memory_bytes = memory;
    const auto report = Prepare(options);
    ASSERT_TRUE(report.ok()) << report.status().message();
    for (const char* file : {"/train.rows", "/validation.rows", "/test.rows"}) {
      EXPECT_EQ(FileBytes(options.output_dir + file), FileBytes(expected.output_dir + file))
          << file;
    }
  }
}

TEST(LayoutsTest, ASplitByTimeWithoutRowsIsRefused) {
  const std::string input = WriteScratch("in", "0\t1413849600\tu\n1\t1413849601\tu\n");
  const auto message_of = [&](const std::string& split) {
    return Prepare(OptionsOf(kTimedFields + ("split { by: TIME " + split + " }"), {input}, "out"))
        .status()
        .message();
  };
  const std::string rows = "the rows are of 2014-10-21 00:00:00 to 2014-10-21 00:00:01, ";
  EXPECT_EQ(
      message_of("test_from: '2014-10-22'"),
      "split: no test rows: " + rows + "test from 2014-10-22 00:00:00; expected times within them");
  EXPECT_EQ(message_of("validation_from: '2014-10-21'"),
            "split: no training rows: " + rows +
                "validation from 2014-10-21 00:00:00; expected times within them");
  PrepareOptions both = OptionsOf(
      kTimedFields + std::string("split { by: TIME test_from: '2014-10-22' }"), {input}, "out");
  both.test_inputs = {WriteScratch("other", "0\t1413849600\tu\n")};
  EXPECT_THAT(Prepare(both).status().message(), HasSubstr("remove `split` from the schema"));
}

std::string TextOrDie(const std::string& page) {
  const auto text = TextOfPage(page);
  EXPECT_TRUE(text.ok()) << text.status().message();
  return text.ok() ? *text : "";
}

TEST(LayoutsTest, NoTextOfAPageIsLost) {
  for (const int depth : {10, 300, 100000}) {
    std::string page = "<html><body><p>first</p>";
    for (int i = 0; i < depth; ++i) page += "<div>";
    page += "inner <b>words</b>";
    for (int i = 0; i < depth; ++i) page += "</div>";
    EXPECT_EQ(TextOrDie(page + "<p>last</p></body></html>"), "first\ninner words\nlast\n");
  }
  const std::string zero(1, '\0');
  EXPECT_EQ(
      TextOrDie("<html><body><p>before" + zero + "</p>" + zero + "<p>behind</p></body></html>"),
      "before\nbehind\n");
  EXPECT_EQ(TextOrDie("<html>a<script>no</script> <style>no</style>b<br>c &amp; d</html>"),
            "a b\nc & d\n");
  EXPECT_EQ(TextOrDie("<html>foo<wbr>bar <b>c</b></html>"), "foobar c\n");
}

TEST(LayoutsTest, PagesAreReadInTheirEncoding) {
  const std::string cafe = "caf\xc3\xa9", bad = "\xef\xbf\xbd";
  const auto body = [](const std::string& head, const std::string& text) {
    return TextOrDie("<html><head>" + head + "</head><body>" + text + "</body></html>");
  };
  // One bad byte does not change how all that follows is read.
  EXPECT_EQ(body("", cafe + " \xff " + cafe + " \xe2\x82\xac"),
            cafe + " " + bad + " " + cafe + " \xe2\x82\xac\n");
  EXPECT_EQ(body("<title>" + cafe + "</title><meta charset=utf-8>", "\xff " + cafe),
            cafe + "\n" + bad + " " + cafe + "\n");
  EXPECT_EQ(TextOrDie("\xef\xbb\xbf<html>" + cafe + "</html>"), cafe + "\n");
  EXPECT_EQ(body("", "caf\xe9 \xe9t\xe9"), cafe + " \xc3\xa9t\xc3\xa9\n");  // Latin-1
  const std::string type = "<meta http-equiv=\"Content-Type\" content=\"text/html; charset=";
  EXPECT_EQ(body(type + "ISO-8859-1\">", "caf\xe9"), cafe + "\n");
  // A byte that windows-1252 does not have, behind quotes that Latin-1 does not have.
  EXPECT_EQ(body(type + "windows-1252\">", "\x93x\x94 \x81 y"),
            "\xe2\x80\x9cx\xe2\x80\x9d " + bad + " y\n");
  EXPECT_EQ(TextOrDie("<?xml version=\"1.0\" encoding='iso-8859-1'?><html>caf\xe9</html>"),
            cafe + "\n");
  EXPECT_EQ(
      TextOfPage("<html><meta charset=\"klingon\">x</html>").status().message(),
      "the page declares the encoding 'klingon'; expected one that this machine's iconv knows");
}

TEST(LayoutsTest, PagesBeginWithCommentsToo) {
  const auto text_of = [](const std::string& bytes) {
    const PrepareOptions options =
        OptionsOf("layout: TEXT text { length: 2 }", {WriteScratch("in", bytes)}, "out");
    const auto report = Prepare(options);
    EXPECT_TRUE(report.ok()) << report.status().message();
    const Rows rows = ReadAll(*OpenOrDie(options.output_dir), Split::kTrain);
    return std::string(rows.ids.begin(), rows.ids.end());
  };
  EXPECT_THAT(text_of("<!-- saved --> <!-- twice -->\n<p>a page</p>"),
              testing::StartsWith("a page"));
  EXPECT_THAT(text_of("<?php echo '<p>'; ?>\n<!-- saved -->\n<h2>a page</h2>"),
              testing::AllOf(testing::HasSubstr("page"), testing::Not(testing::HasSubstr("<"))));
  EXPECT_THAT(text_of("<article><p>a page</p></article>"), testing::Not(testing::HasSubstr("<")));
  EXPECT_THAT(text_of("<!-- a note -->\nno page < p"), testing::StartsWith("<!-- a note -->\nno"));
  EXPECT_THAT(text_of("<premise is no element"), testing::StartsWith("<premise is"));
  const Status table =
      Prepare(OptionsOf("fields { name: 'y' type: LABEL }",
                        {WriteScratch("in", "<!-- x --><html><p>404</p></html>")}, "table"))
          .status();
  EXPECT_THAT(table.message(), HasSubstr("in: found an HTML or XML page"));
}

// Every byte but the first is a label once, of the byte before it.
TEST(LayoutsTest, WindowsOfATextPredictTheNextByte) {
  const std::string text = "Aristotle born\n";
  const PrepareOptions options =
      OptionsOf("layout: TEXT text { length: 4 }", {WriteScratch("in.txt", text)}, "out");
  const auto report = Prepare(options);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->text_bytes, 14);
  const auto dataset = OpenOrDie(options.output_dir);
  const Rows rows = ReadAll(*dataset, Split::kTrain);
  ASSERT_EQ(rows.rows, 4);
  EXPECT_EQ(std::string(rows.ids.begin(), rows.ids.end()), text + std::string(1, '\0'));
  ASSERT_EQ(rows.labels.size(), 16u);
  EXPECT_EQ(std::string(rows.labels.begin(), rows.labels.begin() + 14), text.substr(1));
  EXPECT_TRUE(std::isnan(rows.labels[14]) && std::isnan(rows.labels[15]));
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

// What is proposed for a file, without the comments; preparing the file by it must give `rows`
// rows.
std::string Proposal(const std::string& path, int64_t rows, const std::string& label = "") {
  const auto text = GuessSchema({path}, label);
  EXPECT_TRUE(text.ok()) << text.status().message();
  if (!text.ok()) return "";
  EXPECT_EQ(*text, *GuessSchema({path}, label));
  const PrepareOptions options = OptionsOf(*text, {path}, "guessed");
  const auto report = Prepare(options);
  EXPECT_TRUE(report.ok()) << report.status().message() << *text;
  if (report.ok()) {
    EXPECT_EQ(report->rows[0] + report->rows[1] + report->rows[2], rows) << *text;
  }
  std::string lines;
  for (size_t begin = 0; begin < text->size();) {
    const size_t end = text->find('\n', begin) + 1;
    if ((*text)[begin] != '#') lines += text->substr(begin, end - begin);
    begin = end;
  }
  return lines;
}

TEST(LayoutsTest, ProposedSchemasRunAsTheyAre) {
  std::string csv = "id,age,job,tags,at,gain,same,opposite,clicked\r\n", ratings, adult;
  for (int i = 0; i < 200; ++i) {
    const int click = i * 7 % 5 == 0;
    csv += std::to_string(1000 + i) + "," + std::to_string(20 + i * 13 % 60) + "," +
           (i % 9 == 0   ? "NULL"
            : i % 2 == 0 ? "\"a,b\""
                         : "c") +
           "," + (i % 3 == 0 ? "x|y|z" : "x") + ",2014-10-" + std::to_string(10 + i % 20) +
           " 05:00:00," + (i % 4 == 0 ? std::to_string(i * i) + ".5" : "0.25") + ",k," +
           std::to_string(1 - click) + "," + std::to_string(click) + "\r\n";
    ratings += std::to_string(i % 30 + 1) + "::" + std::to_string(i * 7 % 180 + 5000) +
               "::" + std::to_string(1 + i * 11 % 5) + "::" + std::to_string(978300000 + i) + "\n";
    adult += std::to_string(17 + i * 9 % 70) + ", " +
             (i % 5 == 0   ? "?"
              : i % 2 == 0 ? "Yes"
                           : "no") +
             ", " + (i % 4 == 0 ? ">50K" : "<=50K") + "\n";
  }
  const std::string split =
      "max_bad_rows: 100\nsplit { train: 0.8 validation: 0.1 test: 0.1 by: HASH }\n";
  EXPECT_EQ(
      Proposal(WriteScratch("in.csv", csv), 200),
      "layout: DELIMITED\ndelimiter: \",\"\nheader: true\nquoted: true\nnull: \"NULL\"\n" + split +
          "fields { name: \"id\" type: IGNORED }  # another value in every row\n"
          "fields { name: \"age\" type: NUMERIC transform: STANDARDIZE }\n"
          "fields { name: \"job\" type: CATEGORICAL }\n"
          "fields { name: \"tags\" type: MULTI_HOT pooling: MEAN separator: \"|\" max_length: 3 }\n"
          "fields { name: \"at\" type: TIME time_format: YYYY_MM_DD_HH_MM_SS }\n"
          "fields {\n  name: \"at_hour\" column: \"at\"\n"
          "  type: CATEGORICAL transform: HOUR time_format: YYYY_MM_DD_HH_MM_SS\n}\n"
          "fields {\n  name: \"at_weekday\" column: \"at\"\n"
          "  type: CATEGORICAL transform: WEEKDAY time_format: YYYY_MM_DD_HH_MM_SS\n}\n"
          "fields { name: \"gain\" type: NUMERIC transform: STANDARDIZE }\n"
          "fields { name: \"same\" type: IGNORED }  # the same in all rows\n"
          "fields { name: \"opposite\" type: IGNORED }  # tells the label\n"
          "fields { name: \"clicked\" type: LABEL }\n");
  EXPECT_EQ(Proposal(WriteScratch("ratings.dat.gz", Gzip(ratings)), 200),
            "layout: DELIMITED\ndelimiter: \"::\"\n" + split +
                "fields { name: \"c1\" type: NUMERIC transform: STANDARDIZE }\n"
                "fields { name: \"c2\" type: NUMERIC transform: STANDARDIZE }\n"
                "fields { name: \"c3\" type: LABEL at_least: 4 }\n"
                "fields { name: \"c4\" type: TIME }\n"
                "fields {\n  name: \"c4_hour\" column: \"c4\"\n  type: CATEGORICAL transform: "
                "HOUR\n}\n"
                "fields {\n  name: \"c4_weekday\" column: \"c4\"\n  type: CATEGORICAL transform: "
                "WEEKDAY\n}\n");
  EXPECT_EQ(Proposal(WriteScratch("adult.test", "|1x3 Cross validator\n" + adult + "\n"), 200),
            "layout: DELIMITED\ndelimiter: \", \"\nskip_lines: 1\nnull: \"?\"\n" + split +
                "fields { name: \"c1\" type: NUMERIC transform: STANDARDIZE }\n"
                "fields { name: \"c2\" type: CATEGORICAL }\n"
                "fields { name: \"c3\" type: LABEL positive: \">50K\" negative: \"<=50K\" }\n");
  EXPECT_EQ(Proposal(WriteScratch("tsv", "1\ta\n0\tb\n1\tb\n"), 3),
            "layout: DELIMITED\ndelimiter: \"\\t\"\n" + split +
                "fields { name: \"c1\" type: LABEL }\nfields { name: \"c2\" type: CATEGORICAL "
                "min_count: 2 }\n");
  EXPECT_EQ(
      Proposal(WriteScratch("libsvm", "1 3:1 7:1\n-1 3:1\n+1 2:1 3:1 9:1\n"), 3),
      "layout: LIBSVM\n" + split + "fields { name: \"features\" type: MULTI_HOT max_length: 3 }\n");
  // A comma in the quotes of every row.
  std::string names;
  for (int i = 0; i < 60; ++i) {
    names += "\"" + std::string(i % 7 + 1, 'n') + ", Mr. x\"," + std::to_string(i % 2) + "\n";
  }
  EXPECT_EQ(Proposal(WriteScratch("names.csv", names), 60),
            "layout: DELIMITED\ndelimiter: \",\"\nquoted: true\n" + split +
                "fields { name: \"c1\" type: CATEGORICAL min_count: 2 }\n"
                "fields { name: \"c2\" type: LABEL }\n");
  // As R writes it, with the label that its user names: numbers, two rows without one.
  std::string r = "\"\",\"who\",\"delay\",\"late\"\n";
  for (int i = 0; i < 60; ++i) {
    r += "\"" + std::to_string(i + 1) + "\",\"p" + std::to_string(i % 7) + "\"," +
         (i % 30 == 3 ? "NA" : std::to_string(i % 5 * 10 - 7)) + ",\"" + (i % 4 == 0 ? "1" : "0") +
         "\"\n";
  }
  EXPECT_EQ(Proposal(WriteScratch("r.csv", r), 58, "delay"),
            "layout: DELIMITED\ndelimiter: \",\"\nheader: true\nquoted: true\nnull: \"NA\"\n"
            "max_bad_rows: 1000000000\nsplit { train: 0.8 validation: 0.1 test: 0.1 by: HASH }\n"
            "fields { name: \"who\" type: CATEGORICAL min_count: 2 }\n"
            "fields { name: \"delay\" type: LABEL at_least: 13 }\n"
            "fields { name: \"late\" type: CATEGORICAL }\n");
  const auto mistake_of = [&](const std::string& label) {
    return GuessSchema({WriteScratch("r.csv", r)}, label).status().message();
  };
  EXPECT_EQ(mistake_of("x"), "--label=x: no such column; expected one of who, delay, late");
  EXPECT_EQ(mistake_of("who"),
            "--label=who: found 7 values; expected 0 and 1, two texts, or numbers");
  const auto message_of = [](const std::string& text) {
    const Status status = GuessSchema({WriteScratch("f", text)}).status();
    EXPECT_EQ(status.code(), StatusCode::kUser);
    return status.message();
  };
  EXPECT_THAT(message_of(""), HasSubstr("f: is empty, expected rows"));
  EXPECT_THAT(message_of("hello\n"), HasSubstr("f: no delimiter makes equally many columns"));
  EXPECT_THAT(message_of("\"x\",\"b,c\"\n"), HasSubstr("f: no rows found"));
  EXPECT_THAT(message_of("a,b\n"), HasSubstr("f: no rows found"));
  EXPECT_THAT(message_of("x,1\ny,200\nz,3\n"), HasSubstr("f: no column can be the label"));
}

TEST(LayoutsTest, RealFilesByTheirProposals) {
  const struct {
    const char* file;
    int64_t rows;
    const char* label;
  } kFiles[] = {{"avazu_23k.csv.gz", 23299, "name: \"click\" type: LABEL }"},
                {"criteo_1tb_day0_10k.tsv.gz", 10000, "name: \"c1\" type: LABEL }"},
                {"frappe.test.libfm.gz", 28860, "names: \"f1..f10\""},
                {"taobao_ad_10k.csv.gz", 9999, "name: \"clk\" type: LABEL }"}};
  for (const auto& file : kFiles) {
    SKIP_WITHOUT(file.file);
    EXPECT_THAT(Proposal(DataFolder() + "/" + file.file, file.rows), HasSubstr(file.label));
  }
}

}  // namespace
}  // namespace elastor
