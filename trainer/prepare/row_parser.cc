#include "trainer/prepare/row_parser.h"

#include <fast_float/fast_float.h>
#include <glog/logging.h>
#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/base/canonical_math.h"

namespace elastor {
namespace {

constexpr int64_t kDefaultMaxLength = 64;
constexpr char kDefaultSeparator = '|';
constexpr size_t kKeptBadRows = 8;
constexpr size_t kShownBytes = 40;
constexpr uint32_t kLineFeed = uint32_t{1} << 31;  // marks a separator that ends a line

// Appends the place of every `separator` and of every line feed (with kLineFeed) of `text`, eight
// bytes at a time: in `match` the top bit of a byte is set exactly where the byte equals.
void FindSeparators(const std::string& text, char separator, std::vector<uint32_t>* places) {
  constexpr uint64_t kOnes = 0x0101010101010101, kLow = 0x7f7f7f7f7f7f7f7f;
  const auto match = [](uint64_t word, uint64_t pattern) {
    const uint64_t x = word ^ pattern;
    return ~(((x & kLow) + kLow) | x | kLow);
  };
  const uint64_t separators = kOnes * static_cast<uint8_t>(separator), feeds = kOnes * '\n';
  size_t at = 0;
  for (; at + 8 <= text.size(); at += 8) {
    uint64_t word;
    std::memcpy(&word, text.data() + at, 8);
    const uint64_t feed = match(word, feeds);
    for (uint64_t found = match(word, separators) | feed; found != 0; found &= found - 1) {
      const int bit = std::countr_zero(found);
      places->push_back(static_cast<uint32_t>(at + bit / 8) | ((feed >> bit & 1) ? kLineFeed : 0));
    }
  }
  for (; at < text.size(); ++at) {
    if (text[at] == '\n') places->push_back(static_cast<uint32_t>(at) | kLineFeed);
    if (text[at] == separator) places->push_back(static_cast<uint32_t>(at));
  }
}

// A finite number that a float can hold, and nothing else. Short integers take the fast way.
bool ParseNumber(std::string_view text, double* value) {
  constexpr size_t kFastDigits = 15;
  const bool negative = !text.empty() && text[0] == '-';
  const std::string_view digits = text.substr(negative);
  if (!digits.empty() && digits.size() <= kFastDigits) {
    int64_t integer = 0;
    bool plain = true;
    for (const char c : digits) {
      plain &= c >= '0' && c <= '9';
      integer = integer * 10 + (c - '0');
    }
    if (plain) {
      *value = static_cast<double>(negative ? -integer : integer);
      return true;
    }
  }
  const auto [end, error] = fast_float::from_chars(text.data(), text.data() + text.size(), *value);
  return error == std::errc() && end == text.data() + text.size() &&
         std::abs(*value) <= std::numeric_limits<float>::max();
}

bool ParseInteger(std::string_view text, int64_t* value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return error == std::errc() && end == text.data() + text.size();
}

bool ParseLabel(std::string_view text, float* label) {
  if (text == "0" || text == "1") {
    *label = static_cast<float>(text[0] - '0');
    return true;
  }
  double value;
  if (!text.empty() && text[0] == '+') text.remove_prefix(1);
  if (!ParseNumber(text, &value) || (value != 0 && value != 1 && value != -1)) return false;
  *label = value == 1 ? 1.0f : 0.0f;
  return true;
}

// What was found, short and printable.
std::string Shown(std::string_view text) {
  std::string shown = "'";
  for (const char c : text.substr(0, kShownBytes)) {
    shown += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
  }
  return shown + (text.size() > kShownBytes ? "...'" : "'");
}

}  // namespace

double Log2Transform(double x) {
  if (!(x > 2)) return x;
  const double log = CanonicalLog(x);
  return std::floor(log * log);
}

// Appends one row to a chunk, or takes it back.
class RowParser::RowBuilder {
 public:
  RowBuilder(const RowParser& parser, ParsedChunk* chunk) : parser_(parser), chunk_(chunk) {}

  std::string_view Text(uint32_t begin, uint32_t end) const {
    return {chunk_->text.data() + begin, end - begin};
  }

  // Each adds one thing and returns false after noting what is wrong with it.
  bool AddLabel(std::string_view text) {
    float label;
    if (!ParseLabel(text, &label)) return Fail(1, "label", text, "0, 1 or -1");
    chunk_->labels.push_back(label);
    return true;
  }
  bool AddNumeric(size_t field, std::string_view text);
  bool AddMissing() {
    chunk_->numeric.push_back(std::numeric_limits<double>::quiet_NaN());
    return true;
  }
  bool AddSingle(size_t field, std::string_view text) {
    uint64_t id;
    if (!Encode(field, text, &id)) return false;
    chunk_->ids.push_back(id);
    return true;
  }
  bool AddToBag(size_t field, std::string_view text);
  void EndBag() { chunk_->bag_ends.push_back(static_cast<uint32_t>(chunk_->bags.size())); }

  bool Fail(size_t column, const std::string& name, std::string_view found,
            const std::string& expected) {
    return Fail("column " + std::to_string(column) + (name.empty() ? "" : " (" + name + ")") +
                ": found " + Shown(found) + ", expected " + expected);
  }
  bool Fail(std::string what) {
    failed_ = true;
    if (chunk_->bad.size() < kKeptBadRows) chunk_->bad.push_back({chunk_->lines, std::move(what)});
    return false;
  }
  bool FailField(size_t field, std::string_view found, const std::string& expected) {
    return Fail(field + 2, parser_.fields_[field].name, found, expected);
  }

  // Ends the line: keeps the row, or takes back what was added of it.
  void End();

 private:
  bool Encode(size_t field, std::string_view text, uint64_t* id);

  const RowParser& parser_;
  ParsedChunk* const chunk_;
  bool failed_ = false;
  size_t bags_before_ = 0;
};

bool RowParser::RowBuilder::AddNumeric(size_t field, std::string_view text) {
  double value;
  if (!ParseNumber(text, &value)) return FailField(field, text, "a number");
  const bool log2 = parser_.fields_[field].transform == Field::LOG2_STANDARDIZE;
  chunk_->numeric.push_back(log2 ? Log2Transform(value) : value);
  return true;
}

bool RowParser::RowBuilder::AddToBag(size_t field, std::string_view text) {
  uint64_t id;
  if (!Encode(field, text, &id)) return false;
  const size_t bag_begin = chunk_->bag_ends.empty() ? 0 : chunk_->bag_ends.back();
  const size_t most = static_cast<size_t>(parser_.fields_[field].max_length);
  if (chunk_->bags.size() - bag_begin < most) chunk_->bags.push_back(id);
  return true;
}

bool RowParser::RowBuilder::Encode(size_t field, std::string_view text, uint64_t* id) {
  const FieldPlan& plan = parser_.fields_[field];
  if (plan.encoding == Field::VOCABULARY) {
    *id = ParsedChunk::PackText(text.data() - chunk_->text.data(), text.size());
    return true;
  }
  if (plan.encoding == Field::HASH) {
    *id = XXH3_64bits(text.data(), text.size()) % plan.buckets;
    return true;
  }
  int64_t value;
  if (!ParseInteger(text, &value)) return FailField(field, text, "an integer");
  *id = static_cast<uint64_t>(value) - static_cast<uint64_t>(plan.offset);
  if (value >= plan.offset && *id < plan.buckets) return true;
  return FailField(field, text,
                   "an id in [" + std::to_string(plan.offset) + ", " +
                       std::to_string(plan.offset + static_cast<int64_t>(plan.buckets)) + ")");
}

void RowParser::RowBuilder::End() {
  ++chunk_->lines;
  if (failed_) {
    ++chunk_->bad_rows;
    chunk_->labels.resize(chunk_->rows);
    chunk_->numeric.resize(chunk_->rows * parser_.numeric_);
    chunk_->ids.resize(chunk_->rows * parser_.single_);
    chunk_->bag_ends.resize(chunk_->rows * parser_.multi_);
    chunk_->bags.resize(bags_before_);
    failed_ = false;
    return;
  }
  ++chunk_->rows;
  bags_before_ = chunk_->bags.size();
}

RowParser::RowParser(const Schema& schema) : layout_(schema.layout()) {
  for (const Field& field : schema.fields()) {
    fields_.push_back({field.name(), field.type(), field.transform(), field.encoding(),
                       static_cast<uint64_t>(field.buckets()), field.offset(),
                       field.max_length() == 0 ? kDefaultMaxLength : field.max_length(),
                       field.separator().empty() ? kDefaultSeparator : field.separator()[0]});
    numeric_ += field.type() == Field::NUMERIC;
    single_ += field.type() == Field::CATEGORICAL;
    multi_ += field.type() == Field::MULTI_HOT;
  }
}

void RowParser::Parse(ParsedChunk* chunk) const {
  CHECK_LT(chunk->text.size(), size_t{kLineFeed});
  chunk->lines = chunk->rows = chunk->bad_rows = 0;
  chunk->labels.clear();
  chunk->numeric.clear();
  chunk->ids.clear();
  chunk->bag_ends.clear();
  chunk->bags.clear();
  chunk->bad.clear();
  if (layout_ == Schema::LIBSVM) {
    ParseLibsvm(chunk);
  } else {
    ParseTsv(chunk);
  }
}

void RowParser::ParseTsv(ParsedChunk* chunk) const {
  std::vector<uint32_t> places;
  places.reserve(chunk->text.size() / 4);
  FindSeparators(chunk->text, '\t', &places);
  RowBuilder row(*this, chunk);
  uint32_t begin = 0;
  for (size_t first = 0; first < places.size();) {
    size_t last = first;
    while ((places[last] & kLineFeed) == 0) ++last;
    const uint32_t feed = places[last] & ~kLineFeed;
    // A line may end in CR LF.
    places[last] = feed > begin && chunk->text[feed - 1] == '\r' ? feed - 1 : feed;
    ParseTsvLine(&places[first], static_cast<int64_t>(last - first + 1), begin, &row);
    row.End();
    begin = feed + 1;
    first = last + 1;
  }
}

void RowParser::ParseTsvLine(const uint32_t* ends, int64_t count, uint32_t begin,
                             RowBuilder* row) const {
  const int64_t columns = static_cast<int64_t>(fields_.size()) + 1;
  if (count != columns) {
    row->Fail("found " + std::to_string(count) + " columns, expected " + std::to_string(columns));
    return;
  }
  if (!row->AddLabel(row->Text(begin, ends[0]))) return;
  for (size_t field = 0; field < fields_.size(); ++field) {
    std::string_view text = row->Text(ends[field] + 1, ends[field + 1]);
    const FieldPlan& plan = fields_[field];
    if (plan.type == Field::CATEGORICAL) {
      if (!row->AddSingle(field, text)) return;
    } else if (plan.type == Field::NUMERIC) {
      if (!(text.empty() ? row->AddMissing() : row->AddNumeric(field, text))) return;
    } else {
      while (!text.empty()) {
        const size_t size = std::min(text.find(plan.separator), text.size());
        if (size > 0 && !row->AddToBag(field, text.substr(0, size))) return;
        text.remove_prefix(std::min(size + 1, text.size()));
      }
      row->EndBag();
    }
  }
}

void RowParser::ParseLibsvm(ParsedChunk* chunk) const {
  RowBuilder row(*this, chunk);
  for (size_t begin = 0; begin < chunk->text.size();) {
    const size_t feed = chunk->text.find('\n', begin);
    CHECK_NE(feed, std::string::npos) << "a chunk ends in a line feed";
    ParseLibsvmLine(std::string_view(chunk->text).substr(begin, feed - begin), &row);
    row.End();
    begin = feed + 1;
  }
}

void RowParser::ParseLibsvmLine(std::string_view line, RowBuilder* row) const {
  static constexpr std::string_view kSpaces = " \t\r";
  const auto next = [&line] {
    line.remove_prefix(std::min(line.find_first_not_of(kSpaces), line.size()));
    const std::string_view word = line.substr(0, line.find_first_of(kSpaces));
    line.remove_prefix(word.size());
    return word;
  };
  if (!row->AddLabel(next())) return;
  size_t pairs = 0;
  const bool open = multi_ > 0;  // the last field takes all remaining pairs
  for (std::string_view pair = next(); !pair.empty(); pair = next(), ++pairs) {
    const size_t field = open ? std::min(pairs, fields_.size() - 1) : pairs;
    if (field >= fields_.size()) {
      row->Fail(pairs + 2, "", pair, "only " + std::to_string(fields_.size()) + " pairs");
      return;
    }
    const size_t colon = pair.find(':');
    double value;
    if (colon == std::string_view::npos || !ParseNumber(pair.substr(colon + 1), &value)) {
      row->Fail(pairs + 2, fields_[field].name, pair, "index:number");
      return;
    }
    const std::string_view index = pair.substr(0, colon);
    if (fields_[field].type == Field::NUMERIC) {
      if (!row->AddNumeric(field, pair.substr(colon + 1))) return;
    } else if (value != 1) {
      row->Fail(pairs + 2, fields_[field].name, pair, "value 1 of a categorical field");
      return;
    } else if (!(fields_[field].type == Field::MULTI_HOT ? row->AddToBag(field, index)
                                                         : row->AddSingle(field, index))) {
      return;
    }
  }
  if (pairs + open < fields_.size()) {
    row->Fail("found " + std::to_string(pairs) + " pairs, expected " +
              std::to_string(fields_.size() - open) + (open ? " or more" : ""));
    return;
  }
  if (open) row->EndBag();
}

}  // namespace elastor
