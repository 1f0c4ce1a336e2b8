#include "trainer/prepare/guess/dialect.h"

#include <algorithm>
#include <compare>
#include <cstdint>
#include <map>

#include "core/base/text.h"
#include "trainer/prepare/guess/text_sample.h"
#include "trainer/prepare/rows/column_names.h"

namespace elastor {
namespace {

constexpr int64_t kMostSkipped = 20;

using Lines = std::vector<std::string>;

// Lines that have the same number of columns, and that number.
struct Alike {
  size_t lines = 0;
  size_t columns = 0;
  auto operator<=>(const Alike&) const = default;
};

size_t LayoutLines(const Lines& lines) { return std::min(lines.size(), kLayoutLines); }

// The largest group of the first lines that `schema` cuts into equally many columns, two at least;
// of groups of one size the one with more columns.
Alike LinesAlike(const Schema& schema, const Lines& lines) {
  std::map<size_t, size_t> lines_of;  // by number of columns
  for (size_t i = 0; i < LayoutLines(lines); ++i) ++lines_of[SplitLine(schema, lines[i]).size()];
  Alike best;
  for (const auto& [columns, with] : lines_of) {
    if (columns >= 2) best = std::max(best, Alike{with, columns});
  }
  return best;
}

// Whether quotes stand around whole values, so that they are no part of them, or around delimiters;
// false where lines are no longer alike then. `unquoted` is the schema that gives `plain`.
bool QuotesAreAroundValues(const Schema& unquoted, const Lines& lines, const Alike& plain,
                           const Alike& quoted) {
  const size_t count = LayoutLines(lines);
  const double most = kLayoutShare * static_cast<double>(count);
  if (static_cast<double>(quoted.lines) < std::min(static_cast<double>(plain.lines), most)) {
    return false;
  }
  if (quoted.columns != plain.columns || quoted.lines > plain.lines) return true;
  const auto in_quotes = [](const std::string& value) {
    return value.size() > 1 && value.front() == '"' && value.back() == '"';
  };
  return std::any_of(lines.begin(), lines.begin() + count, [&](const std::string& line) {
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
  const auto same = [&](const std::string& line) {
    return SplitLine(spaced, line).size() == alike.columns;
  };
  const auto count = std::count_if(lines.begin(), lines.begin() + LayoutLines(lines), same);
  if (schema->delimiter() != " " && count == static_cast<int64_t>(alike.lines)) *schema = spaced;
}

}  // namespace

std::vector<std::string> SplitLine(const Schema& schema, const std::string& line) {
  const StatusOr<std::vector<std::string>> values = ColumnNames(schema, line, "");
  return values.ok() ? *values : std::vector<std::string>();
}

StatusOr<Dialect> FindDialect(const std::vector<std::string>& lines, const std::string& path) {
  const size_t count = LayoutLines(lines);
  const auto quote = [](const std::string& line) { return line.find('"') != line.npos; };
  const bool quotes = std::any_of(lines.begin(), lines.begin() + count, quote);
  Alike best;
  Schema chosen;
  for (const char* delimiter : {"\t", ",", "::", ";", "|", " "}) {
    // Spaces stand within values, too.
    if (delimiter[0] == ' ' && best.lines > count / 2) continue;
    Schema schema;
    schema.set_delimiter(delimiter);
    const Alike alike = ChooseQuotes(lines, quotes, &schema);
    if (alike <= best) continue;
    best = alike;
    chosen = schema;
  }
  if (static_cast<double>(best.lines) < kLayoutShare * static_cast<double>(count)) {
    return UserError(StrCat(path,
                            ": no delimiter makes equally many columns of its lines; expected "
                            "tabs, commas, '::', semicolons, bars or spaces between them"));
  }
  for (int64_t i = 0; i < kMostSkipped && SplitLine(chosen, lines[i]).size() != best.columns; ++i) {
    chosen.set_skip_lines(i + 1);
  }
  TakeSpaceIntoDelimiter(lines, best, &chosen);
  return Dialect{chosen, best.columns};
}

}  // namespace elastor
