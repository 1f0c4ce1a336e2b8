#include "trainer/prepare/guess/dialect.h"

#include <algorithm>
#include <compare>
#include <cstdint>
#include <map>

#include "core/base/text.h"
#include "trainer/data/record_scanner.h"
#include "trainer/prepare/guess/text_sample.h"
#include "trainer/prepare/guess/value_kinds.h"
#include "trainer/prepare/rows/column_names.h"
#include "trainer/prepare/rows/time_text.h"
#include "trainer/prepare/rows/value_text.h"

namespace elastor {
namespace {

constexpr size_t kMostSkipped = 20;
constexpr size_t kTypedLines = 100;  // tell how many values are typed

using Lines = std::vector<std::string>;

// Lines that have the same number of columns, and that number.
struct Alike {
  double share = 0;  // of the lines
  double typed = 0;  // the share of their values that are numbers, times or missing
  size_t columns = 0;
  auto operator<=>(const Alike&) const = default;
};

size_t LayoutLines(const Lines& lines) { return std::min(lines.size(), kLayoutLines); }

bool IsTyped(const std::string& value) {
  double number;
  int64_t seconds;
  return value.empty() || ParseNumber(value, &number) || IsWrittenNumber(value) ||
         ParseTime(value, Field::YYYY_MM_DD_HH_MM_SS, &seconds) || IsWrittenTime(value);
}

double TypedShare(const Schema& schema, const Lines& lines, size_t columns) {
  size_t values = 0, typed = 0;
  for (size_t i = 0; i < std::min(lines.size(), kTypedLines); ++i) {
    const Lines row = SplitLine(schema, lines[i]);
    if (row.size() != columns) continue;
    values += columns;
    typed += std::ranges::count_if(row, IsTyped);
  }
  return values == 0 ? 0 : static_cast<double>(typed) / static_cast<double>(values);
}

// The largest group of the first lines that `schema` cuts into equally many columns, two at least;
// of groups of one size the one with more columns.
Alike LinesAlike(const Schema& schema, const Lines& lines) {
  const size_t count = LayoutLines(lines);
  Lines records = RecordsOf(schema, {lines.begin(), lines.begin() + count});
  // The last one may go on behind them.
  if (count < lines.size() && SplitLine(schema, records.back()).empty()) records.pop_back();
  std::map<size_t, size_t> records_of;  // by number of columns
  for (const std::string& record : records) ++records_of[SplitLine(schema, record).size()];
  Alike best;
  for (const auto& [columns, with] : records_of) {
    const double share = static_cast<double>(with) / static_cast<double>(records.size());
    if (columns >= 2 && share >= best.share) best = {share, 0, columns};
  }
  best.typed = TypedShare(schema, records, best.columns);
  return best;
}

// Whether quotes stand around whole values, so that they are no part of them, or around delimiters;
// false where lines are no longer alike then. `unquoted` is the schema that gives `plain`.
bool QuotesAreAroundValues(const Schema& unquoted, const Lines& lines, const Alike& plain,
                           const Alike& quoted) {
  if (quoted.share < std::min(plain.share, kLayoutShare)) return false;
  if (quoted.columns != plain.columns || quoted.share > plain.share) return true;
  const auto in_quotes = [](const std::string& value) {
    return value.size() > 1 && value.front() == '"' && value.back() == '"';
  };
  return std::any_of(lines.begin(), lines.begin() + LayoutLines(lines), [&](const auto& line) {
    return std::ranges::any_of(SplitLine(unquoted, line), in_quotes);
  });
}

// Sets schema->quoted for its delimiter; `quotes`: some line has a quote.
Alike ChooseQuotes(const Lines& lines, bool quotes, Schema* schema) {
  schema->set_quoted(quotes);
  const Alike quoted = LinesAlike(*schema, lines);
  if (!quotes) return quoted;
  schema->set_quoted(false);
  const Alike plain = LinesAlike(*schema, lines);
  const bool around = QuotesAreAroundValues(*schema, lines, plain, quoted);
  schema->set_quoted(around);
  return around ? quoted : plain;
}

// Makes a space after every delimiter a part of it.
void TakeSpaceIntoDelimiter(const Lines& lines, const Alike& alike, Schema* schema) {
  Schema spaced = *schema;
  spaced.set_delimiter(schema->delimiter() + " ");
  const Alike same = LinesAlike(spaced, lines);
  if (schema->delimiter() == " " || same.columns != alike.columns) return;
  if (same.share == alike.share) *schema = spaced;
}

}  // namespace

std::vector<std::string> SplitLine(const Schema& schema, const std::string& line) {
  const StatusOr<std::vector<std::string>> values = ColumnNames(schema, line, "");
  return values.ok() ? *values : std::vector<std::string>();
}

int64_t LinesOf(const std::string& record) { return 1 + std::ranges::count(record, '\n'); }

Lines RecordsOf(const Schema& schema, const Lines& lines) {
  if (!schema.quoted()) return lines;
  const std::string delimiter = DelimiterOf(schema);
  std::string text;
  for (const std::string& line : lines) StrAppend(&text, line, "\n");
  Lines records;
  int64_t taken = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = EndOfRecord(text, begin, delimiter);
    if (end == text.npos || end - begin > kMostRecordBytes) {  // of no use as records
      records.insert(records.end(), lines.begin() + taken, lines.end());
      break;
    }
    records.push_back(text.substr(begin, end - 1 - begin));
    taken += LinesOf(records.back());
    begin = end;
  }
  return records;
}

StatusOr<Dialect> FindDialect(const std::vector<std::string>& lines, const std::string& path) {
  const size_t count = LayoutLines(lines);
  const auto quote = [](const std::string& line) { return line.find('"') != line.npos; };
  const bool quotes = std::any_of(lines.begin(), lines.begin() + count, quote);
  Alike best;
  Schema chosen;
  for (const char* delimiter : {"\t", ",", "::", ";", "|", "\x01", " "}) {
    Schema schema;
    schema.set_delimiter(delimiter);
    const Alike alike = ChooseQuotes(lines, quotes, &schema);
    // Spaces stand within values, too.
    const bool within = delimiter[0] == ' ' && best.share > 0.5 &&
                        (alike.share <= best.share || alike.columns <= best.columns);
    if (within || alike <= best) continue;
    best = alike;
    chosen = schema;
  }
  const Lines first = RecordsOf(chosen, {lines.begin(), lines.begin() + count});
  if (best.share < kLayoutShare) {
    const size_t blank = static_cast<size_t>(std::count(lines.begin(), lines.begin() + count, ""));
    const std::string why = 10 * blank > count ? StrCat("; ", blank, " of the first ",
                                                        CountText(count, "line"), " are blank")
                            : best.share == 0  ? "; no line has one of them"
                                               : "";
    return UserError(StrCat(path,
                            ": no delimiter makes equally many columns of its lines; expected "
                            "tabs, commas, '::', semicolons, bars or spaces between them",
                            why));
  }
  size_t skipped = 0;
  for (; skipped < kMostSkipped && SplitLine(chosen, first[skipped]).size() != best.columns;
       ++skipped) {
    chosen.set_skip_lines(chosen.skip_lines() + LinesOf(first[skipped]));
  }
  TakeSpaceIntoDelimiter(lines, best, &chosen);
  return Dialect{chosen, best.columns, skipped};
}

}  // namespace elastor
