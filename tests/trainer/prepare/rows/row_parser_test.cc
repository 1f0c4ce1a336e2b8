#include "trainer/prepare/rows/row_parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <xxhash.h>

#include <cmath>
#include <string>
#include <vector>

#include "tests/trainer/prepare/rows/row_parser_testing.h"
#include "trainer/prepare/rows/time_text.h"
#include "trainer/prepare/rows/value_text.h"

namespace elastor {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// `header` is used by schemas with one.
ParsedChunk ParseText(const std::string& schema, const std::string& text,
                      const std::string& header = "") {
  auto parser = RowParser::Create(SchemaOf(schema), header, "in");
  EXPECT_TRUE(parser.ok()) << parser.status().message();
  ParsedChunk chunk;
  chunk.text = text;
  (*parser)->Parse(&chunk);
  return chunk;
}

std::vector<std::string> Texts(const ParsedChunk& chunk, const std::vector<uint64_t>& packed) {
  std::vector<std::string> texts;
  for (const uint64_t value : packed) texts.emplace_back(chunk.TextOf(value));
  return texts;
}

uint64_t Hash(const std::string& text) { return XXH3_64bits(text.data(), text.size()); }

const std::string kNumber = std::string(kLabel) + "fields { name: 'n' type: NUMERIC }";

TEST(RowParserTest, Numbers) {
  const ParsedChunk chunk = ParseText(
      kNumber,
      "0\t-12\n1\t+78.62\n1\t0\n0\t999999999999999\n1\t1234567890123456789\n0\t1.5e3\n1\t-.25\r\n"
      "0\t1e-400\n1\t-1e-400\n");
  EXPECT_EQ(chunk.rows, 9);
  EXPECT_THAT(chunk.numeric, ElementsAre(-12, 78.62, 0, 999999999999999, 1234567890123456789.0,
                                         1500, -0.25, 0, 0));
}

TEST(RowParserTest, NotNumbers) {
  for (const char* text :
       {"-", "1x", "x", " 1", "1 ", "nan", "inf", "1e39", "--1", "0x10", "+", "+-1", "++1"}) {
    const ParsedChunk chunk = ParseText(kNumber, std::string("0\t") + text + "\n1\t2\n");
    EXPECT_EQ(chunk.bad_rows, 1) << text;
    EXPECT_THAT(chunk.numeric, ElementsAre(2)) << text;
    EXPECT_THAT(chunk.labels, ElementsAre(1)) << text;
  }
}

TEST(RowParserTest, Labels) {
  const ParsedChunk chunk = ParseText(kLabel, "0\n1\n-1\n+1\n1.0\n0.0\n2\n\n0.5\nyes\n");
  EXPECT_THAT(chunk.labels, ElementsAre(0, 1, 0, 1, 1, 0));
  EXPECT_EQ(chunk.bad_rows, 4);
  EXPECT_EQ(chunk.bad[1].what, "column 1 (y): found '', expected 0, 1 or -1");
}

// What a first bad line says to someone whose schema does not fit the file.
std::string FirstWhat(const std::string& schema, const std::string& text) {
  const ParsedChunk chunk = ParseText(schema, text);
  EXPECT_FALSE(chunk.bad.empty());
  return chunk.bad.empty() ? "" : chunk.bad[0].what;
}

TEST(RowParserTest, ABadLineTellsWhatTheSchemaMayLack) {
  EXPECT_EQ(FirstWhat(kNumber, "0,1,2\n"),
            "found 1 columns, expected 2; the delimiter is a tab, the line has 2 times ','");
  EXPECT_EQ(FirstWhat("delimiter: ';' " + kNumber, "0\t1\n"),
            "found 1 columns, expected 2; the delimiter is ';', the line has 1 times a tab");
  EXPECT_EQ(FirstWhat(kNumber, "0\n"), "found 1 columns, expected 2; the delimiter is a tab");
  EXPECT_EQ(FirstWhat(kNumber, "0\t1\r1\t2\r\n"),
            "found 3 columns, expected 2; the line has carriage returns within");
  EXPECT_EQ(FirstWhat("delimiter: ',' " + kNumber, "0,\"1,5\"\n"),
            "found 3 columns, expected 2; values in quotes need quoted: true in the schema");
  EXPECT_EQ(FirstWhat(kNumber, "\"0\"\t1\n"),
            "column 1 (y): found '\"0\"', expected 0, 1 or -1; values in quotes need quoted: true "
            "in the schema");
  const std::string names = "; a line of column names needs header: true in the schema";
  EXPECT_EQ(FirstWhat(kNumber, "Label\tn\n"),
            "column 1 (y): found 'Label', expected 0, 1 or -1" + names);
  EXPECT_EQ(FirstWhat("fields { name: 'n' type: NUMERIC } " + std::string(kLabel), "n\ty\n"),
            "column 1 (n): found 'n', expected a number" + names);
  EXPECT_EQ(FirstWhat(kNumber, "0\t1\nyes\t1\n"), "column 1 (y): found 'yes', expected 0, 1 or -1");
}

TEST(RowParserTest, TextsForMissingNumbersAreNamed) {
  for (const char* text : {"NA", "n/a", "NULL", "None", "nan", "\\N", "-", "?"}) {
    EXPECT_EQ(FirstWhat(kNumber, std::string("0\t") + text + "\n"),
              std::string("column 2 (n): found '") + text +
                  "', expected a number, or an empty text where it is missing");
  }
  for (const char* text : {"inf", "-Infinity", "1e39", "0x10"}) {
    EXPECT_EQ(FirstWhat(kNumber, std::string("0\t") + text + "\n"),
              std::string("column 2 (n): found '") + text +
                  "', expected a decimal number within float range");
  }
}

TEST(RowParserTest, ColumnsAndEmptyLines) {
  const ParsedChunk chunk = ParseText(kNumber, "0\t1\n\n0\t1\t2\n0\n1\t\n");
  EXPECT_EQ(chunk.lines, 5);
  EXPECT_EQ(chunk.rows, 2);
  EXPECT_EQ(chunk.bad_rows, 3);
  EXPECT_EQ(chunk.bad[0].line, 1);
  EXPECT_EQ(chunk.bad[1].line, 2);
  EXPECT_THAT(chunk.bad[1].what, HasSubstr("found 3 columns, expected 2"));
  EXPECT_TRUE(std::isnan(chunk.numeric[1]));
}

// Rows of every length around the bytes that are searched at a time.
TEST(RowParserTest, DelimitersAtEveryAlignment) {
  const std::string schema = std::string(kLabel) +
                             "fields { name: 'a' type: CATEGORICAL }"
                             "fields { name: 'b' type: CATEGORICAL }";
  for (int a = 0; a < 70; ++a) {
    const std::string first(a, '\x89'), second(69 - a, '\x0b');  // bytes one bit off tab and feed
    const ParsedChunk chunk =
        ParseText(schema, "1\t" + first + "\t" + second + "\n0\t" + second + "\t\n");
    ASSERT_EQ(chunk.rows, 2);
    EXPECT_THAT(Texts(chunk, chunk.ids), ElementsAre(first, second, second, ""));
  }
}

TEST(RowParserTest, NumericTransforms) {
  const ParsedChunk chunk =
      ParseText(std::string(kLabel) +
                    "fields { name: 'a' type: NUMERIC transform: LOG2 }"
                    "fields { name: 'b' type: NUMERIC transform: LOG2_STANDARDIZE }"
                    "fields { name: 'c' type: NUMERIC transform: STANDARDIZE }",
                "0\t23255\t8\t8\n1\t-5\t2\t2\n1\t\t\t\n");
  ASSERT_EQ(chunk.numeric.size(), 9u);
  EXPECT_EQ(chunk.numeric[0], 101);  // ln(23255)^2 = 101.08
  EXPECT_EQ(chunk.numeric[1], 4);    // 4.324
  EXPECT_EQ(chunk.numeric[2], 8);
  EXPECT_EQ(chunk.numeric[3], -5);
  for (int i = 6; i < 9; ++i) EXPECT_TRUE(std::isnan(chunk.numeric[i]));
}

TEST(RowParserTest, Buckets) {
  const std::string schema = std::string(kLabel) +
                             "fields { name: 'b' type: CATEGORICAL transform: BUCKET"
                             "  boundaries: [-1, 0, 2.5] encoding: IDENTITY buckets: 4 }"
                             "fields { name: 'l' type: CATEGORICAL transform: LOG2_BUCKET"
                             "  column: 'b' }"
                             "fields { name: 'h' type: CATEGORICAL transform: LOG2_BUCKET"
                             "  column: 'b' encoding: HASH buckets: 1000 }";
  const ParsedChunk chunk =
      ParseText(schema, "0\t-1.5\n0\t-1\n0\t0\n0\t2.4\n0\t2.5\n0\t8\n0\tx\n0\t-1e19\n");
  EXPECT_EQ(chunk.rows, 6);
  std::vector<uint64_t> buckets, hashes, logs;
  for (int row = 0; row < 6; ++row) {
    buckets.push_back(chunk.ids[3 * row]);
    logs.push_back(chunk.ids[3 * row + 1]);
    hashes.push_back(chunk.ids[3 * row + 2]);
  }
  EXPECT_THAT(buckets, ElementsAre(0, 1, 2, 2, 3, 3));
  // floor below and at 2; above it floor(ln(x)^2): ln(2.4)^2 = 0.77, ln(2.5)^2 = 0.84.
  EXPECT_THAT(Texts(chunk, logs), ElementsAre("-2", "-1", "0", "0", "0", "4"));
  EXPECT_EQ(hashes[5], Hash("4") % 1000);
  EXPECT_THAT(chunk.bad[0].what, HasSubstr("column 2 (b): found 'x', expected a number"));
}

TEST(RowParserTest, MissingCategories) {
  const std::string schema = std::string(kLabel) +
                             "fields { name: 'v' type: CATEGORICAL transform: HOUR }"
                             "fields { name: 'h' type: CATEGORICAL encoding: HASH buckets: 99 }"
                             "fields { name: 'b' type: CATEGORICAL transform: BUCKET"
                             "  boundaries: 0 encoding: HASH buckets: 99 }";
  const ParsedChunk chunk = ParseText(schema, "0\t\t\t\n");
  ASSERT_EQ(chunk.rows, 1);
  EXPECT_EQ(chunk.TextOf(chunk.ids[0]), "");
  EXPECT_EQ(chunk.ids[1], Hash("") % 99);
  EXPECT_EQ(chunk.ids[2], Hash("") % 99);
  const std::string identity = std::string(kLabel) +
                               "fields { name: 'i' type: CATEGORICAL transform: HOUR"
                               "  encoding: IDENTITY buckets: 24 }";
  EXPECT_EQ(ParseText(identity, "0\t\n").bad[0].what,
            "column 2 (i): found '', expected an integer");
}

// Of fields of every type; a missing value has key 0.
TEST(RowParserTest, Keys) {
  const ParsedChunk chunk = ParseText(
      std::string(kLabel) +
          "null: 'NULL' max_bad_rows: 9 "
          "fields { name: 'h' type: CATEGORICAL encoding: HASHED_KEY }"
          "fields { name: 'i' type: CATEGORICAL encoding: IDENTITY_KEY }"
          "fields { name: 'b' type: SEQUENCE shares: 'i' keep_missing: true max_length: 3 }"
          "fields { name: 'm' type: MULTI_HOT encoding: HASHED_KEY }",
      "0\tuser_1\t18446744073709551615\t1||-1|9223372036854775808\ta|a\n"
      "0\tNULL\tNULL\t\t\n"
      "0\tx\t18446744073709551616\t\t\n"
      "0\tx\t-9223372036854775809\t\t\n"
      "0\tx\tabc\t\t\n"
      "0\tx\t1\t2|3.0\t\n");
  EXPECT_EQ(chunk.rows, 2);
  EXPECT_THAT(chunk.ids, ElementsAre(Hash("user_1"), ~uint64_t{0}, 0u, 0u));
  EXPECT_THAT(chunk.bag_ends, ElementsAre(3, 5, 5, 5));
  EXPECT_THAT(chunk.bags, ElementsAre(0u, ~uint64_t{0}, uint64_t{1} << 63, Hash("a"), Hash("a")));
  ASSERT_EQ(chunk.bad.size(), 4u);
  const std::string expected =
      ", expected an integer from -2^63 to 2^64 - 1; encoding HASHED_KEY takes any text";
  EXPECT_EQ(chunk.bad[0].what, "column 3 (i): found '18446744073709551616'" + expected);
  EXPECT_EQ(chunk.bad[1].what, "column 3 (i): found '-9223372036854775809'" + expected);
  EXPECT_EQ(chunk.bad[2].what, "column 3 (i): found 'abc'" + expected);
  EXPECT_EQ(chunk.bad[3].what, "column 4 (b): found '3.0'" + expected);
}

// The n-th pair's index, indices of triples and a bag of all indices.
TEST(RowParserTest, KeysOfPairs) {
  const std::string i = "fields { name: 'i' type: CATEGORICAL encoding: IDENTITY_KEY }";
  const std::string m = "fields { name: 'm' type: MULTI_HOT encoding: HASHED_KEY any_value: true }";
  const ParsedChunk pairs = ParseText("layout: LIBSVM " + i + m, "1 77:1 5:2 x:3\n");
  EXPECT_THAT(pairs.ids, ElementsAre(77u));
  EXPECT_THAT(pairs.bags, ElementsAre(Hash("5"), Hash("x")));
  const ParsedChunk triples = ParseText("layout: LIBFFM " + i + m, "1 2:8:2\n0 1:9:1\n");
  EXPECT_THAT(triples.ids, ElementsAre(0u, 9u));
  EXPECT_THAT(triples.bags, ElementsAre(Hash("8")));
}

// The three parts of a time that models use, all read from one column.
std::string TimeSchema(const std::string& format) {
  std::string schema = std::string(kLabel) + "fields { name: 't' type: TIME time_format: " + format;
  for (const char* part : {"HOUR", "WEEKDAY", "WEEKEND"}) {
    schema += "} fields { name: '" + std::string(part) +
              "' type: CATEGORICAL encoding: IDENTITY buckets: 24 column: 't' transform: " + part +
              " time_format: " + format;
  }
  return schema + "}";
}

TEST(RowParserTest, Times) {
  // 21 October 2014 was a Tuesday; 1 January 1970 a Thursday; 29 February 2020 a Saturday.
  const ParsedChunk avazu = ParseText(TimeSchema("YYMMDDHH"), "0\t14102105\n1\t20022923\n");
  EXPECT_THAT(avazu.times, ElementsAre(1413867600, 1583017200));
  EXPECT_THAT(avazu.ids, ElementsAre(5, 1, 0, 23, 5, 1));

  const ParsedChunk date =
      ParseText(TimeSchema("YYYY_MM_DD_HH_MM_SS"),
                "0\t2014-10-21 05:59:59\n1\t2014-10-21\n0\t1969-12-28T23:00:01\n");
  EXPECT_THAT(date.times, ElementsAre(1413871199, 1413849600, -262799));
  EXPECT_THAT(date.ids, ElementsAre(5, 1, 0, 0, 1, 0, 23, 6, 1));

  const ParsedChunk unix_time =
      ParseText(TimeSchema("UNIX_SECONDS"), "0\t0\n1\t-1\n0\t1413867600\n");
  EXPECT_THAT(unix_time.times, ElementsAre(0, -1, 1413867600));
  EXPECT_THAT(unix_time.ids, ElementsAre(0, 3, 0, 23, 2, 0, 5, 1, 0));
}

TEST(RowParserTest, DayAndMonthOfATime) {
  const std::string part =
      "} fields { name: 'a' column: 't' time_format: ISO_8601 type: CATEGORICAL ";
  const ParsedChunk chunk = ParseText(
      std::string(kLabel) + "fields { name: 't' type: TIME time_format: ISO_8601 " + part +
          "transform: DAY } fields { name: 'b' column: 't' time_format: ISO_8601 type: CATEGORICAL "
          "transform: MONTH encoding: IDENTITY buckets: 13 }",
      "1\t2014-10-21T23:00:00-02:00\n");
  EXPECT_THAT(chunk.times, ElementsAre(1413939600));
  EXPECT_EQ(chunk.TextOf(chunk.ids[0]), "22");
  EXPECT_EQ(chunk.ids[1], 10u);
}

TEST(RowParserTest, MissingValuesKeepTheirPlaces) {
  const std::string bag = " type: SEQUENCE keep_missing: true ";
  const ParsedChunk chunk =
      ParseText(std::string(kLabel) + "fields { name: 'a'" + bag + "} fields { name: 'b'" + bag +
                    "list: BRACKETS } fields { name: 'c'" + bag + "list: TRIMMED }",
                "1\tx||y|\t[None, 'q', '', nan]\t | z\n1\t\t[]\t \n");
  EXPECT_EQ(chunk.bad_rows, 0);
  EXPECT_THAT(chunk.bag_ends, ElementsAre(4, 8, 10, 10, 10, 11));
  std::vector<std::string> found;
  for (const uint64_t value : chunk.bags) found.emplace_back(chunk.TextOf(value));
  EXPECT_THAT(found, ElementsAre("x", "", "y", "", "", "q", "", "", "", "z", ""));
}

// Up to the row's time: born on 29 February 2000 and seen on 28 February and 1 March 2001; born
// after the row; a missing date.
TEST(RowParserTest, AgesOfARow) {
  const std::string born = " column: 'born' time_format: ISO_8601 type: CATEGORICAL transform: ";
  const ParsedChunk chunk =
      ParseText(std::string(kLabel) +
                    "fields { name: 't' type: TIME time_format: ISO_8601 } fields { name: 'born' "
                    "type: IGNORED }"
                    "fields { name: 'age'" +
                    born + "AGE } fields { name: 'days'" + born + "DAYS_SINCE }",
                "1\t2001-02-28T23:59:59Z\t2000-02-29T00:00:00Z\n"
                "1\t2001-03-01T00:00:00Z\t2000-02-29T00:00:00Z\n"
                "1\t2001-03-01T11:00:00Z\t2001-03-01T12:00:00Z\n"
                "1\t2001-03-01T11:00:00Z\t\n");
  std::vector<std::string> found;
  for (const uint64_t id : chunk.ids) found.emplace_back(chunk.TextOf(id));
  EXPECT_THAT(found, ElementsAre("0", "365", "1", "366", "-1", "-1", "", ""));
}

TEST(RowParserTest, TimesAsText) {
  EXPECT_EQ(TimeText(1413871199), "2014-10-21 05:59:59");
  EXPECT_EQ(TimeText(-1), "1969-12-31 23:59:59");
  EXPECT_EQ(TimeText(253402300799), "9999-12-31 23:59:59");
  EXPECT_EQ(TimeText(-62167219200), "0000-01-01 00:00:00");
}

TEST(RowParserTest, NotTimes) {
  const auto bad_rows = [](const std::string& format, std::vector<std::string> texts) {
    std::string lines;
    for (const std::string& text : texts) lines += "0\t" + text + "\n";
    const ParsedChunk chunk = ParseText(TimeSchema(format), lines);
    EXPECT_EQ(chunk.bad_rows, static_cast<int64_t>(texts.size())) << format;
    return chunk.bad[0].what;
  };
  EXPECT_EQ(bad_rows("YYMMDDHH", {"", "14102124", "14103205", "14130105", "19022900", "1410210",
                                  "141021055", "14-02105", "x"}),
            "column 2 (t): found '', expected a time, YYMMDDHH");
  EXPECT_EQ(bad_rows("YYYY_MM_DD_HH_MM_SS",
                     {"2014-02-29", "2014-10-21 24:00:00", "2014-10-21 05:60:00",
                      "2014-10-21 05:00:60", "2014-10-21 05", "2014/10/21", "-014-10-21", ""}),
            "column 2 (t): found '2014-02-29', expected a time, YYYY-MM-DD HH:MM:SS");
  EXPECT_EQ(
      bad_rows("UNIX_SECONDS", {"1500000000000", "1.x", "", "99999999999999999999", "253402300800",
                                "-62167219201"}),
      "column 2 (t): found '1500000000000', expected a time, seconds since 1970, of the years 0 to "
      "9999; time_format: UNIX_MILLISECONDS reads it as 2017-07-14 02:40:00");
}

TEST(RowParserTest, WeightsAndGroups) {
  const ParsedChunk chunk = ParseText(
      std::string(kLabel) + "fields { name: 'w' type: WEIGHT } fields { name: 'g' type: GROUP }",
      "0\t0.25\tann\n1\t\t\n1\t-1\tann\n1\t1e13\tann\n0\t0\tbob\n");
  EXPECT_THAT(chunk.weights, ElementsAre(0.25f, 1, 0));
  EXPECT_THAT(chunk.groups, ElementsAre(Hash("ann"), Hash(""), Hash("bob")));
  EXPECT_EQ(chunk.bad_rows, 2);
  EXPECT_EQ(chunk.bad[0].what, "column 2 (w): found '-1', expected a number from 0 to 1e12");
  EXPECT_THAT(chunk.times, IsEmpty());
  EXPECT_THAT(chunk.split_hashes, IsEmpty());
}

TEST(RowParserTest, BagsKeepTheirBeginningSequencesTheirEnd) {
  const ParsedChunk chunk = ParseText(
      std::string(kLabel) +
          "fields { name: 'm' type: MULTI_HOT max_length: 2 separator: ';' }"
          "fields { name: 's' type: SEQUENCE max_length: 3 separator: ';' column: 'm' }"
          "fields { name: 'i' type: SEQUENCE encoding: IDENTITY buckets: 9 separator: '|' }",
      "0\ta;b;c;d;e\t1|2\n1\t\t\n0\ta;;b;x\t9\n1\t;;a;\t|3\n");
  EXPECT_EQ(chunk.rows, 3);
  EXPECT_THAT(chunk.bag_ends, ElementsAre(2, 5, 7, 7, 7, 7, 8, 9, 10));
  std::vector<uint64_t> texts(chunk.bags.begin(), chunk.bags.begin() + 5);
  EXPECT_THAT(Texts(chunk, texts), ElementsAre("a", "b", "c", "d", "e"));
  EXPECT_EQ(chunk.bags[5], 1u);
  EXPECT_EQ(chunk.bags[6], 2u);
  EXPECT_EQ(chunk.bags[9], 3u);
  // a;b;c;d;e has three too many for m and two for s; the bad row's do not count.
  EXPECT_THAT(chunk.cut_values, ElementsAre(3, 2, 0));
  EXPECT_EQ(chunk.bad[0].what, "column 3 (i): found '9', expected an id in [0, 9)");
}

TEST(RowParserTest, HeaderFindsColumns) {
  const std::string schema = R"(delimiter: ',' header: true
      fields { name: "b" type: CATEGORICAL }
      fields { name: "click" type: LABEL column: "y" }
      fields { name: "b2" type: CATEGORICAL column: "b" encoding: HASH buckets: 7 }
      fields { name: "n" type: NUMERIC })";
  const ParsedChunk chunk =
      ParseText(schema, "5,ann,1,x\n7,bob,0,\n1,2,3\n6,eve,7,\n", "\xef\xbb\xbfn,b,y,unused\r\n");
  EXPECT_THAT(chunk.labels, ElementsAre(1, 0));
  EXPECT_THAT(chunk.numeric, ElementsAre(5, 7));
  EXPECT_EQ(chunk.TextOf(chunk.ids[0]), "ann");
  EXPECT_EQ(chunk.ids[1], Hash("ann") % 7);
  EXPECT_EQ(chunk.TextOf(chunk.ids[2]), "bob");
  EXPECT_EQ(chunk.bad[0].what, "found 3 columns, expected 4");
  EXPECT_EQ(chunk.bad[1].what, "column 3 (click): found '7', expected 0, 1 or -1");
}

TEST(RowParserTest, HeaderMistakes) {
  const Schema schema = SchemaOf(
      "delimiter: ',' header: true quoted: true fields { name: 'y' type: LABEL }"
      "fields { name: 'f' column: 'F' type: CATEGORICAL }");
  const auto message_of = [&](const std::string& header) {
    const Status status = RowParser::Create(schema, header, "a.csv").status();
    EXPECT_EQ(status.code(), StatusCode::kUser);
    return status.message();
  };
  EXPECT_EQ(message_of("y,f"), "a.csv:1: field f: found columns 'y', 'f'; expected one 'F'");
  EXPECT_EQ(message_of("y;F"),
            "a.csv:1: field y: found columns 'y;F'; expected one 'y'; the "
            "schema's delimiter is ','");
  EXPECT_EQ(message_of("y,F,F"),
            "a.csv:1: field f: found columns 'y', 'F', 'F'; expected one 'F', and there are more");
  EXPECT_EQ(message_of("y,1,2,3,4,5,6"),
            "a.csv:1: field f: found columns 'y', '1', '2', '3', '4', '5', ...; expected one 'F'");
  EXPECT_EQ(message_of("y,\"F"), "a.csv:1: column 2 of the header: the quote is not closed");

  auto parser = RowParser::Create(schema, "y,\"F\",z\n", "a.csv");
  ASSERT_TRUE(parser.ok()) << parser.status().message();
  EXPECT_TRUE((*parser)->CheckHeader("\"y\",F,z\r\n", "b.csv").ok());
  EXPECT_EQ((*parser)->CheckHeader("y,z,F", "b.csv").message(),
            "b.csv:1: column 2 of the header: found 'z', expected 'F' (as in the first file)");
  EXPECT_EQ((*parser)->CheckHeader("y,F", "b.csv").message(),
            "b.csv:1: column 3 of the header: found none, expected 'z' (as in the first file)");
}

TEST(RowParserTest, Quotes) {
  const std::string schema = std::string("delimiter: ',' quoted: true ") + kLabel +
                             "fields { name: 'a' type: CATEGORICAL }"
                             "fields { name: 'b' type: CATEGORICAL }";
  const ParsedChunk chunk = ParseText(schema,
                                      "0,\"x,y\",\"\"\n"  // a delimiter, an empty value
                                      "\"1\",\"\"\"a\"\"\",\"b\"\r\n"  // "a" with its quotes
                                      "0,a\"b,c\n"                     // a quote inside is itself
                                      "0,\"a\"b,c\n"
                                      "0,\"a\"\n"
                                      "0,ends\",c\n"
                                      "1,plain,\n");
  EXPECT_THAT(chunk.labels, ElementsAre(0, 1, 0, 1));
  EXPECT_THAT(Texts(chunk, chunk.ids),
              ElementsAre("x,y", "", "\"a\"", "b", "a\"b", "c", "plain", ""));
  EXPECT_EQ(chunk.bad[0].what,
            "column 2: found a quote that is not closed, expected one before the delimiter");
  EXPECT_EQ(chunk.bad[1].line, 4);
  EXPECT_EQ(chunk.bad[1].what, "found 2 columns, expected 3");
  EXPECT_EQ(chunk.bad[2].what,
            "column 2: found a quote at the end of a value that begins with none, expected quotes "
            "around it, and two for one in it");
}

// As Python's csv module reads them.
TEST(RowParserTest, LineEndsWithinQuotesBelongToTheValue) {
  const std::string schema = std::string("delimiter: ',' quoted: true ") + kLabel +
                             "fields { name: 'a' type: CATEGORICAL }"
                             "fields { name: 'b' type: CATEGORICAL }";
  const std::string long_value = std::string(100, 'v') + "\n" + std::string(70, 'w');
  const ParsedChunk chunk = ParseText(schema,
                                      "0,\"x\ny\",p\r\n"
                                      "1,\"\r\n\",\"\"\"\n\"\"\"\n"  // ends in "\n"
                                      "0,\"" +
                                          long_value +
                                          "\",q\n"
                                          "0,\"z\n1,\"bad,1\n"  // one record, no second row
                                          "1,\"1,a,b\n0,c,d\n\",last\r\n"
                                          "1,e,f\n");
  EXPECT_THAT(chunk.labels, ElementsAre(0, 1, 0, 1, 1));
  EXPECT_THAT(Texts(chunk, chunk.ids), ElementsAre("x\ny", "p", "\r\n", "\"\n\"", long_value, "q",
                                                   "1,a,b\n0,c,d\n", "last", "e", "f"));
  EXPECT_EQ(chunk.bad_rows, 1);
  EXPECT_EQ(chunk.bad[0].line, 7);
  EXPECT_EQ(chunk.lines, 13);
  // The hash of a split is that of the record as it stands in the file.
  const std::string split = "split { train: 0.5 test: 0.5 by: HASH }";
  EXPECT_THAT(ParseText(schema + split, "1,\"a\n\"\"\",b\r\n").split_hashes,
              ElementsAre(Hash("1,\"a\n\"\"\",b")));
}

TEST(RowParserTest, DelimitersOfSeveralCharacters) {
  const std::string fields = std::string(kLabel) +
                             "fields { name: 'a' type: CATEGORICAL }"
                             "fields { name: 'b' type: CATEGORICAL }";
  const ParsedChunk ratings = ParseText("delimiter: '::' " + fields, "1::x::y\r\n0::::a:b\n1::x\n");
  EXPECT_THAT(Texts(ratings, ratings.ids), ElementsAre("x", "y", "", "a:b"));
  EXPECT_EQ(ratings.bad[0].what, "found 2 columns, expected 3");
  const ParsedChunk quoted =
      ParseText("quoted: true delimiter: ', ' " + fields, "1, \"x, \"\"y\", z,\n0, \"a\",b, c\n");
  EXPECT_THAT(Texts(quoted, quoted.ids), ElementsAre("x, \"y", "z,"));
  EXPECT_THAT(quoted.bad[0].what, HasSubstr("column 2: found a quote that is not closed"));
  const ParsedChunk header =
      ParseText("header: true delimiter: '::' " + fields, "x::1::z\n", "b::y::a\n");
  EXPECT_THAT(Texts(header, header.ids), ElementsAre("z", "x"));
}

TEST(RowParserTest, NullTextsAreMissing) {
  const std::string schema =
      "null: ['NULL', '?'] fields { name: 'y' type: LABEL } fields { name: 'z' type: LABEL }"
      "fields { name: 'n' type: NUMERIC } fields { name: 'w' type: WEIGHT }"
      "fields { name: 'c' type: CATEGORICAL } fields { name: 'm' type: MULTI_HOT }";
  const ParsedChunk chunk =
      ParseText(schema, "1\t?\tNULL\tNULL\tNULL\t?\n0\t1\t7\t2\tNULLS\t?|NULL\n");
  EXPECT_EQ(chunk.rows, 2);
  EXPECT_TRUE(std::isnan(chunk.labels[1]));
  EXPECT_TRUE(std::isnan(chunk.numeric[0]));
  EXPECT_THAT(chunk.weights, ElementsAre(1, 2));
  EXPECT_THAT(Texts(chunk, chunk.ids), ElementsAre("", "NULLS"));
  EXPECT_THAT(Texts(chunk, chunk.bags), ElementsAre("?", "NULL"));
}

TEST(RowParserTest, LabelsOfRatingsAndTexts) {
  const ParsedChunk ratings =
      ParseText("fields { name: 'y' type: LABEL at_least: 3.5 }", "5\n3.5\n3\n-1\n\nx\n");
  EXPECT_THAT(ratings.labels, ElementsAre(1, 1, 0, 0));
  EXPECT_EQ(ratings.bad[0].what, "column 1 (y): found '', expected a number");
  const ParsedChunk texts = ParseText("fields { name: 'y' type: LABEL positive: ['click', 'buy'] }",
                                      "click\nview\nbuy\n1\n\n");
  EXPECT_THAT(texts.labels, ElementsAre(1, 0, 1, 0));
  EXPECT_EQ(texts.bad[0].what, "column 1 (y): found '', expected a text");
  const ParsedChunk both =
      ParseText("fields { name: 'y' type: LABEL positive: '>50K' negative: '<=50K' }",
                ">50K\n<=50K\n>50K.\n");
  EXPECT_THAT(both.labels, ElementsAre(1, 0));
  EXPECT_EQ(both.bad[0].what, "column 1 (y): found '>50K.', expected '>50K', '<=50K'");
}

TEST(RowParserTest, SplitHashes) {
  const std::string fields = std::string(kLabel) +
                             "fields { name: 'u' type: IGNORED } fields { name: 'n' type: NUMERIC }"
                             "split { train: 0.5 test: 0.5 by: HASH ";
  const std::string text = "0\tann\t1\r\n1\tbob\tx\n1\t\t2\n";
  EXPECT_THAT(ParseText(fields + "}", text).split_hashes,
              ElementsAre(Hash("0\tann\t1"), Hash("1\t\t2")));
  EXPECT_THAT(ParseText(fields + "hash_field: 'u' }", text).split_hashes,
              ElementsAre(Hash("ann"), Hash("")));
  EXPECT_THAT(ParseText("layout: LIBSVM fields { name: 'a' type: CATEGORICAL }"
                        "split { train: 1 by: HASH }",
                        "1 5:1\n1 5\n0 6:1\r\n")
                  .split_hashes,
              ElementsAre(Hash("1 5:1"), Hash("0 6:1")));
}

TEST(RowParserTest, ListsWithBlanksAroundTheirItems) {
  const std::string schema = "delimiter: ';' " + std::string(kLabel) +
                             "fields { name: 'm' type: MULTI_HOT separator: ',' list: ";
  const std::string text = "1; wood , iron,,\t brick\n0; \n";
  const ParsedChunk trimmed = ParseText(schema + "TRIMMED }", text);
  EXPECT_THAT(Texts(trimmed, trimmed.bags), ElementsAre("wood", "iron", "brick"));
  EXPECT_THAT(trimmed.bag_ends, ElementsAre(3, 3));
  const ParsedChunk plain = ParseText(schema + "PLAIN }", text);
  EXPECT_THAT(Texts(plain, plain.bags), ElementsAre(" wood ", " iron", "\t brick", " "));
}

TEST(RowParserTest, ListsInBrackets) {
  const std::string schema =
      std::string(kLabel) + "fields { name: 's' type: SEQUENCE list: BRACKETS ";
  const auto items_of = [&](const std::string& list) {
    const ParsedChunk chunk = ParseText(schema + "}", "1\t" + list + "\n");
    EXPECT_EQ(chunk.rows, 1) << list;
    return Texts(chunk, chunk.bags);
  };
  EXPECT_THAT(items_of(R"(['a', "b's", 'c\'d', u'e', b'f'])"),
              ElementsAre("a", "b's", "c'd", "e", "f"));
  EXPECT_THAT(items_of("[1, -2.5,3 ]"), ElementsAre("1", "-2.5", "3"));
  EXPECT_THAT(items_of(" ( New York , Rom,) "), ElementsAre("New York", "Rom"));
  EXPECT_THAT(items_of("['a' 'b, c'\"d\"]"), ElementsAre("a", "b, c", "d"));  // numpy's
  EXPECT_THAT(items_of("[7  8 9]"), ElementsAre("7", "8", "9"));
  EXPECT_THAT(items_of("{None, 'x', nan, null, '', NaN}"), ElementsAre("x"));
  EXPECT_THAT(items_of("[]"), IsEmpty());
  EXPECT_THAT(items_of(""), IsEmpty());
  EXPECT_THAT(items_of(R"(["\u00e9\n\/\\", "\ud83d\ude00", '\xe9\U0001f600'])"),
              ElementsAre("\xc3\xa9\n/\\", "\xf0\x9f\x98\x80", "\xc3\xa9\xf0\x9f\x98\x80"));
  for (const char* list :
       {"a", "[", "[a", "a]", "[1, 2)", "[,]", "[1,,2]", "['a]", "['a'b]", "[[1]]", "{'a': 1}",
        "{a: 1}", R"(["\ud83d"])", R"(["\q"])", R"(["\u12"])", R"(["\ud83d\u0041"])", "[it's]",
        "[1, ..., 9]", "[1 2 ... 9]"}) {
    EXPECT_EQ(FirstWhat(schema + "}", "1\t" + std::string(list) + "\n"),
              "column 2 (s): found " + Shown(list) +
                  ", expected a list in brackets such as ['a', 'b'] or [1, 2]");
  }
  // Ids of all encodings, the last two of each list.
  const std::string row = "1\t[5, '6', 7]\n";
  EXPECT_THAT(ParseText(schema + "max_length: 2 encoding: IDENTITY buckets: 9 }", row).bags,
              ElementsAre(6, 7));
  EXPECT_THAT(ParseText(schema + "max_length: 2 encoding: HASH buckets: 1000000007 }", row).bags,
              ElementsAre(Hash("6") % 1000000007, Hash("7") % 1000000007));
}

TEST(RowParserTest, LibsvmMistakes) {
  const std::string schema = R"(layout: LIBSVM
      fields { name: "a" type: CATEGORICAL encoding: IDENTITY offset: 5 buckets: 2 }
      fields { name: "b" type: CATEGORICAL })";
  const ParsedChunk chunk =
      ParseText(schema,
                "1 5:1 x:1\n1 4:1 x:1\n1 7:1 x:1\n1 5:1\n1 5:1 x:1 y:1\n1 5 x:1\n1 5:2 x:1\n"
                "-1  6:1\tx:1 \n7 5:1 x:1\n");
  EXPECT_EQ(chunk.rows, 2);
  EXPECT_EQ(chunk.bad_rows, 7);
  EXPECT_THAT(chunk.labels, ElementsAre(1, 0));
  EXPECT_EQ(chunk.ids[0], 0u);
  EXPECT_EQ(chunk.ids[2], 1u);
  EXPECT_EQ(chunk.bad[0].what, "column 2 (a): found '4', expected an id in [5, 7)");
  EXPECT_EQ(chunk.bad[2].what, "found 1 pairs, expected 2");
  EXPECT_EQ(chunk.bad[3].what, "column 4: found 'y:1', expected only 2 pairs");
  EXPECT_EQ(chunk.bad[4].what, "column 2 (a): found '5', expected index:number");
}

TEST(RowParserTest, LibsvmIgnoredPairsAndBags) {
  const ParsedChunk chunk = ParseText(
      "layout: LIBSVM fields { name: 'i' type: IGNORED } fields { name: 'n' type: NUMERIC }"
      "fields { name: 'm' type: MULTI_HOT max_length: 2 }",
      "1 qid:3 2:2.5 5:1 6:1 7:1\n0 b:1 2:1\n0 b:1\n");
  EXPECT_THAT(chunk.numeric, ElementsAre(2.5, 1));
  EXPECT_THAT(Texts(chunk, chunk.bags), ElementsAre("5", "6"));
  EXPECT_THAT(chunk.bag_ends, ElementsAre(2, 2));
  EXPECT_EQ(chunk.bad[0].what, "found 1 pairs, expected 2 or more");
}

TEST(RowParserTest, LibsvmNumbersGoByTheirIndex) {
  const std::string schema = "layout: LIBSVM fields { names: 'f1..f3' type: NUMERIC }";
  EXPECT_THAT(ParseText(schema, "1 1:0.5 2:1 3:7\n0 3:2\n1 3:-1 1:4 \n0\n").numeric,
              ElementsAre(0.5, 1, 7, 0, 0, 2, 4, 0, -1, 0, 0, 0));
  EXPECT_THAT(ParseText("zero_based: true " + schema, "1 2:7 0:0.5\n").numeric,
              ElementsAre(0.5, 0, 7));
  const std::string range = "expected an index from 1 to 3";
  EXPECT_EQ(FirstWhat(schema, "1 1:0.5 2:7 2:1\n"),
            "column 4 (f2): found '2:1', expected each index once");
  EXPECT_EQ(FirstWhat(schema, "1 1:0.5 4:1\n"),
            "column 3: found '4:1', " + range + ", as the schema has fields");
  EXPECT_EQ(FirstWhat(schema, "1 price:5 2:1\n"),
            "column 2: found 'price:5', " + range + ", as the schema has fields");
  EXPECT_EQ(FirstWhat(schema, "1 1e9999:5 2:1\n"),
            "column 2: found '1e9999:5', " + range + ", as the schema has fields");
  EXPECT_EQ(FirstWhat(schema, "1 0:5 1:1\n"),
            "column 2: found '0:5', " + range +
                "; if they begin with 0, the schema needs zero_based: true");
  EXPECT_EQ(FirstWhat(schema, "1 qid:7 1:0.5\n"),
            "column 2: found 'qid:7', expected index:number; a field of type GROUP reads qid");
  EXPECT_EQ(FirstWhat(schema, "1 :5 2:1\n"), "column 2: found ':5', expected index:number");
  EXPECT_EQ(FirstWhat(schema, "1 1:nan\n"), "column 2: found '1:nan', expected index:number");
  EXPECT_EQ(FirstWhat(schema, "1 0:1:5 1:2:1\n"),
            "column 2: found '0:1:5', expected index:number; field:index:number is layout LIBFFM");
}

TEST(RowParserTest, LibsvmBagTakesIndicesThatNoNumberHas) {
  const std::string schema =
      "layout: LIBSVM fields { names: 'f1..f2' type: NUMERIC }"
      "fields { name: 'm' type: MULTI_HOT ";
  const ParsedChunk chunk = ParseText(schema + "}", "1 7:1 2:2.5 9:1\n0 1:1\n0 7:0.5\n");
  EXPECT_THAT(chunk.numeric, ElementsAre(0, 2.5, 1, 0));
  EXPECT_THAT(Texts(chunk, chunk.bags), ElementsAre("7", "9"));
  EXPECT_THAT(chunk.bag_ends, ElementsAre(2, 2));
  EXPECT_EQ(chunk.bad[0].what,
            "column 2 (m): found '7:0.5', expected value 1 of a bag, or any_value: true");
  const ParsedChunk any = ParseText(schema + "any_value: true }", "0 7:0.5 8:0 9:-2\n");
  EXPECT_THAT(Texts(any, any.bags), ElementsAre("7", "9"));
}

// As LETOR's and LightGBM's files have them.
TEST(RowParserTest, LibsvmLabelsQueriesAndComments) {
  const std::string schema =
      "layout: LIBSVM fields { name: 'label' type: LABEL at_least: 2 }"
      "fields { name: 'q' type: GROUP } fields { names: 'f1..f2' type: NUMERIC }";
  const ParsedChunk chunk = ParseText(
      schema, "# LETOR\n2 qid:10 1:3 # docid = GX:1 2:9\n\n1 2:4 qid:x #\n1 qid:3 qid:4\n1 qid:\n");
  EXPECT_THAT(chunk.labels, ElementsAre(1, 0));
  EXPECT_THAT(chunk.groups, ElementsAre(Hash("10"), Hash("x")));
  EXPECT_THAT(chunk.numeric, ElementsAre(3, 0, 0, 4));
  EXPECT_EQ(chunk.lines, 6);
  EXPECT_EQ(chunk.bad_rows, 3);
  EXPECT_EQ(chunk.bad[0].line, 2);
  EXPECT_EQ(chunk.bad[0].what, "found a blank line, expected a label and pairs");
  EXPECT_EQ(chunk.bad[1].what, "column 3 (q): found 'qid:4', expected one qid in a row");
  EXPECT_EQ(chunk.bad[2].what, "column 2 (q): found 'qid:', expected a text behind qid:");
  EXPECT_THAT(ParseText(schema + "split { train: 1 by: HASH hash_field: 'q' }", "2 qid:7\n1 1:1\n")
                  .split_hashes,
              ElementsAre(Hash("7"), Hash("")));
  EXPECT_EQ(FirstWhat("layout: LIBSVM fields { name: 'a' }", "2 1:1\n"),
            "column 1 (label): found '2', expected 0, 1 or -1; a field of type LABEL reads other "
            "labels");
}

TEST(RowParserTest, LibffmTriplesGoByTheirField) {
  const std::string schema =
      "layout: LIBFFM zero_based: true fields { name: 'c' type: CATEGORICAL }"
      "fields { name: 'n' type: NUMERIC } fields { name: 'i' type: IGNORED }"
      "fields { name: 'm' type: MULTI_HOT any_value: true }";
  const ParsedChunk chunk =
      ParseText(schema, "1 3:8:0.5 1:2:-7 0:41:1 3:9:0.5\n0 2:5:3 2:6:1\n1 0:x:1 3:4:0\n");
  EXPECT_THAT(Texts(chunk, chunk.ids), ElementsAre("41", "", "x"));
  EXPECT_THAT(chunk.numeric, ElementsAre(-7, 0, 0));
  EXPECT_THAT(Texts(chunk, chunk.bags), ElementsAre("8", "9"));
  EXPECT_THAT(chunk.bag_ends, ElementsAre(2, 2, 2));
  EXPECT_EQ(FirstWhat(schema, "1 4:8:1\n"),
            "column 2: found '4:8:1', expected a field from 0 to 3, as the schema has fields");
  EXPECT_EQ(FirstWhat(schema, "1 0:8:1 0:9:1\n"),
            "column 3 (c): found '0:9:1', expected each field once, or type MULTI_HOT");
  EXPECT_EQ(FirstWhat(schema, "1 0:8:0.5\n"),
            "column 2 (c): found '0:8:0.5', expected value 1 of a categorical field, or any_value: "
            "true");
  EXPECT_EQ(FirstWhat(schema, "1 0:8\n"),
            "column 2: found '0:8', expected field:index:number; pairs index:number are layout "
            "LIBSVM");
  EXPECT_EQ(FirstWhat(schema, "1 0::1\n"), "column 2: found '0::1', expected field:index:number");
  EXPECT_EQ(FirstWhat("layout: LIBFFM fields { name: 'c' type: CATEGORICAL encoding: IDENTITY "
                      "buckets: 3 }",
                      "1 1:8:1\n"),
            "field c: found '8', expected an id in [0, 3)");
}

}  // namespace
}  // namespace elastor
