#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "tests/trainer/prepare/rows/row_parser_testing.h"
#include "trainer/prepare/rows/row_parser.h"

namespace elastor {
namespace {

// A row of the fuzzed schema, by the obvious way.
struct PlainRow {
  bool good = false;
  float label = 0;
  double number = 0;
  std::string word;
  std::vector<std::string> bag;
};

// What the schema at hand says of lines.
struct Lines {
  std::string delimiter;
  bool quoted;
  std::vector<std::string> nulls;
  bool label_texts;  // "a" is 1, "7" is 0; else 0 and 1
};

// The records of a text, without their ends, by RFC 4180. What stands behind a closing quote is
// bare, and a quote that nothing closes goes on to the end.
std::vector<std::string> PlainRecords(const std::string& text, const Lines& lines) {
  std::vector<std::string> records(1);
  bool begins = true, inside = false;
  for (size_t at = 0; at < text.size(); ++at) {
    std::string& record = records.back();
    if (!inside && text[at] == '\n') {
      if (record.ends_with('\r')) record.pop_back();
      records.emplace_back();
      begins = true;
      continue;
    }
    if (!inside && text.compare(at, lines.delimiter.size(), lines.delimiter) == 0) {
      record += lines.delimiter;
      at += lines.delimiter.size() - 1;
      begins = true;
      continue;
    }
    record += text[at];
    if (!inside) {
      inside = lines.quoted && begins && text[at] == '"';
    } else if (text.compare(at, 2, "\"\"") == 0) {
      record += text[++at];
    } else if (text[at] == '"') {
      inside = false;
    }
    begins = false;
  }
  if (records.back().empty()) records.pop_back();
  return records;
}

// Splits a record by RFC 4180. False when a quote is out of place.
bool SplitLine(const std::string& line, const Lines& lines, std::vector<std::string>* values) {
  values->assign(1, "");
  enum { kBegin, kBare, kQuoted, kAfterQuote } state = kBegin;
  const auto ends_wrong = [&] {
    return lines.quoted && state == kBare && values->back().ends_with('"');
  };
  for (size_t at = 0; at < line.size(); ++at) {
    const char c = line[at];
    if (state == kQuoted) {
      if (c == '"') {
        state = kAfterQuote;
      } else {
        values->back() += c;
      }
    } else if (line.compare(at, lines.delimiter.size(), lines.delimiter) == 0) {
      if (ends_wrong()) return false;
      values->emplace_back();
      state = kBegin;
      at += lines.delimiter.size() - 1;
    } else if (lines.quoted && c == '"' && state == kBegin) {
      state = kQuoted;
    } else if (state == kAfterQuote) {
      if (c != '"') return false;
      values->back() += c;
      state = kQuoted;
    } else {
      values->back() += c;
      state = kBare;
    }
  }
  return state != kQuoted && !ends_wrong();
}

bool NumberOf(const std::string& text, double* number) {
  *number = std::numeric_limits<double>::quiet_NaN();
  if (text.empty()) return true;
  if (text.find_first_not_of("0123456789.e-") != std::string::npos) return false;
  char* end;
  *number = std::strtod(text.c_str(), &end);
  return *end == '\0' && std::abs(*number) <= std::numeric_limits<float>::max();
}

PlainRow PlainParse(const std::string& line, const Lines& lines) {
  PlainRow row;
  std::vector<std::string> values;
  if (!SplitLine(line, lines, &values) || values.size() != 4) return row;
  for (std::string& value : values) {
    if (std::ranges::count(lines.nulls, value) > 0) value.clear();
  }
  if (lines.label_texts) {
    if (values[0] != "a" && values[0] != "7") return row;
    row.label = values[0] == "a" ? 1 : 0;
  } else {
    double label;
    if (!NumberOf(values[0], &label) || (label != 0 && std::abs(label) != 1)) return row;
    row.label = label == 1 ? 1 : 0;
  }
  row.word = values[2];
  std::string value;
  for (const char c : values[3] + "|") {
    if (c != '|') {
      value += c;
    } else {
      if (!value.empty()) row.bag.push_back(value);
      value.clear();
    }
  }
  if (row.bag.size() > 2) row.bag.erase(row.bag.begin(), row.bag.end() - 2);
  row.good = NumberOf(values[1], &row.number);
  return row;
}

// Random lines made of the bytes that matter, against the obvious parser. Returns the good rows.
int64_t FuzzLines(const Lines& lines_of_schema) {
  std::string text = "delimiter: '" + lines_of_schema.delimiter +
                     "' quoted: " + (lines_of_schema.quoted ? "true " : "false ") +
                     "fields { name: 'y' type: LABEL " +
                     (lines_of_schema.label_texts ? "positive: 'a' negative: '7' } " : "} ");
  for (const std::string& null : lines_of_schema.nulls) text += "null: '" + null + "' ";
  const Schema schema =
      SchemaOf(text +
               "fields { name: 'n' type: NUMERIC } fields { name: 'w' type: CATEGORICAL }"
               "fields { name: 's' type: SEQUENCE max_length: 2 }");
  auto parser = RowParser::Create(schema, "", "in");
  EXPECT_TRUE(parser.ok()) << parser.status().message();
  const std::string& delimiter = lines_of_schema.delimiter;
  uint64_t state = 7;
  const auto random = [&state](uint64_t below) {
    state = state * 6364136223846793005 + 1442695040888963407;
    return (state >> 33) % below;
  };
  const std::vector<std::string> pieces = {"0",
                                           "1",
                                           delimiter,
                                           delimiter,
                                           "\"",
                                           "\"\"",
                                           "|",
                                           delimiter.substr(0, 1),
                                           "a",
                                           "7",
                                           ".5",
                                           "-",
                                           "e2",
                                           "\xff",
                                           "long enough to cross",
                                           "\"\n",
                                           "\n\"" + delimiter};
  ParsedChunk chunk;
  int64_t good = 0;
  for (int round = 0; round < 300; ++round) {
    std::vector<std::string> lines(40);
    chunk.text.clear();
    for (std::string& line : lines) {
      const bool likely = random(2) == 0;
      if (likely) {
        line = lines_of_schema.label_texts ? (random(2) == 0 ? "a" : "7")
               : random(2) == 0            ? "1"
                                           : "\"0\"";
        line += delimiter;
      }
      for (uint64_t left = random(9); left > 0; --left) {
        line += pieces[random(pieces.size())];
        if (likely && random(3) == 0) line += delimiter;
      }
      chunk.text += line + (random(5) == 0 ? "\r\n" : "\n");
    }
    const std::string all = chunk.text;
    const std::vector<std::string> records = PlainRecords(all, lines_of_schema);
    (*parser)->Parse(&chunk);
    int64_t row = 0, bag = 0;
    for (const std::string& line : records) {
      const PlainRow expected = PlainParse(line, lines_of_schema);
      if (!expected.good) continue;
      EXPECT_LT(row, chunk.rows) << line;
      if (row >= chunk.rows) return 0;
      EXPECT_EQ(chunk.labels[row], expected.label) << line;
      EXPECT_EQ(chunk.TextOf(chunk.ids[row]), expected.word) << line;
      EXPECT_TRUE(std::isnan(expected.number) ? std::isnan(chunk.numeric[row])
                                              : chunk.numeric[row] == expected.number)
          << line;
      EXPECT_EQ(chunk.bag_ends[row] - bag, static_cast<int64_t>(expected.bag.size())) << line;
      if (testing::Test::HasFailure()) return 0;
      for (const std::string& value : expected.bag) {
        EXPECT_EQ(chunk.TextOf(chunk.bags[bag++]), value) << line;
      }
      ++row;
    }
    EXPECT_EQ(chunk.rows, row);
    EXPECT_EQ(chunk.lines, std::ranges::count(all, '\n'));
    EXPECT_EQ(chunk.bad_rows, static_cast<int64_t>(records.size()) - row);
    good += row;
  }
  return good;
}

TEST(RowParserFuzzTest, FuzzedLinesAgainstThePlainParser) {
  for (const std::string delimiter : {",", "::", "; ;"}) {
    for (const bool quoted : {true, false}) {
      for (const bool texts : {true, false}) {
        const std::vector<std::string> nulls =
            texts ? std::vector<std::string>{"-", "e2"} : std::vector<std::string>();
        EXPECT_GT(FuzzLines({delimiter, quoted, nulls, texts}), 100) << delimiter << quoted;
      }
    }
  }
}

// Any bytes at all: nothing to compare with, but everything found must hang together.
TEST(RowParserFuzzTest, RandomBytes) {
  const std::string fields = std::string("fields { name: 'y' type: LABEL positive: '1' } ") +
                             "fields { name: 'n' type: NUMERIC } fields { name: 'w' type: WEIGHT }"
                             "fields { name: 'c' type: CATEGORICAL transform: LOG2_BUCKET }"
                             "fields { name: 's' type: SEQUENCE }";
  for (const std::string& layout :
       {std::string("delimiter: ',' "), std::string("delimiter: ',' quoted: true "),
        std::string("delimiter: '::' quoted: true null: '0' "), std::string("layout: LIBSVM "),
        std::string("layout: LIBFFM zero_based: true ")}) {
    const bool pairs = layout[0] == 'l';
    const Schema schema = SchemaOf(
        layout +
        (pairs ? "fields { name: 'a' type: CATEGORICAL } fields { name: 'm' type: MULTI_HOT }"
               : fields));
    auto parser = RowParser::Create(schema, "", "in");
    ASSERT_TRUE(parser.ok());
    uint64_t state = 11;
    for (int round = 0; round < 200; ++round) {
      ParsedChunk chunk;
      for (int i = 0; i < 2000; ++i) {
        state = state * 6364136223846793005 + 1442695040888963407;
        const uint64_t byte = state >> 40;
        chunk.text += byte & 0x100 ? "0,1\n:\" "[byte % 7] : static_cast<char>(byte);
      }
      chunk.text += '\n';
      const int64_t lines = std::ranges::count(chunk.text, '\n');
      (*parser)->Parse(&chunk);
      EXPECT_LE(chunk.rows + chunk.bad_rows, chunk.lines);
      EXPECT_EQ(chunk.lines, lines);
      EXPECT_EQ(static_cast<int64_t>(chunk.labels.size()), chunk.rows);
      EXPECT_EQ(static_cast<int64_t>(chunk.bag_ends.size()), chunk.rows);
      EXPECT_EQ(static_cast<int64_t>(chunk.ids.size()), chunk.rows);
      EXPECT_EQ(chunk.bags.size(), chunk.bag_ends.empty() ? 0 : chunk.bag_ends.back());
      for (const uint64_t id : chunk.ids) chunk.TextOf(id);
    }
  }
}

}  // namespace
}  // namespace elastor
