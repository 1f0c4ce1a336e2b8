// Histories: what a row's user did before it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "core/base/text.h"
#include "tests/trainer/prepare/scratch.h"
#include "trainer/prepare/rows/history_columns.h"

namespace elastor {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

PrepareReport PreparedWell(const PrepareOptions& options) {
  const auto report = Prepare(options);
  EXPECT_TRUE(report.ok()) << report.status().message();
  return report.ok() ? *report : PrepareReport();
}

constexpr char kLogFormat[] = "delimiter: ',' header: true quoted: true ";
constexpr char kLogHeader[] = "rating,user,time,item,category\n";

struct LogRow {
  std::string rating, user, item, category;
  int time = 0;

  bool is_bad() const { return rating == "x"; }
  std::string Text() const {
    return rating + "," + user + "," + std::to_string(time) + "," + item + "," + category;
  }
};

// Few users and times, so that there are many ties and repetitions.
std::vector<LogRow> MakeLog(int rows) {
  std::vector<LogRow> log;
  uint64_t state = 1;
  const auto draw = [&state](uint64_t below) {
    state = state * 6364136223846793005 + 1442695040888963407;
    return static_cast<int>((state >> 33) % below);
  };
  for (int i = 0; i < rows; ++i) {
    LogRow row;
    row.rating = draw(40) == 0 ? "x" : std::to_string(1 + draw(9) / 2) + (draw(4) ? "" : ".5");
    row.user = draw(20) == 0 ? "" : "u" + std::to_string(draw(5) ? draw(300) : draw(3));
    row.time = 1400000000 + draw(rows / 20 + 1);
    row.item = draw(15) == 0 ? "" : "i" + std::to_string(draw(40) * draw(40));
    row.category = "c" + std::to_string(draw(12));
    log.push_back(row);
  }
  return log;
}

// The last `most` rows of the user before a row's time that are rated so or better, by definition.
std::vector<const LogRow*> EarlierRows(const std::vector<LogRow>& log, const LogRow& row,
                                       double least_rating, size_t most) {
  std::vector<const LogRow*> earlier;
  if (row.user.empty()) return earlier;
  for (const LogRow& other : log) {
    if (!other.is_bad() && other.user == row.user && other.time < row.time && !other.item.empty() &&
        std::atof(other.rating.c_str()) >= least_rating) {
      earlier.push_back(&other);
    }
  }
  std::ranges::stable_sort(earlier, {}, &LogRow::time);
  if (earlier.size() > most) earlier.erase(earlier.begin(), earlier.end() - most);
  return earlier;
}

std::string Listed(const std::vector<const LogRow*>& rows, std::string LogRow::*value) {
  std::vector<std::string> texts;
  for (const LogRow* row : rows) texts.push_back("'" + row->*value + "'");
  return "\"[" + Join(texts, ", ") + "]\"";
}

TEST(HistoriesTest, EqualTheirDefinitionForAnyThreadsAndMemory) {
  const std::vector<LogRow> log = MakeLog(4000);
  const size_t cut = 1500;  // between two files
  std::string rows[2] = {kLogHeader, kLogHeader}, joined = "rating,user,time,item,category,a,b,c\n";
  for (size_t i = 0; i < log.size(); ++i) {
    rows[i >= cut] += log[i].Text() + "\n";
    const auto good = EarlierRows(log, log[i], 4, 5), all = EarlierRows(log, log[i], 0, 64);
    joined += log[i].Text() + "," + Listed(good, &LogRow::item) + "," +
              Listed(good, &LogRow::category) + "," + Listed(all, &LogRow::item) + "\n";
  }
  const std::string schema =
      std::string(kLogFormat) +
      "max_bad_rows: 1000 rows_per_block: 512 split { by: TIME train: 0.8 test: 0.2 } "
      "fields { name: 'rating' type: LABEL at_least: 4 } fields { name: 'user' type: GROUP }"
      "fields { name: 'time' type: TIME } fields { name: 'item' type: CATEGORICAL min_count: 2 }"
      "fields { name: 'category' type: CATEGORICAL } ";
  const char* fields[] = {"fields { name: 'a' type: SEQUENCE shares: 'item' ",
                          "fields { name: 'b' type: SEQUENCE shares: 'category' ",
                          "fields { name: 'c' type: SEQUENCE encoding: HASH buckets: 1000 "};
  std::string plain = schema, derived = schema;
  for (const char* field : fields) {
    plain += std::string(field) + "list: BRACKETS }";
    derived += std::string(field) + "}";
  }
  const PrepareOptions expected = OptionsOf(plain, {WriteScratch("joined", joined)}, "expected");
  const PrepareReport report = PreparedWell(expected);
  EXPECT_GT(report.bad_rows, 50);
  for (const int threads : {1, 2, 5}) {
    PrepareOptions options = OptionsOf(
        derived +
            "history { name: 'a' of: 'item' by: 'user' order: 'time' where: 'rating >= 4' "
            "          max_length: 5 beside { name: 'b' of: 'category' } }"
            "history { name: 'c' of: 'item' by: 'user' }",
        {WriteScratch("1", threads == 2 ? Gzip(rows[0]) : rows[0]), WriteScratch("2", rows[1])},
        "out");
    options.threads = threads;
    // Runs of 500 rows, or one.
    options.memory_bytes = threads == 1 ? int64_t{1} << 30 : threads * 100 << 10;
    EXPECT_EQ(PreparedWell(options).bad_rows, report.bad_rows);
    for (const char* part : {"/train.rows", "/test.rows", "/vocabulary/item.tsv"}) {
      EXPECT_FALSE(FileBytes(expected.output_dir + part).empty()) << part;
      EXPECT_EQ(FileBytes(options.output_dir + part), FileBytes(expected.output_dir + part))
          << part << ", threads " << threads;
    }
    EXPECT_FALSE(std::filesystem::exists(options.output_dir + ".partial"));
  }
}

constexpr char kHashedFields[] =
    "fields { name: 'rating' type: LABEL at_least: 4 } fields { name: 'user' type: IGNORED }"
    "fields { name: 'time' type: TIME } fields { name: 'item' type: IGNORED }"
    "fields { name: 'category' type: IGNORED }"
    "fields { name: 'h' type: SEQUENCE encoding: HASH buckets: 1000000 } ";

// Every row from a time on gets another item and rating. No value of the history of a row up to
// this time changes, and some of later rows do.
TEST(HistoriesTest, NoRowKnowsItsFuture) {
  std::vector<LogRow> log = MakeLog(4000);
  std::erase_if(log, [](const LogRow& row) { return row.is_bad(); });
  std::ranges::stable_sort(log, {}, &LogRow::time);
  const int now = log[log.size() / 2].time;
  const auto histories_of = [&](const std::vector<LogRow>& rows) {
    std::string text = kLogHeader;
    for (const LogRow& row : rows) text += row.Text() + "\n";
    const PrepareOptions options =
        OptionsOf(std::string(kLogFormat) + kHashedFields +
                      "history { name: 'h' of: 'item' by: 'user' where: 'rating >= 3' }",
                  {WriteScratch("log", text)}, "out");
    PreparedWell(options);
    const Rows read = ReadAll(*OpenOrDie(options.output_dir), Split::kTrain);
    std::vector<std::vector<int64_t>> histories;
    for (size_t i = 0; i < rows.size(); ++i) {
      histories.emplace_back(read.ids.begin() + read.offsets[i],
                             read.ids.begin() + read.offsets[i + 1]);
    }
    return histories;
  };
  std::vector<LogRow> changed = log;
  for (LogRow& row : changed) {
    if (row.time < now) continue;
    row.item = "other" + row.item;
    row.rating = row.rating < "3" ? "5" : "1";
  }
  const auto before = histories_of(log), after = histories_of(changed);
  size_t same = 0, ids = 0;
  for (size_t i = 0; i < log.size(); ++i) {
    if (log[i].time <= now) {
      EXPECT_EQ(before[i], after[i]) << i;
    }
    same += before[i] == after[i];
    ids += before[i].size();
  }
  EXPECT_LT(same, log.size() * 9 / 10);
  EXPECT_GT(ids, 4 * log.size());
}

// Rows to predict have histories, and are in none. No header; a value of a side table.
TEST(HistoriesTest, RowsWithoutLabelsAreInNoHistory) {
  const std::string makers = WriteScratch("makers", "a\tX\nb\tY\nc\tX\n");
  PrepareOptions options = OptionsOf(
      "fields { name: 'y' type: LABEL } fields { name: 'user' type: GROUP }"
      "fields { name: 't' type: TIME } fields { name: 'item' type: CATEGORICAL }"
      "fields { name: 'items' column: 'h' type: SEQUENCE shares: 'item' }"
      "fields { name: 'makers' column: 'm' type: SEQUENCE }"
      "lookup { file: '" +
          makers +
          "' by: 'item' key: 'k' columns: ['k', 'maker'] }"
          "history { name: 'h' of: 'item' by: 'user' where: 'y = 1' max_length: 3"
          "  beside { name: 'm' of: 'maker' } }",
      {WriteScratch("log", "1\tu\t10\ta\n1\tu\t20\tb\n0\tu\t30\tc\n1\tv\t10\td\n1\tu\t20\ta\n")},
      "out");
  options.test_inputs = {WriteScratch("rows", "u\t21\tc\nu\t40\ta\nv\t20\tb\nw\t20\ta\n")};
  options.unlabelled_test = true;
  PreparedWell(options);
  const std::unique_ptr<Dataset> dataset = OpenOrDie(options.output_dir);
  // Items: a 1, b 2, d 3, c 4, as a is there twice and c once, and in histories b twice.
  const Rows log = ReadAll(*dataset, Split::kTrain);
  const std::string items = FileBytes(options.output_dir + "/vocabulary/item.tsv");
  const std::string names = FileBytes(options.output_dir + "/vocabulary/makers.tsv");
  const auto text_of = [](const std::string& vocabulary, int64_t id) {
    size_t begin = 0;
    for (; id > 1; --id) begin = vocabulary.find('\n', begin) + 1;
    return vocabulary.substr(begin, vocabulary.find_first_of("\t\n", begin) - begin);
  };
  const auto texts = [&](const Rows& rows, int64_t row, int64_t field) {
    std::string all;
    for (int64_t i = rows.offsets[3 * row + field]; i < rows.offsets[3 * row + field + 1]; ++i) {
      const int64_t id = rows.ids[i];
      all += id == 0 ? "-" : text_of(field == 2 ? names : items, id);
    }
    return all;
  };
  const auto histories = [&](const Rows& rows, int64_t count, int64_t field) {
    std::vector<std::string> all;
    for (int64_t row = 0; row < count; ++row) all.push_back(texts(rows, row, field));
    return all;
  };
  EXPECT_THAT(histories(log, 5, 1), ElementsAre("", "a", "aba", "", "a"));
  EXPECT_THAT(histories(log, 5, 2), ElementsAre("", "X", "XYX", "", "X"));
  const Rows test = ReadAll(*dataset, Split::kTest);
  EXPECT_THAT(histories(test, 4, 1), ElementsAre("aba", "aba", "d", ""));
  EXPECT_THAT(histories(test, 4, 2), ElementsAre("XYX", "XYX", "-", ""));
}

// How long before the row each value was, in binary digits of seconds.
TEST(HistoriesTest, TimeGapsStandBesideTheValues) {
  PrepareOptions options = OptionsOf(
      "fields { name: 'y' type: LABEL } fields { name: 'user' type: GROUP }"
      "fields { name: 't' type: TIME } fields { name: 'item' type: IGNORED }"
      "fields { name: 'items' column: 'h' type: SEQUENCE encoding: IDENTITY buckets: 10 }"
      "fields { name: 'gaps' column: 'g' type: SEQUENCE encoding: IDENTITY buckets: 64 }"
      "history { name: 'h' of: 'item' by: 'user' beside { name: 'g' time_gap: true } }",
      {WriteScratch("log", "1\tu\t86400\t7\n1\tu\t0\t5\n0\tv\t9\t3\n0\tu\t-1\t4\n1\tu\t1\t9\n")},
      "out");
  PreparedWell(options);
  const Rows rows = ReadAll(*OpenOrDie(options.output_dir), Split::kTrain);
  const auto bag = [&](int64_t row, int64_t field) {
    return std::vector<int64_t>(rows.ids.begin() + rows.offsets[2 * row + field],
                                rows.ids.begin() + rows.offsets[2 * row + field + 1]);
  };
  EXPECT_THAT(bag(0, 0), ElementsAre(4, 5, 9));
  EXPECT_THAT(bag(0, 1), ElementsAre(17, 17, 17));  // 86,401, 86,400 and 86,399 s
  EXPECT_THAT(bag(1, 1), ElementsAre(1));
  EXPECT_THAT(bag(2, 1), ElementsAre());
  EXPECT_THAT(bag(4, 0), ElementsAre(4, 5));
  EXPECT_THAT(bag(4, 1), ElementsAre(2, 1));
}

TEST(HistoriesTest, ConditionsCompareNumbersAndTexts) {
  const auto holds = [](const std::string& where, const char* text) {
    const auto condition = RowCondition::Parse(where);
    EXPECT_TRUE(condition.ok()) << where;
    return condition.ok() && condition->Holds(text);
  };
  for (const char* where : {"a = 4", "a != 3.5", "a >= 4", "a<=4", " a > 3 ", "a<4.5"}) {
    EXPECT_TRUE(holds(where, "4.0")) << where;
    EXPECT_FALSE(holds(where, "")) << where;
  }
  // Both are 2^53 as doubles.
  EXPECT_TRUE(holds("a = 9007199254740993", "9007199254740993"));
  EXPECT_FALSE(holds("a = 9007199254740993", "9007199254740992"));
  EXPECT_TRUE(holds("a != '<unk>'", "x"));
  for (const char* where : {"a = 5", "a != 4", "a >= 4.5", "a<=3", "a > 4", "a<4"}) {
    EXPECT_FALSE(holds(where, "4.0")) << where;
  }
  EXPECT_TRUE(holds("what was done = 'buy '", "buy "));
  EXPECT_FALSE(holds("what was done = buy", "buy "));
  EXPECT_TRUE(holds("a != buy", "pv"));
  EXPECT_FALSE(holds("a > 3", "many"));
  EXPECT_TRUE(holds("a != 3", "many"));
}

TEST(HistoriesTest, MistakesAreOneLine) {
  const std::string log =
      WriteScratch("log", std::string(kLogHeader) + "5,u,10,a,c\n5,u,ten,a,c\n");
  const auto message_of = [&](const std::string& histories, std::string fields = kHashedFields) {
    auto schema = ParseSchema(kLogFormat + fields + histories, "s");
    Status status = schema.status();
    if (status.ok()) {
      PrepareOptions options;
      options.schema = *schema;
      options.inputs = {log};
      options.output_dir = ScratchPath("out");
      status = Prepare(options).status();
    }
    EXPECT_EQ(status.code(), StatusCode::kUser) << histories;
    EXPECT_EQ(status.message().find('\n'), std::string::npos);
    return status.message();
  };
  const auto history = [](const std::string& rest) {
    return "history { name: 'h' " + rest + " } ";
  };
  const std::string whole = history("of: 'item' by: 'user'");
  const std::string found = "found columns 'rating', 'user', 'time', 'item', 'category'; expected ";
  EXPECT_EQ(message_of(history("of: 'movie' by: 'user'")),
            log + ":1: history h: of: " + found + "one 'movie'");
  EXPECT_EQ(message_of(history("of: 'item' by: 'uid'")),
            log + ":1: history h: by: " + found + "one 'uid'");
  EXPECT_EQ(message_of(history("of: 'item' by: 'user' where: 'stars >= 4'")),
            log + ":1: history h: where: " + found + "one 'stars'");
  EXPECT_EQ(message_of(history("of: 'h' by: 'user'")),
            log + ":1: history h: of is 'h', which a history makes; expected a column of the rows");
  for (const char* where : {"rating >> 4", "rating", "= 4", "rating == 4", "a = 1 and b = 2"}) {
    EXPECT_THAT(message_of(history(StrCat("of: 'item' by: 'user' where: '", where, "'"))),
                StrCat("s: history h: where is '", where,
                       "'; expected a column, one of = != < <= > >=, and a constant: "
                       "\"rating >= 4\""));
  }
  EXPECT_EQ(message_of(history("of: 'item' by: 'user' where: 'rating >= good'")),
            "s: history h: where is 'rating >= good'; expected a number after >=");
  EXPECT_THAT(message_of(whole),
              HasSubstr(log + ":3: column 3 (time): found 'ten', expected a time, "));
  EXPECT_EQ(message_of(history("of: 'item' by: 'user' order: 'rating'")),
            "s: history h: order is 'rating'; expected 'time', the field of type TIME");
  EXPECT_EQ(message_of(history("of: 'item' by: 'user' max_length: 0")),
            "s: history h: max_length is 0; expected 1 to 65536");
  EXPECT_EQ(message_of(whole + whole),
            "s: history h: another column has the name 'h'; expected one of that name");
  EXPECT_EQ(message_of(history("of: 'item'")),
            "s: history h: by is missing; expected a column of the rows");
  EXPECT_EQ(message_of("history { name: 'g' of: 'item' by: 'user' }"),
            "s: history g: no field reads 'g'; expected one of type SEQUENCE with this name");
  EXPECT_EQ(message_of("history { name: 'item' of: 'item' by: 'user' }"),
            "s: field item: type is IGNORED; expected SEQUENCE, as it reads a history");
  EXPECT_EQ(
      message_of(whole, "fields { name: 'rating' type: LABEL } fields { name: 'h' }"),
      "s: history h: no field of type TIME; expected one, which tells which rows are earlier");
  const std::string shared =
      "fields { name: 'rating' type: LABEL } fields { name: 'time' type: TIME } ";
  EXPECT_THAT(message_of(whole, shared + "fields { name: 'item' type: MULTI_HOT } "
                                         "fields { name: 'h' type: SEQUENCE shares: 'item' } "),
              HasSubstr("expected a field whose values are those of the history"));
  EXPECT_THAT(
      message_of("history { name: 'h' of: 'item' by: 'user' beside { name: 'b' of: 'category' } } ",
                 shared + "fields { name: 'h' type: SEQUENCE } fields { name: 'b' type: SEQUENCE "
                          "encoding: IDENTITY buckets: 9 } "),
      HasSubstr("expected another, as values of `beside` may be missing"));
  const std::string gap =
      "history { name: 'h' of: 'item' by: 'user' beside { name: 'g' time_gap: "
      "true of: 'item' } } ";
  const std::string both =
      "fields { name: 'h' type: SEQUENCE } fields { name: 'g' type: SEQUENCE } ";
  EXPECT_EQ(message_of(gap, shared + both),
            "s: history h: beside: of and time_gap are both given; expected one of them");
  EXPECT_EQ(
      message_of("history { name: 'h' of: 'item' by: 'user' beside { name: 'g' time_gap: true "
                 "} } ",
                 both + shared),
      "s: field g: time_gap is up to the row's time; expected the field of type TIME before "
      "it");
}

// The rows of long histories come in small chunks, and the first one holds the lines to skip.
TEST(HistoriesTest, ManyLinesToSkipBeforeLongHistories) {
  std::string rows;
  for (int i = 0; i < 600; ++i) rows += "# a line to skip, with commas,,,, " + StrCat(i) + "\n";
  rows += std::string(kLogHeader) + "5,u,1400000010,a,c\n1,u,1400000020,b,c\n";
  const PrepareReport report =
      PreparedWell(OptionsOf(std::string(kLogFormat) + "skip_lines: 600 " + kHashedFields +
                                 "history { name: 'h' of: 'item' by: 'user' max_length: 65536 }",
                             {WriteScratch("log", rows)}, "skipped"));
  EXPECT_EQ(report.rows[0] + report.rows[1] + report.rows[2], 2);
}

}  // namespace
}  // namespace elastor
