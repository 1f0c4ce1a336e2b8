#include "trainer/prepare/guess/guess.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <map>
#include <string_view>
#include <unordered_map>

#include "configs/proto/schema.pb.h"
#include "core/base/text.h"
#include "google/protobuf/stubs/strutil.h"
#include "trainer/data/file_kind.h"
#include "trainer/data/text_source.h"
#include "trainer/prepare/rows/column_names.h"
#include "trainer/prepare/rows/value_text.h"
#include "trainer/prepare/schema_file.h"

namespace elastor {
namespace {

constexpr int64_t kGuessBytes = 16 << 20;  // of text, of all files together
constexpr size_t kLayoutLines = 1000;      // tell the layout
constexpr int64_t kMostSkipped = 20;
constexpr double kMostLines = 0.9;         // have the layout that is proposed
constexpr int64_t kManyRows = 100;         // tell a value of its own in every row from chance
constexpr size_t kFewValues = 20;          // integers with as many are categories
constexpr size_t kMostSmallNumbers = 150;  // ages, hours: integers without large gaps
constexpr double kLargestGap = 20;
constexpr size_t kMostCandidates = 3;  // for the label, that are told
constexpr size_t kMostRatings = 11;
constexpr double kHeavyTail = 5;  // the largest of counts is as many times their mean
constexpr std::string_view kSeparators = "|^;";
constexpr double kBagShare = 0.02;  // of the values of a bag have several
constexpr int64_t kLongestBag = 64;

using Row = std::vector<std::string>;

struct Column {
  std::string name;
  std::unordered_map<std::string, int64_t> values;  // not missing
  std::map<std::string, int64_t> nulls;             // texts that mean missing
  int64_t missing = 0;
  int64_t numbers = 0;
  int64_t integers = 0;
  int64_t times[3] = {0, 0, 0};  // by Field::TimeFormat
  double least = std::numeric_limits<double>::infinity();
  double largest = -std::numeric_limits<double>::infinity();
  double sum = 0;
  int64_t bags[3] = {0, 0, 0};  // values with each of kSeparators
  int64_t longest_bag[3] = {1, 1, 1};
  int64_t count = 0;  // not missing

  bool numeric() const { return count > 0 && numbers == count; }
  bool integral() const { return count > 0 && integers == count; }
  double mean() const { return sum / static_cast<double>(numbers); }
};

// In quotes, as protobuf text has it.
std::string Quoted(std::string_view text) {
  return "\"" + google::protobuf::strings::Utf8SafeCEscape(std::string(text)) + "\"";
}

std::string NumberText(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.6g", value);
  return text;
}

// Times that data of users have: 2000 to 2040.
bool IsTime(std::string_view text, Field::TimeFormat format) {
  int64_t seconds;
  return ParseTime(text, format, &seconds) && seconds >= 946684800 && seconds < 2208988800;
}

void AddValue(const std::string& value, Column* column) {
  if (value.empty() || MeansMissing(value)) {
    ++column->missing;
    if (!value.empty()) ++column->nulls[value];
    return;
  }
  ++column->count;
  ++column->values[value];
  double number;
  if (ParseNumber(value, &number)) {
    ++column->numbers;
    column->integers += value.find_first_not_of("0123456789", value[0] == '-') == value.npos;
    column->least = std::min(column->least, number);
    column->largest = std::max(column->largest, number);
    column->sum += number;
  }
  for (int format = 0; format < 3; ++format) {
    column->times[format] += IsTime(value, static_cast<Field::TimeFormat>(format));
  }
  for (size_t i = 0; i < kSeparators.size(); ++i) {
    const int64_t items = 1 + std::ranges::count(value, kSeparators[i]);
    column->bags[i] += items > 1;
    column->longest_bag[i] = std::max(column->longest_bag[i], items);
  }
}

class Guess {
 public:
  Guess(const std::vector<std::string>& paths, const std::string& label)
      : paths_(paths), given_label_(label) {}
  StatusOr<std::string> Run();

 private:
  Status Read();
  bool IsLibsvm() const;
  StatusOr<std::string> LibsvmText();
  std::pair<size_t, size_t> LinesAlike() const;
  bool QuotesAreAroundValues(const std::pair<size_t, size_t>& plain,
                             const std::pair<size_t, size_t>& quoted) const;
  Status ChooseDelimiter();
  bool FirstLineIsHeader() const;
  Row Split(const std::string& line) const;
  void ReadColumns();
  Status TakeLabel();
  Status ChooseLabel();
  double PositiveRate(const Column& column) const;
  void FindCopies();
  std::string LabelText(const Column& column) const;
  std::string FieldText(size_t place) const;
  std::string TimeFields(size_t place, Field::TimeFormat format);
  std::string Begin(const std::string& layout) const;
  std::string ColumnTable() const;
  std::string DelimitedText();

  const std::vector<std::string>& paths_;
  const std::string& given_label_;               // empty: to be found
  std::vector<std::vector<std::string>> lines_;  // by file
  Schema schema_;                                // what is known of lines
  std::vector<Column> columns_;
  int64_t rows_ = 0;
  int64_t bad_rows_ = 0;
  size_t label_ = 0;
  std::vector<size_t> candidates_;  // for the label, the best first
  std::vector<bool> copies_;        // columns that tell the label
  bool has_time_ = false;
};

Status Guess::Read() {
  for (const std::string& path : paths_) {
    ELASTOR_ASSIGN_OR_RETURN(const auto source, TextSource::Open(path));
    std::string text;
    ELASTOR_RETURN_IF_ERROR(source->Next(kGuessBytes / static_cast<int64_t>(paths_.size()), &text));
    if (text.starts_with(kByteOrderMark)) text.erase(0, kByteOrderMark.size());
    if (text.empty()) return UserError(path + ": is empty, expected rows");
    std::vector<std::string>& lines = lines_.emplace_back();
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = text.find('\n', begin);
      const bool carriage_return = end > begin && text[end - 1] == '\r';
      lines.push_back(text.substr(begin, end - begin - carriage_return));
      begin = end + 1;
    }
  }
  return OkStatus();
}

Row WordsOf(const std::string& line) {
  Row words;
  for (size_t at = line.find_first_not_of(" \t"); at < line.size();
       at = line.find_first_not_of(" \t", at)) {
    const size_t end = std::min(line.find_first_of(" \t", at), line.size());
    words.push_back(line.substr(at, end - at));
    at = end;
  }
  return words;
}

// A label, then index:number.
bool IsLibsvmLine(const std::string& line) {
  const Row words = WordsOf(line);
  float label;
  return words.size() > 1 && ParseLabel(words[0], &label) &&
         std::all_of(words.begin() + 1, words.end(), [](const std::string& word) {
           const size_t colon = word.find(':');
           int64_t index;
           double value;
           return colon != word.npos && ParseInteger(word.substr(0, colon), &index) &&
                  ParseNumber(word.substr(colon + 1), &value);
         });
}

bool Guess::IsLibsvm() const {
  const size_t count = std::min(lines_[0].size(), kLayoutLines);
  const auto good = std::count_if(lines_[0].begin(), lines_[0].begin() + count, IsLibsvmLine);
  return static_cast<double>(good) >= kMostLines * static_cast<double>(count);
}

StatusOr<std::string> Guess::LibsvmText() {
  size_t least = std::numeric_limits<size_t>::max(), most = 0;
  int64_t positives = 0;
  bool ones = true;
  for (const auto& lines : lines_) {
    for (const std::string& line : lines) {
      if (!IsLibsvmLine(line)) {
        ++bad_rows_;
        continue;
      }
      const Row words = WordsOf(line);
      ++rows_;
      float label = 0;
      ParseLabel(words[0], &label);
      positives += label == 1;
      least = std::min(least, words.size() - 1);
      most = std::max(most, words.size() - 1);
      for (size_t i = 1; i < words.size(); ++i) {
        double value = 0;
        ParseNumber(std::string_view(words[i]).substr(words[i].find(':') + 1), &value);
        ones &= value == 1;
      }
    }
  }
  if (!ones && least != most) {
    return UserError(paths_[0] +
                     ": pairs with values other than 1, and not as many in every row; "
                     "no schema reads such rows");
  }
  schema_.set_layout(Schema::LIBSVM);
  const std::string pairs =
      least == most ? std::to_string(most) : std::to_string(least) + " to " + std::to_string(most);
  std::string text = Begin("label, then " + pairs + " pairs index:value") + "# Label: " +
                     NumberText(static_cast<double>(positives) / static_cast<double>(rows_)) +
                     " positive.\n" + "layout: LIBSVM\n" + "max_bad_rows: 100\n" +
                     "split { train: 0.8 validation: 0.1 test: 0.1 by: HASH }\n";
  if (least != most) {
    return text +
           "fields { name: \"features\" type: MULTI_HOT max_length: " + std::to_string(most) +
           " }\n";
  }
  const std::string names = most == 1 ? "\"f1\"" : "\"f1..f" + std::to_string(most) + "\"";
  return text + "fields { names: " + names + " type: " + (ones ? "CATEGORICAL" : "NUMERIC") +
         " }\n";
}

Row Guess::Split(const std::string& line) const {
  const StatusOr<Row> values = ColumnNames(schema_, line, "");
  return values.ok() ? *values : Row();
}

// How many of the first lines the schema cuts into equally many columns, and how many columns; of
// equal ones the more columns.
std::pair<size_t, size_t> Guess::LinesAlike() const {
  const std::vector<std::string>& lines = lines_[0];
  std::map<size_t, size_t> lines_of;  // by number of columns
  for (size_t i = 0; i < std::min(lines.size(), kLayoutLines); ++i) {
    ++lines_of[Split(lines[i]).size()];
  }
  std::pair<size_t, size_t> best = {0, 0};
  for (const auto& [columns, with] : lines_of) {
    if (columns >= 2) best = std::max(best, {with, columns});
  }
  return best;
}

// Whether quotes stand around whole values, so that they are no part of them, or around delimiters;
// not where lines are no longer alike then. The schema is as it is for `plain`.
bool Guess::QuotesAreAroundValues(const std::pair<size_t, size_t>& plain,
                                  const std::pair<size_t, size_t>& quoted) const {
  const std::vector<std::string>& lines = lines_[0];
  const size_t count = std::min(lines.size(), kLayoutLines);
  const double most = kMostLines * static_cast<double>(count);
  if (static_cast<double>(quoted.first) < std::min(static_cast<double>(plain.first), most)) {
    return false;
  }
  if (quoted.second != plain.second || quoted.first > plain.first) return true;
  const auto in_quotes = [](const std::string& value) {
    return value.size() > 1 && value.front() == '"' && value.back() == '"';
  };
  return std::any_of(lines.begin(), lines.begin() + count, [&](const std::string& line) {
    return std::ranges::any_of(Split(line), in_quotes);
  });
}

// The delimiter that cuts the most lines into as many columns; of equal ones, into more.
Status Guess::ChooseDelimiter() {
  const std::vector<std::string>& lines = lines_[0];
  const size_t count = std::min(lines.size(), kLayoutLines);
  const auto quote = [](const std::string& line) { return line.find('"') != line.npos; };
  const bool quotes = std::any_of(lines.begin(), lines.begin() + count, quote);
  std::pair<size_t, size_t> best = {0, 0};  // lines, columns
  Schema chosen;
  for (const char* delimiter : {"\t", ",", "::", ";", "|", " "}) {
    // Spaces stand within values, too.
    if (delimiter[0] == ' ' && best.first > count / 2) continue;
    schema_.set_delimiter(delimiter);
    schema_.set_quoted(quotes);
    std::pair<size_t, size_t> alike = LinesAlike();
    if (quotes) {
      schema_.set_quoted(false);
      const std::pair<size_t, size_t> plain = LinesAlike();
      const bool around = QuotesAreAroundValues(plain, alike);
      schema_.set_quoted(around);
      if (!around) alike = plain;
    }
    if (alike <= best) continue;
    best = alike;
    chosen = schema_;
  }
  if (static_cast<double>(best.first) < kMostLines * static_cast<double>(count)) {
    return UserError(paths_[0] +
                     ": no delimiter makes equally many columns of its lines; expected "
                     "tabs, commas, '::', semicolons, bars or spaces between them");
  }
  schema_ = chosen;
  for (int64_t i = 0; i < kMostSkipped && Split(lines[i]).size() != best.second; ++i) {
    schema_.set_skip_lines(i + 1);
  }
  // A space after every comma is part of the delimiter.
  const std::string spaced = schema_.delimiter() + " ";
  Schema with_space = schema_;
  with_space.set_delimiter(spaced);
  std::swap(schema_, with_space);
  const auto same = [&](const std::string& line) { return Split(line).size() == best.second; };
  const auto spaced_lines = std::count_if(lines.begin(), lines.begin() + count, same);
  if (schema_.delimiter() == "  " || spaced_lines != static_cast<int64_t>(best.first)) {
    std::swap(schema_, with_space);
  }
  columns_.resize(best.second);
  return OkStatus();
}

// Names are no numbers, each is there once, and no row has one in its column. The first may be
// empty: that of the names of rows, as R writes them.
bool Guess::FirstLineIsHeader() const {
  const std::vector<std::string>& lines = lines_[0];
  const size_t first = schema_.skip_lines();
  const Row names = Split(lines[first]);
  for (size_t i = 0; i < names.size(); ++i) {
    double number;
    if ((names[i].empty() && i > 0) || ParseNumber(names[i], &number) ||
        std::count(names.begin(), names.end(), names[i]) > 1) {
      return false;
    }
  }
  for (size_t line = first + 1; line < std::min(lines.size(), kLayoutLines); ++line) {
    const Row row = Split(lines[line]);
    for (size_t i = 0; i < std::min(row.size(), names.size()); ++i) {
      if (row[i] == names[i]) return false;
    }
  }
  return true;
}

void Guess::ReadColumns() {
  schema_.set_header(FirstLineIsHeader());
  const Row names = schema_.header() ? Split(lines_[0][schema_.skip_lines()]) : Row();
  for (size_t i = 0; i < columns_.size(); ++i) {
    columns_[i].name = names.empty() ? "c" + std::to_string(i + 1) : names[i];
  }
  for (const auto& lines : lines_) {
    for (size_t i = schema_.skip_lines() + schema_.header(); i < lines.size(); ++i) {
      const Row row = Split(lines[i]);
      const bool good = row.size() == columns_.size();
      ++(good ? rows_ : bad_rows_);
      for (size_t column = 0; good && column < row.size(); ++column) {
        AddValue(row[column], &columns_[column]);
      }
    }
  }
  std::map<std::string, bool> nulls;
  for (const Column& column : columns_) {
    for (const auto& [text, count] : column.nulls) nulls[text] = true;
  }
  for (const auto& [text, unused] : nulls) schema_.add_null(text);
}

// How likely a column is the label; 0: it cannot be.
int LabelScore(const Column& column, bool named) {
  constexpr std::string_view kNames[] = {"label",  "click",    "clicked", "clk",     "is_click",
                                         "target", "y",        "class",   "clicks",  "is_clicked",
                                         "income", "purchase", "convert", "outcome", "survived"};
  if (column.missing > 0) return 0;
  const std::string name = LowerCase(column.name);
  const bool known = named && std::ranges::find(kNames, name) != std::end(kNames);
  const bool rating = name.find("rating") != name.npos || name.find("score") != name.npos;
  const bool two = column.values.size() == 2;
  const bool labels = two && std::ranges::all_of(column.values, [](const auto& value) {
                        float label;
                        return ParseLabel(value.first, &label);
                      });
  if (labels) return known ? 6 : 4;
  if (two && !column.numeric()) return known ? 5 : 3;
  const bool ratings = column.numeric() && column.values.size() > 2 &&
                       column.values.size() <= kMostRatings && column.least >= 0 &&
                       column.largest <= 10;
  return !ratings ? 0 : rating ? 5 : 1;
}

// From where on a rating counts as liked: the first one above the mean.
double Threshold(const Column& column) {
  double least = column.largest;
  for (const auto& [value, count] : column.values) {
    double number = 0;
    ParseNumber(value, &number);
    if (number > column.mean()) least = std::min(least, number);
  }
  return least;
}

// Of two texts the one that is 1: by its meaning, else the rarer one.
std::string PositiveText(const Column& column) {
  constexpr std::string_view kYes[] = {"yes", "true", "y", "t", "click", "positive", "1"};
  const auto &first = *column.values.begin(), &second = *std::next(column.values.begin());
  for (const auto* value : {&first, &second}) {
    if (std::ranges::find(kYes, LowerCase(value->first)) != std::end(kYes)) return value->first;
  }
  return std::pair(first.second, first.first) < std::pair(second.second, second.first)
             ? first.first
             : second.first;
}

bool IsTwoTexts(const Column& column) { return column.values.size() == 2 && !column.numeric(); }

double Guess::PositiveRate(const Column& column) const {
  int64_t positives = 0;
  for (const auto& [value, count] : column.values) {
    double number = 0;
    ParseNumber(value, &number);
    const bool positive = IsTwoTexts(column)         ? value == PositiveText(column)
                          : column.values.size() > 2 ? number >= Threshold(column)
                                                     : number == 1;
    if (positive) positives += count;
  }
  return static_cast<double>(positives) / static_cast<double>(column.count);
}

Status Guess::TakeLabel() {
  const auto column = std::ranges::find(columns_, given_label_, &Column::name);
  if (column == columns_.end()) {
    std::string names;
    for (const Column& each : columns_) names += (names.empty() ? "" : ", ") + each.name;
    return UserError("--label=" + given_label_ + ": no such column; expected one of " + names);
  }
  const size_t values = column->values.size();
  if (values < 2 || (values > 2 && !column->numeric())) {
    return UserError("--label=" + given_label_ + ": found " + std::to_string(values) +
                     (values == 1 ? " value" : " values") +
                     "; expected 0 and 1, two texts, or numbers");
  }
  label_ = static_cast<size_t>(column - columns_.begin());
  candidates_ = {label_};
  return OkStatus();
}

Status Guess::ChooseLabel() {
  if (!given_label_.empty()) return TakeLabel();
  std::map<int, std::vector<size_t>> by_score;
  for (size_t i = 0; i < columns_.size(); ++i) {
    by_score[-LabelScore(columns_[i], schema_.header())].push_back(i);
  }
  by_score.erase(0);
  for (auto& [score, places] : by_score) {
    if (score == -3) std::ranges::reverse(places);  // two texts stand last more often
    candidates_.insert(candidates_.end(), places.begin(), places.end());
  }
  if (rows_ == 0) return UserError(paths_[0] + ": no rows found");
  if (candidates_.empty()) {
    return UserError(paths_[0] +
                     ": no column can be the label; expected one with 0 and 1, two "
                     "texts, or ratings from 0 to 10, and never missing; or --label=COLUMN");
  }
  label_ = candidates_[0];
  return OkStatus();
}

// Columns whose value tells the label, such as its opposite.
void Guess::FindCopies() {
  std::vector<std::map<std::string, std::string>> label_of(columns_.size());
  copies_.assign(columns_.size(), false);
  std::vector<bool> may(columns_.size());
  for (size_t i = 0; i < columns_.size(); ++i) {
    may[i] = i != label_ && columns_[i].values.size() == columns_[label_].values.size();
  }
  for (const auto& lines : lines_) {
    for (size_t i = schema_.skip_lines() + schema_.header(); i < lines.size(); ++i) {
      const Row row = Split(lines[i]);
      if (row.size() != columns_.size()) continue;
      for (size_t c = 0; c < columns_.size(); ++c) {
        may[c] =
            may[c] && label_of[c].try_emplace(row[c], row[label_]).first->second == row[label_];
      }
    }
  }
  copies_ = may;
}

std::string Guess::LabelText(const Column& column) const {
  if (IsTwoTexts(column)) {
    const std::string positive = PositiveText(column);
    const std::string& first = column.values.begin()->first;
    const std::string& other = first == positive ? std::next(column.values.begin())->first : first;
    return "LABEL positive: " + Quoted(positive) + " negative: " + Quoted(other);
  }
  if (column.values.size() == 2) return "LABEL";
  return "LABEL at_least: " + NumberText(Threshold(column));
}

bool HasHeavyTail(const Column& column) {
  return column.least >= -1 && column.largest >= kHeavyTail * column.mean();
}

// Whether a column's numbers are quantities, rather than names of things.
bool IsNumber(const Column& column, int64_t rows) {
  const std::string name = LowerCase(column.name);
  if (!column.numeric()) return false;
  if (!column.integral()) return true;
  if (name.ends_with("id") || name.starts_with("user") || name.starts_with("item")) return false;
  const size_t distinct = column.values.size();
  const bool small = distinct <= kMostSmallNumbers &&
                     column.largest - column.least < kLargestGap * static_cast<double>(distinct);
  return distinct > kFewValues && (column.least < -1 || HasHeavyTail(column) || small ||
                                   2 * static_cast<int64_t>(distinct) > rows);
}

// Type and options of a column that is no time.
std::string Guess::FieldText(size_t place) const {
  const Column& column = columns_[place];
  if (place == label_) return LabelText(column);
  if (copies_[place]) return "IGNORED  # tells the label";
  if (column.values.size() < 2) return "IGNORED  # the same in all rows";
  const auto distinct = static_cast<int64_t>(column.values.size());
  const std::string name = LowerCase(column.name);
  const bool text_or_integer = !column.numeric() || column.integral();
  if (distinct == rows_ && rows_ >= kManyRows && text_or_integer) {
    return "IGNORED  # another value in every row";
  }
  if (IsNumber(column, rows_)) {
    return std::string("NUMERIC transform: ") +
           (HasHeavyTail(column) ? "LOG2_STANDARDIZE" : "STANDARDIZE");
  }
  for (size_t i = 0; i < kSeparators.size() && !column.numeric(); ++i) {
    if (kSeparators.substr(i, 1) == schema_.delimiter()) continue;
    if (static_cast<double>(column.bags[i]) < kBagShare * static_cast<double>(column.count) ||
        column.bags[i] == 0) {
      continue;
    }
    const bool series = name.find("list") != name.npos || name.find("seq") != name.npos ||
                        name.find("hist") != name.npos;
    return std::string(series ? "SEQUENCE" : "MULTI_HOT") +
           " pooling: MEAN separator: " + Quoted(kSeparators.substr(i, 1)) +
           " max_length: " + std::to_string(std::min(column.longest_bag[i], kLongestBag));
  }
  return std::string("CATEGORICAL") + (distinct * 10 > rows_ ? " min_count: 2" : "");
}

// A time, and what is made of it: hour and weekday.
std::string Guess::TimeFields(size_t place, Field::TimeFormat format) {
  const Column& column = columns_[place];
  const std::string name = Quoted(column.name);
  const std::string written =
      format == Field::UNIX_SECONDS ? "" : " time_format: " + Field::TimeFormat_Name(format);
  const bool row_time = !has_time_ && column.missing == 0;
  has_time_ |= row_time;
  const auto made = [&](const char* suffix, const char* transform, bool first) {
    return "fields {\n  name: " +
           (first ? name : Quoted(column.name + suffix) + " column: " + name) +
           "\n  type: CATEGORICAL transform: " + transform + written + "\n}\n";
  };
  const std::string time = "fields { name: " + name + " type: TIME" + written + " }\n";
  return (row_time ? time : "") + made("_hour", "HOUR", !row_time) +
         made("_weekday", "WEEKDAY", false);
}

std::string Guess::Begin(const std::string& layout) const {
  int64_t bytes = 0;
  for (const auto& lines : lines_) {
    for (const std::string& line : lines) bytes += static_cast<int64_t>(line.size()) + 1;
  }
  std::string files;
  for (const std::string& path : paths_) {
    files += (files.empty() ? "" : ", ") + std::filesystem::path(path).filename().string();
  }
  return "# Proposed by prepare --guess from the first " + std::to_string(bytes) + " bytes of " +
         files + ":\n# " + std::to_string(rows_) + " rows, " + std::to_string(bad_rows_) +
         " bad ones; " + layout + ".\n";
}

std::string Guess::ColumnTable() const {
  std::string table = "#\n#   values  missing         min         max        mean  column\n";
  for (const Column& column : columns_) {
    char line[128];
    const double share = static_cast<double>(column.missing) / static_cast<double>(rows_);
    const bool numeric = column.numeric();
    std::snprintf(line, sizeof(line), "# %8zu %8.4f %11s %11s %11s  ", column.values.size(), share,
                  numeric ? NumberText(column.least).c_str() : "",
                  numeric ? NumberText(column.largest).c_str() : "",
                  numeric ? NumberText(column.mean()).c_str() : "");
    table += line + Shown(column.name) + "\n";
  }
  return table;
}

std::string Guess::DelimitedText() {
  std::string text = Begin(std::to_string(columns_.size()) + " columns between " +
                           (schema_.delimiter() == "\t" ? "tabs" : Shown(schema_.delimiter())) +
                           ", " + (schema_.header() ? "with" : "no") + " header");
  candidates_.resize(std::min(candidates_.size(), kMostCandidates));
  for (const size_t place : candidates_) {
    text += "# " + std::string(place == label_ ? "Label: " : "It could be ") +
            Shown(columns_[place].name) + ", " + NumberText(PositiveRate(columns_[place])) +
            " positive.\n";
  }
  text += ColumnTable() + "layout: DELIMITED\ndelimiter: " + Quoted(schema_.delimiter()) + "\n";
  if (schema_.skip_lines() > 0) {
    text += "skip_lines: " + std::to_string(schema_.skip_lines()) + "\n";
  }
  if (schema_.header()) text += "header: true\n";
  if (schema_.quoted()) text += "quoted: true\n";
  for (const std::string& null : schema_.null()) text += "null: " + Quoted(null) + "\n";
  if (const int64_t missing = columns_[label_].missing; missing > 0) {
    text += "# Rows without the label are bad rows: " +
            NumberText(static_cast<double>(missing) / static_cast<double>(rows_)) + " of all.\n";
    text += "max_bad_rows: 1000000000\n";
  } else {
    text += "max_bad_rows: 100\n";
  }
  text += "split { train: 0.8 validation: 0.1 test: 0.1 by: HASH }\n";
  std::vector<std::string> names;  // of columns that are alike
  std::string alike;
  const auto flush = [&] {
    if (names.empty()) return;
    std::string list;
    for (const std::string& name : names) list += (list.empty() ? "" : ", ") + Quoted(name);
    const bool range = names.size() > 2 && !schema_.header();
    if (range) list = Quoted(names.front() + ".." + names.back());
    text += names.size() == 1 ? "fields { name: " + list
                              : "fields { names: " + (range ? list : "[" + list + "]");
    const size_t comment = alike.find("  #");
    text += " type: " + alike.substr(0, comment) + " }" +
            (comment == alike.npos ? "" : alike.substr(comment)) + "\n";
    names.clear();
  };
  for (size_t i = 0; i < columns_.size(); ++i) {
    if (columns_[i].name.empty()) continue;  // the names of rows
    const auto format = std::ranges::find(columns_[i].times, columns_[i].count);
    const bool time = columns_[i].values.size() > 2 && format != std::end(columns_[i].times);
    const std::string field = time ? "" : FieldText(i);
    if (time || field != alike || columns_[i].name.find("..") != std::string::npos ||
        (!names.empty() && names.back().find("..") != std::string::npos)) {
      flush();
    }
    alike = field;
    if (!time) {
      names.push_back(columns_[i].name);
      continue;
    }
    text += TimeFields(i, static_cast<Field::TimeFormat>(format - columns_[i].times));
  }
  flush();
  return text;
}

StatusOr<std::string> Guess::Run() {
  ELASTOR_RETURN_IF_ERROR(Read());
  if (IsLibsvm() && !given_label_.empty()) {
    return UserError("--label=" + given_label_ +
                     ": the label of libsvm's layout is its first word");
  }
  if (IsLibsvm()) return LibsvmText();
  ELASTOR_RETURN_IF_ERROR(ChooseDelimiter());
  ReadColumns();
  ELASTOR_RETURN_IF_ERROR(ChooseLabel());
  FindCopies();
  return DelimitedText();
}

}  // namespace

StatusOr<std::string> GuessSchema(const std::vector<std::string>& paths, const std::string& label) {
  StatusOr<std::string> text = Guess(paths, label).Run();
  if (!text.ok()) return text;
  // Names and labels' values that no schema may have.
  if (const auto schema = ParseSchema(*text, "a schema of it"); !schema.ok()) {
    return UserError(paths[0] + ": " + schema.status().message());
  }
  return text;
}

}  // namespace elastor
