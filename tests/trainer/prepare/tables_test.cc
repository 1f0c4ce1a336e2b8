#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/floating_point.h"
#include "core/base/text.h"
#include "tests/trainer/prepare/scratch.h"
#include "trainer/data/arrow/table_source.h"
#include "trainer/data/sized_text.h"
#include "trainer/prepare/guess/guess.h"
#include "trainer/prepare/prepare.h"
#include "trainer/prepare/rows/value_text.h"
#include "trainer/prepare/table_columns.h"

namespace elastor {
namespace {

using testing::HasSubstr;

// The files were written by pyarrow. rows.csv has the same rows as rows.parquet, rows.arrow,
// reversed.parquet (columns in reverse, other pages) and both parts together.
std::string Table(const std::string& name) { return "tests/trainer/prepare/tables/" + name; }

constexpr char kTableSchema[] = R"(
    name: "t" delimiter: "," header: true quoted: true
    split { by: HASH hash_field: "user" train: 0.8 validation: 0.1 test: 0.1 }
    fields { name: "label" type: LABEL }
    fields { name: "user" type: CATEGORICAL }
    fields { name: "price" type: NUMERIC transform: STANDARDIZE }
    fields { name: "price_text" column: "price" type: CATEGORICAL encoding: HASH buckets: 1000 }
    fields { name: "x" type: NUMERIC transform: STANDARDIZE }
    fields { name: "x_text" column: "x" type: CATEGORICAL encoding: HASH buckets: 100000 }
    fields { name: "n" type: NUMERIC transform: LOG2_STANDARDIZE }
    fields { names: ["city", "cat", "flag", "day", "dec"] type: CATEGORICAL }
    fields {
      name: "hour" column: "t" type: CATEGORICAL transform: HOUR time_format: YYYY_MM_DD_HH_MM_SS
    }
    fields { name: "t" type: TIME time_format: YYYY_MM_DD_HH_MM_SS }
    fields { name: "tags" type: MULTI_HOT }
    fields { name: "nums" type: SEQUENCE }
    rows_per_block: 16)";

// By keys alone, of columns of texts, integers, numbers, dates and lists.
constexpr char kTableKeysSchema[] = R"(
    delimiter: "," header: true quoted: true split { by: HASH hash_field: "user" train: 0.8 validation: 0.2 }
    fields { name: "label" type: LABEL }
    fields { name: "user" type: CATEGORICAL encoding: IDENTITY_KEY }
    fields { names: ["price", "city", "cat", "flag", "day", "dec"] type: CATEGORICAL
             encoding: HASHED_KEY }
    fields { name: "hour" column: "t" type: CATEGORICAL transform: HOUR encoding: IDENTITY_KEY
             time_format: YYYY_MM_DD_HH_MM_SS }
    fields { name: "tags" type: MULTI_HOT encoding: HASHED_KEY }
    fields { name: "nums" type: SEQUENCE encoding: IDENTITY_KEY })";

// Rows of several users, with lists made of their earlier rows, and negatives beside them.
constexpr char kLogSchema[] = R"(
    delimiter: "," header: true quoted: true split { train: 0.7 test: 0.3 }
    negatives { of: "cat" user: "user" per_positive: 2 }
    history { name: "before" of: "cat" by: "user" order: "t" max_length: 4 }
    fields { name: "t" type: TIME time_format: YYYY_MM_DD_HH_MM_SS }
    fields { names: ["user", "cat", "city"] type: CATEGORICAL }
    fields { name: "before" type: SEQUENCE shares: "cat" }
    fields { name: "tags" type: MULTI_HOT })";

class TablesTest : public testing::Test {
 protected:
  void SetUp() override {
    const Status status = OpenTable(Table("rows.parquet")).status();
    if (status.message().find("tools/install_arrow.sh") == std::string::npos) return;
    GTEST_SKIP() << "Arrow's library is not installed: " << status.message();
  }
};

// What a set consists of, by name.
std::map<std::string, std::string> FilesOf(const std::string& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    files[entry.path().lexically_relative(folder)] = FileBytes(entry.path());
  }
  return files;
}

std::map<std::string, std::string> Prepared(const std::vector<std::string>& inputs, int threads = 1,
                                            const char* schema = kTableSchema) {
  PrepareOptions options = OptionsOf(schema, inputs, "out");
  options.threads = threads;
  const auto report = Prepare(options);
  EXPECT_TRUE(report.ok()) << report.status().message();
  return FilesOf(options.output_dir);
}

// A record of the whole file: its columns between bars, an item of a list behind each comma.
std::vector<std::string> Records(const std::string& path, int64_t step) {
  auto file = OpenTable(path);
  EXPECT_TRUE(file.ok()) << file.status().message();
  std::vector<int> places;
  for (size_t i = 0; i < (*file)->columns.size(); ++i) {
    if ((*file)->columns[i].is_readable) places.push_back(static_cast<int>(i));
  }
  std::vector<std::string> records;
  for (size_t group = 0; group < (*file)->groups.size(); ++group) {
    std::string wrong, text;
    TextTable table;
    const auto rows = (*file)->Read(static_cast<int>(group), places, {}, &wrong);
    for (int64_t left = (*file)->groups[group].rows; left > 0; left -= table.rows) {
      wrong = rows->Next(std::min(left, step), &text, &table);
      EXPECT_EQ(wrong, "");
      if (!wrong.empty()) return records;
      for (int64_t row = 0; row < table.rows; ++row) {
        std::string& record = records.emplace_back();
        for (const TextColumn& column : table.columns) {
          std::string_view value = column.Text(row, text);
          while (column.is_list && !value.empty()) StrAppend(&record, ",", TakeText(&value));
          StrAppend(&record, value, "|");
        }
      }
    }
  }
  return records;
}

TEST_F(TablesTest, TheSameRowsAsTextGiveTheSameSet) {
  const auto expected = Prepared({Table("rows.csv")});
  ASSERT_GE(expected.size(), 10u);
  for (const int threads : {1, 3}) {
    for (const char* name : {"rows.parquet", "rows.arrow", "reversed.parquet"}) {
      EXPECT_EQ(Prepared({Table(name)}, threads), expected) << name << " " << threads;
    }
    EXPECT_EQ(Prepared({Table("part-0.parquet"), Table("part-1.parquet")}, threads), expected);
  }
  const auto keys = Prepared({Table("rows.csv")}, 1, kTableKeysSchema);
  EXPECT_EQ(keys.size(), 5u);  // three splits, meta.json and stats.json
  for (const char* name : {"rows.parquet", "rows.arrow", "reversed.parquet"}) {
    EXPECT_EQ(Prepared({Table(name)}, 2, kTableKeysSchema), keys) << name;
  }
  const auto log = Prepared({Table("rows.csv")}, 1, kLogSchema);
  EXPECT_GE(log.size(), 7u);
  EXPECT_EQ(Prepared({Table("rows.parquet")}, 2, kLogSchema), log);
}

// Pages with and without dictionaries and nulls, some of them in one column, and each encoding.
TEST_F(TablesTest, PagesOfEveryKindGiveTheSameSetAsText) {
  constexpr char kSchema[] = R"(
      delimiter: "," header: true split { train: 0.8 test: 0.2 }
      fields { name: "label" type: LABEL }
      fields { names: ["coded", "coded_all", "plain", "plain_all", "half", "delta", "lengths",
                       "none", "packed"] type: CATEGORICAL min_count: 1 }
      fields { names: ["i", "i_all", "d", "split"] type: NUMERIC transform: LOG2_STANDARDIZE })";
  const auto expected = Prepared({Table("pages.csv")}, 1, kSchema);
  ASSERT_GE(expected.size(), 10u);
  EXPECT_EQ(Prepared({Table("pages.parquet")}, 2, kSchema), expected);
  const std::vector<std::string> records = Records(Table("pages.parquet"), 1);
  ASSERT_EQ(records.size(), 600u);
  for (const int64_t step : {7, 250}) EXPECT_EQ(Records(Table("pages.parquet"), step), records);
}

TEST_F(TablesTest, EveryTypeHasItsText) {
  const std::string bytes("\xff\0", 2);
  const std::vector<std::string> expected = {
      "-128|-9223372036854775808|0|1|0.099975586|0.1|0.0001|1e-05|0|12.50|1" +
          std::string(40, '0') + "|a,b\n\"c\"||ü|" + bytes +
          "|ab|0001-01-01|1969-12-31|1969-12-31 23:59:59|2014-10-21 05:00:00.25|"
          "2014-10-21 05:00:00.000001|2014-10-21 05:00:00.5|2014-10-21 05:00:00.25Z|05:01:01|"
          "23:59:59.999999|-5||a|7|,a|b,,,c|,1,,-2|,0.5,2|,x,y|,a|,1|",
      "127|9223372036854775807|18446744073709551615|0|-2|16777216|1e+16|9007199254740994|"
      "0.3333333333333333|-0.05|-7||x|x|cd|2014-10-21|9999-12-31|2014-10-21 05:00:00|"
      "2014-10-21 05:00:00|0000-01-01 00:00:00|1970-01-01 00:00:00.000000001|"
      "2014-10-21 05:00:00Z|00:00:00|00:00:00.000001|7||b|7||,3|,1,|,x|||",
      std::string(8, '|') + "inf" + std::string(26, '|')};
  for (const int64_t step : {1, 2, 3}) {
    const std::vector<std::string> found = Records(Table("kinds.arrow"), step);
    ASSERT_EQ(found.size(), 3u);
    EXPECT_EQ(found[0], expected[0]);
    EXPECT_EQ(found[1], expected[1]);
    EXPECT_EQ(found[2], expected[2]);
  }
  // Without the types that Parquet has not.
  EXPECT_THAT(
      Records(Table("kinds.parquet"), 3)[0],
      HasSubstr("|2014-10-21 05:00:00.25Z|05:01:01|23:59:59.999999|a|7|,a|b,,,c|,1,,-2|,0.5,2|"));
}

TEST_F(TablesTest, RareValuesHaveTheirText) {
  const std::vector<std::string> expected = {"1|,a,,b|,1.5,|0.0000000000|0|1e-45|5e-324|\xff|",
                                             "0|,||0.0000000001|5000|-1e-45|-2.5e-320|a\xc3|",
                                             "1||,2,,3|-0.0000000012|-123000|0|0||",
                                             "0|,,c||100000000.0000000000|1000|1|-1|b|"};
  const uint32_t before = FloatingPoint::Get();
  FloatingPoint::Set(FloatingPoint::kCanonical);  // as trainers' threads
  const std::vector<std::string> found = Records(Table("odd.arrow"), 3);
  FloatingPoint::Set(before);
  EXPECT_EQ(found, expected);
  EXPECT_THAT(Records(Table("int96.parquet"), 3),
              testing::ElementsAre("9999-12-31 01:02:03|", "1600-01-01 00:00:00.5|",
                                   "2014-10-21 05:00:00|"));
}

TEST_F(TablesTest, MissingItemsKeepTheirPlacesAsInText) {
  const auto prepared = [](const std::string& input) {
    return Prepared({input}, 1,
                    "header: true quoted: true delimiter: ',' split { train: 1 } "
                    "fields { name: 'label' type: LABEL } "
                    "fields { name: 'l' type: SEQUENCE keep_missing: true min_count: 1 "
                    "list: BRACKETS } fields { name: 'k' type: SEQUENCE min_count: 1 }");
  };
  EXPECT_EQ(prepared(Table("odd.arrow")),
            prepared(WriteScratch("odd.csv",
                                  "label,l,k\n1,\"['a', None, 'b']\",1.5\n0,[None],\n1,,2|3\n"
                                  "0,\"[None, 'c']\",\n")));
}

TEST_F(TablesTest, MapsAreTwoLists) {
  // label, m.key, m.value, w.key, w.value, deep.key; the values of `deep` are lists.
  const std::vector<std::string> expected = {"1|,a,b|,1,|,7|,0.5|,k|", "0|||,8,9|,1,2.5||",
                                             "1||||||", "0|,|,3||||",
                                             "1|,c,a,c|,-4,5,6|,7|,0.1|,l|"};
  for (const char* name : {"maps.parquet", "maps.arrow"}) {
    for (const int64_t step : {1, 2, 5}) EXPECT_EQ(Records(Table(name), step), expected) << name;
  }
  const auto prepared = [](const std::string& input) {
    return Prepared({input}, 1,
                    "header: true quoted: true delimiter: ',' split { train: 1 } "
                    "fields { name: 'label' type: LABEL } "
                    "fields { name: 'ids' column: 'w.key' type: MULTI_HOT min_count: 1 } "
                    "fields { name: 'm.key' type: SEQUENCE min_count: 1 }");
  };
  EXPECT_EQ(prepared(Table("maps.parquet")),
            prepared(WriteScratch("maps.csv",
                                  "label,w.key,m.key\n1,7,a|b\n0,8|9,\n1,,\n0,,\n1,7,c|a|c\n")));
  const auto report =
      Prepare(OptionsOf("header: true fields { name: 'label' type: LABEL } "
                        "fields { name: 'deep.value' type: MULTI_HOT }",
                        {Table("maps.parquet")}, "out"));
  EXPECT_THAT(report.status().message(), HasSubstr("has the type 'map<string, list<"));
}

// 100 lists of 500 times a number, and as many of one text of 20,000 bytes: encodings make nothing
// of them.
TEST_F(TablesTest, LongListsMakeSmallChunks) {
  for (const char* name : {"long.parquet", "long.arrow"}) {
    const auto file = OpenTable(Table(name));
    ASSERT_TRUE(file.ok()) << file.status().message();
    EXPECT_GE((*file)->groups[0].bytes, 100 * 20'000) << name;
    TableColumns columns;
    columns.places = {0};
    EXPECT_LE(ChunkRows((*file)->groups[0], columns, 200'000, 1000), 10) << name;
  }
}

// A row that is null spans 2^31 items, so that the places of the others need 64 bits.
TEST_F(TablesTest, ListsBehindManyItems) {
  EXPECT_THAT(Records("tests/trainer/prepare/far_lists.arrow", 2),
              testing::ElementsAre("1||", "0|,0,1|", "1||", "0|,0,1,0|"));
}

// The borders: 2^53, the ends of int64 and uint64, -0, denormals, the ends of float, nulls, NaN,
// and values that a float cannot hold.
TEST_F(TablesTest, NumbersAreThoseOfTheirTexts) {
  std::map<std::string, int> given_as_numbers, given_as_integers;
  for (const char* name : {"borders.parquet", "kinds.arrow", "rows.arrow", "reversed.parquet"}) {
    const auto file = OpenTable(Table(name));
    ASSERT_TRUE(file.ok()) << file.status().message();
    for (size_t i = 0; i < (*file)->columns.size(); ++i) {
      const TableColumn& column = (*file)->columns[i];
      if (!column.is_readable) continue;
      for (size_t group = 0; group < (*file)->groups.size(); ++group) {
        std::string wrong, text;
        TextTable table;
        const std::vector<int> places(3, static_cast<int>(i));
        const auto rows =
            (*file)->Read(static_cast<int>(group), places,
                          {ColumnForm::kNumbers, ColumnForm::kText, ColumnForm::kIntegers}, &wrong);
        ASSERT_EQ(rows->Next((*file)->groups[group].rows, &text, &table), "");
        const std::vector<int64_t>& integers = table.columns[2].integers;
        given_as_integers[column.type] += !integers.empty();
        for (size_t row = 0; row < integers.size(); ++row) {
          const std::string expected =
              integers[row] == TextColumn::kNone ? "" : std::to_string(integers[row]);
          EXPECT_EQ(table.columns[1].Text(static_cast<int64_t>(row), text), expected);
        }
        const std::vector<double>& numbers = table.columns[0].numbers;
        if (numbers.empty()) continue;
        ++given_as_numbers[column.type];
        ASSERT_EQ(std::ssize(numbers), table.rows);
        for (int64_t row = 0; row < table.rows; ++row) {
          const std::string_view value = table.columns[1].Text(row, text);
          double expected = std::numeric_limits<double>::quiet_NaN();
          EXPECT_TRUE(value.empty() || ParseNumber(value, &expected)) << value;
          EXPECT_EQ(std::bit_cast<uint64_t>(numbers[row]), std::bit_cast<uint64_t>(expected))
              << name << " " << column.name << " " << value;
        }
      }
    }
  }
  // Columns and row groups; not those of double that hold an infinity or 1e39.
  const std::map<std::string, int> expected = {
      {"int8", 5}, {"int32", 2}, {"int64", 5}, {"uint64", 3}, {"double", 7}};
  EXPECT_EQ(given_as_numbers, expected);
  // Not the column of int64 that holds the least one, nor those of uint64 beyond int64.
  EXPECT_EQ(given_as_integers["int8"], 5);
  EXPECT_EQ(given_as_integers["double"], 0);
  EXPECT_LT(given_as_integers["int64"], 5);
  EXPECT_LT(given_as_integers["uint64"], 3);
}

// Bad rows leave gaps in columns that are taken whole.
TEST_F(TablesTest, BadRowsBesideWholeColumns) {
  constexpr char kSchema[] = R"(
      delimiter: "," header: true quoted: true max_bad_rows: 100 rows_per_block: 4
      fields { name: "label" type: LABEL }
      fields { name: "far" type: NUMERIC }
      fields { names: ["i", "u", "f"] type: CATEGORICAL min_count: 1 }
      fields { name: "d" type: NUMERIC transform: LOG2 })";
  const auto expected = Prepared({Table("borders.csv")}, 1, kSchema);
  EXPECT_THAT(expected.at("stats.json"), testing::Not(testing::ContainsRegex("\"bad_rows\": ?0")));
  EXPECT_EQ(Prepared({Table("borders.parquet")}, 1, kSchema), expected);
  // Labels that are none.
  const auto message = [](const char* input, int max_bad_rows) {
    const auto report = Prepare(OptionsOf(StrCat(R"(
        delimiter: "," header: true quoted: true
        fields { name: "y" column: "i" type: LABEL }
        fields { name: "f" type: CATEGORICAL } max_bad_rows: )",
                                                 max_bad_rows),
                                          {Table(input)}, "out"));
    const std::string text = report.status().message();
    return text.substr(std::min(text.find("found"), text.size()));
  };
  EXPECT_THAT(message("borders.parquet", 0), HasSubstr("'9007199254740991', expected 0, 1 or -1"));
  EXPECT_EQ(message("borders.parquet", 0), message("borders.csv", 0));
  EXPECT_THAT(message("borders.parquet", 9), HasSubstr("found '1000000000000000', expected 0"));
}

// Six batches of 25,000 rows, a dictionary with a null among its values.
TEST_F(TablesTest, BatchesOfAnArrowFileAreUnitsOfWork) {
  const auto file = OpenTable(Table("batches.arrow"));
  ASSERT_TRUE(file.ok()) << file.status().message();
  ASSERT_EQ((*file)->groups.size(), 2u);
  EXPECT_EQ((*file)->groups[0].rows, 75'000);
  std::string text = "label,city,user\n";
  for (int i = 0; i < 150'000; ++i) {
    const int city = i / 7 % 5;
    const std::string name = i % 11 == 0 || city == 4 ? "" : std::string(1, char('a' + city));
    StrAppend(&text, i % 2, ",", name, ",", i / 1000, "\n");
  }
  constexpr char kSchema[] = R"(
      delimiter: "," header: true split { train: 0.9 validation: 0.1 }
      fields { name: "label" type: LABEL }
      fields { names: ["city", "user"] type: CATEGORICAL })";
  const auto expected = Prepared({WriteScratch("batches.csv", text)}, 1, kSchema);
  EXPECT_EQ(Prepared({Table("batches.arrow")}, 3, kSchema), expected);
}

TEST_F(TablesTest, NumbersAtTheBordersGiveTheSameSetAsText) {
  constexpr char kSchema[] = R"(
      delimiter: "," header: true quoted: true max_bad_rows: 100
      fields { name: "label" type: LABEL }
      fields { names: ["i", "u", "d", "f", "far"] type: NUMERIC transform: STANDARDIZE }
      fields { name: "n" column: "i" type: NUMERIC transform: LOG2 }
      fields { name: "d_text" column: "d" type: CATEGORICAL encoding: HASH buckets: 1000000 })";
  EXPECT_EQ(Prepared({Table("borders.parquet")}, 2, kSchema),
            Prepared({Table("borders.csv")}, 2, kSchema));
  // Where no field reads its text.
  const std::string numbers(kSchema, std::string_view(kSchema).find("fields { name: \"d_text"));
  const auto expected = Prepared({Table("borders.csv")}, 2, numbers.c_str());
  EXPECT_EQ(Prepared({Table("borders.parquet")}, 2, numbers.c_str()), expected);
  const std::string missing = numbers + "null: '7'";
  EXPECT_NE(Prepared({Table("borders.csv")}, 2, missing.c_str()), expected);
  EXPECT_EQ(Prepared({Table("borders.parquet")}, 2, missing.c_str()),
            Prepared({Table("borders.csv")}, 2, missing.c_str()));
}

TEST_F(TablesTest, UsersMistakes) {
  const std::string rows = Table("rows.parquet");
  const std::string damaged = WriteScratch("damaged.parquet", FileBytes(rows).substr(0, 5000));
  std::string flipped = FileBytes(Table("part-0.parquet"));
  for (size_t at = 200; at < 260; ++at) flipped[at] = static_cast<char>(~flipped[at]);
  const std::string broken = WriteScratch("broken.parquet", flipped);
  const std::string label = "header: true fields { name: 'label' type: LABEL } ";
  const struct {
    std::string schema;
    std::vector<std::string> inputs;
    const char* expected;
  } kMistakes[] = {
      {label + "fields { name: 'extra' type: CATEGORICAL }",
       {rows},
       "column 'extra', which field extra of type CATEGORICAL reads, has the type 'struct<"},
      {label + "fields { name: 'tags' type: CATEGORICAL }",
       {rows},
       "expected one value a row there; bags read lists"},
      {label + "fields { name: 'cities' type: CATEGORICAL }",
       {rows},
       "rows.parquet: field cities: found columns 'label', 'user', 'price'"},
      {label + "fields { name: 'cat' type: CATEGORICAL } split { by: HASH train: 0.5 test: 0.5 }",
       {rows},
       "expected hash_field in the schema's split"},
      {label + "fields { name: 'cat' type: CATEGORICAL }",
       {rows, Table("rows.csv")},
       "rows.csv is text, and tests/trainer/prepare/tables/rows.parquet is a Parquet or Arrow"},
      {"layout: LIBSVM fields { name: 'x' type: NUMERIC }",
       {rows},
       "expected text for layout LIBSVM"},
      {label + "fields { name: 'cat' type: CATEGORICAL }",
       {damaged},
       "cannot be read as a Parquet or Arrow file: Parquet magic bytes not found in footer"},
      {label, {WriteScratch("cut.parquet", "PAR1")}, "the first bytes of a Parquet file"},
      {label,
       {WriteScratch("stream", std::string("\xff\xff\xff\xff\x10\0\0\0", 8))},
       "an Arrow stream"},
      {kTableSchema, {broken}, "broken.parquet: cannot be read as a Parquet or Arrow file: "},
      {"header: true fields { name: 'n' type: LABEL } fields { name: 'cat' type: CATEGORICAL }",
       {rows},
       "field n: found '"},
  };
  for (const auto& mistake : kMistakes) {
    const auto report = Prepare(OptionsOf(mistake.schema, mistake.inputs, "out"));
    EXPECT_EQ(report.status().code(), StatusCode::kUser) << mistake.expected;
    EXPECT_THAT(report.status().message(), HasSubstr(mistake.expected));
    EXPECT_EQ(std::ranges::count(report.status().message(), '\n'), 0);
  }
}

TEST_F(TablesTest, BadRowsAreTold) {
  PrepareOptions options = OptionsOf(
      "header: true max_bad_rows: 1000 fields { name: 'flag' type: LABEL } "
      "fields { name: 'tags' type: MULTI_HOT }",
      {Table("rows.parquet")}, "out");
  std::vector<std::string> warnings;
  options.warn = [&](const std::string& warning) { warnings.push_back(warning); };
  const auto report = Prepare(options);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->bad_rows + report->rows[0], 80);
  EXPECT_GT(report->bad_rows, 0);
  EXPECT_THAT(warnings, testing::Contains(HasSubstr("field flag: found '', expected 0, 1 or -1")));
}

TEST_F(TablesTest, ASchemaIsGuessedFromTheTypes) {
  const auto schema = GuessSchema({Table("part-0.parquet"), Table("part-1.parquet")}, "label");
  ASSERT_TRUE(schema.ok()) << schema.status().message();
  EXPECT_THAT(*schema, HasSubstr("names: [\"tags\", \"nums\"] type: MULTI_HOT"));
  EXPECT_THAT(*schema, HasSubstr("by: HASH hash_field: \"t\""));
  EXPECT_THAT(*schema, HasSubstr("type: TIME time_format: YYYY_MM_DD_HH_MM_SS"));
  EXPECT_THAT(*schema, HasSubstr("# Left out: 'extra' of type 'struct<"));
  const auto report = Prepare(OptionsOf(*schema, {Table("rows.arrow")}, "out"));
  EXPECT_TRUE(report.ok()) << report.status().message();
  // No column of odd.arrow tells enough rows apart, so that the split goes by the order.
  const auto few = GuessSchema({WriteScratch("none.csv", ""), Table("odd.arrow")}, "label");
  ASSERT_TRUE(few.ok()) << few.status().message();
  EXPECT_THAT(*few, HasSubstr("has 30 of them.\nsplit { train: 0.8 validation: 0.1 test: 0.1 }"));
}

TEST_F(TablesTest, ASideTableMayBeOne) {
  const auto prepared = [](const std::string& file) {
    const std::string schema =
        "header: true delimiter: ',' quoted: true fields { name: 'label' type: LABEL } "
        "fields { name: 'code' type: CATEGORICAL } fields { name: 'name' type: CATEGORICAL } "
        "lookup { file: '" +
        file + "' by: 'code' key: 'code' columns: 'name' }";
    const PrepareOptions options =
        OptionsOf(schema, {WriteScratch("rows.csv", "label,code\n1,7\n0,8\n1,7\n0,9\n")}, "out");
    const auto report = Prepare(options);
    EXPECT_TRUE(report.ok()) << report.status().message();
    return FileBytes(options.output_dir + "/train.rows");
  };
  EXPECT_EQ(prepared(Table("names.parquet")),
            prepared(WriteScratch("names.csv", "name,code\nseven,7\n\"eight\n8\",8\n")));
}

}  // namespace
}  // namespace elastor
