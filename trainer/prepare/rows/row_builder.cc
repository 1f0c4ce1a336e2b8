#include "trainer/prepare/rows/row_builder.h"

#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <limits>
#include <utility>

#include "core/base/canonical_flush.h"
#include "core/base/text.h"
#include "trainer/data/sized_text.h"
#include "trainer/prepare/rows/list_text.h"
#include "trainer/prepare/rows/time_text.h"
#include "trainer/prepare/rows/value_text.h"

namespace elastor {
namespace {

constexpr char kDefaultSeparator = '|';
constexpr size_t kKeptBadRows = 8;
constexpr double kLeastBucketed = -9e18;  // floor(x) must be an int64
// Lists in a chunk are shorter, unless its rows share long ones of side tables or histories.
constexpr size_t kMostListBytes = size_t{1} << 30;

bool IsBag(Field::Type type) { return type == Field::MULTI_HOT || type == Field::SEQUENCE; }

// A number as text, in decimal.
class IntegerText {
 public:
  explicit IntegerText(int64_t value)
      : end_(std::to_chars(digits_, digits_ + sizeof digits_, value).ptr) {}
  std::string_view view() const { return {digits_, static_cast<size_t>(end_ - digits_)}; }

 private:
  char digits_[24];
  const char* end_;
};

// "'yes', 'no'": the texts of a label with `positive`.
std::string LabelTexts(const FieldPlan& field) {
  if (field.negative.empty()) return "a text";
  std::string texts;
  for (const auto* part : {&field.positive, &field.negative}) {
    for (const std::string& text : *part) texts += (texts.empty() ? "" : ", ") + Shown(text);
  }
  return texts;
}

}  // namespace

FieldPlan::FieldPlan(const Field& field, int64_t column)
    : name(field.name()),
      type(field.type()),
      transform(field.transform()),
      encoding(field.encoding()),
      buckets(static_cast<uint64_t>(field.buckets())),
      offset(field.offset()),
      max_length(field.max_length() == 0 ? kDefaultMaxLength : field.max_length()),
      separator(field.separator().empty() ? kDefaultSeparator : field.separator()[0]),
      list(field.list()),
      time_format(field.time_format()),
      boundaries(field.boundaries().begin(), field.boundaries().end()),
      label_of_number(field.has_at_least()),
      at_least(field.at_least()),
      positive(field.positive().begin(), field.positive().end()),
      negative(field.negative().begin(), field.negative().end()),
      any_value(field.any_value()),
      keep_missing(field.keep_missing()),
      column(column) {}

bool IsLabel(const FieldPlan& field, double number) {
  if (std::isnan(number) || !field.positive.empty()) return false;
  return field.label_of_number || number == 0 || std::abs(number) == 1;
}

float LabelOf(const FieldPlan& field, double number) {
  if (std::isnan(number)) return std::numeric_limits<float>::quiet_NaN();
  return number >= (field.label_of_number ? field.at_least : 1) ? 1.0f : 0.0f;
}

uint64_t HashedId(const FieldPlan& field, std::string_view text) {
  if (field.encoding == Field::HASHED_KEY) return HashedKey(text);
  return XXH3_64bits(text.data(), text.size()) % field.buckets;
}

RowBuilder::RowBuilder(const std::vector<FieldPlan>& fields, bool optional_labels,
                       ParsedChunk* chunk)
    : chunk_(chunk), optional_labels_(optional_labels) {
  for (const FieldPlan& field : fields) {
    labels_ += field.type == Field::LABEL;
    numeric_ += field.type == Field::NUMERIC;
    single_ += field.type == Field::CATEGORICAL;
    multi_ += IsBag(field.type);
  }
  labels_ = std::max<size_t>(labels_, 1);  // LIBSVM's is no field
  row_cuts_.assign(multi_, 0);
  chunk_->cut_values.assign(multi_, 0);
}

bool RowBuilder::Add(const FieldPlan& field, std::string_view text) {
  column_ = text;
  switch (field.type) {
    case Field::CATEGORICAL:
      return field.transform == Field::NONE ? AddText(field, text) : AddMade(field, text);
    case Field::NUMERIC:
      if (!text.empty()) return AddNumber(field, text);
      chunk_->numeric.push_back(std::numeric_limits<double>::quiet_NaN());
      return true;
    case Field::LABEL:
      return AddLabel(field, text);
    case Field::WEIGHT:
      return AddWeight(field, text);
    case Field::GROUP:
      chunk_->groups.push_back(XXH3_64bits(text.data(), text.size()));
      return true;
    case Field::TIME:
      return AddTime(field, text);
    case Field::MULTI_HOT:
    case Field::SEQUENCE:
      return AddBag(field, text);
    default:  // IGNORED
      return true;
  }
}

bool RowBuilder::AddLibsvmLabel(std::string_view text) {
  float label = std::numeric_limits<float>::quiet_NaN();
  const bool missing = optional_labels_ && text.empty();
  if (!missing && !ParseLabel(text, &label)) {
    return Fail(1, "label", text, "0, 1 or -1; a field of type LABEL reads other labels");
  }
  chunk_->labels.push_back(label);
  return true;
}

bool RowBuilder::AddLabel(const FieldPlan& field, std::string_view text) {
  float label = std::numeric_limits<float>::quiet_NaN();
  if ((labels_ > 1 || optional_labels_) && text.empty()) {
    // Missing.
  } else if (field.label_of_number) {
    double number;
    if (!ParseNumber(text, &number)) return FailField(field, text, "a number");
    label = number >= field.at_least ? 1.0f : 0.0f;
  } else if (!field.positive.empty()) {
    const bool is_positive = std::ranges::find(field.positive, text) != field.positive.end();
    const bool is_negative = field.negative.empty()
                                 ? !text.empty()
                                 : std::ranges::find(field.negative, text) != field.negative.end();
    if (!is_positive && !is_negative) return FailField(field, text, LabelTexts(field));
    label = is_positive ? 1.0f : 0.0f;
  } else if (!ParseLabel(text, &label)) {
    return FailField(field, text, "0, 1 or -1");
  }
  chunk_->labels.push_back(label);
  return true;
}

bool RowBuilder::AddNumber(const FieldPlan& field, std::string_view text) {
  double value;
  if (!ParseNumber(text, &value)) return FailNumber(field, text);
  return AddNumber(field, value);
}

bool RowBuilder::AddNumber(const FieldPlan& field, double value) {
  if (field.type != Field::LABEL) {
    chunk_->numeric.push_back(TakesLog2(field) ? Log2Transform(value) : value);
    return true;
  }
  if (!IsLabel(field, value)) {
    // As a table's numbers are written (docs/use/data.md).
    const bool fixed = std::abs(value) >= 1e-4 && std::abs(value) < 1e16;
    const auto format = fixed ? std::chars_format::fixed : std::chars_format::scientific;
    char text[32];
    const char* const end = std::to_chars(text, text + sizeof text, value, format).ptr;
    return AddLabel(field, {text, std::isnan(value) ? 0 : static_cast<size_t>(end - text)});
  }
  chunk_->labels.push_back(LabelOf(field, value));
  return true;
}

bool RowBuilder::AddWeight(const FieldPlan& field, std::string_view text) {
  // So that no sum over rows overflows.
  constexpr double kLargest = 1e12;
  double value = 1;
  if (!text.empty() && (!ParseNumber(text, &value) || value < 0 || value > kLargest)) {
    return FailField(field, text, "a number from 0 to 1e12");
  }
  chunk_->weights.push_back(CanonicalCast<float>(value));
  return true;
}

bool RowBuilder::AddTime(const FieldPlan& field, std::string_view text) {
  int64_t seconds;
  if (!ParseTime(text, field.time_format, &seconds)) return FailTime(field, text);
  chunk_->times.push_back(seconds);
  return true;
}

bool RowBuilder::AddBag(const FieldPlan& field, std::string_view text) {
  if (field.list == Field::BRACKETS && !text.empty()) {
    if (!BracketItems(text, &items_)) {
      return FailField(field, text, "a list in brackets such as ['a', 'b'] or [1, 2]");
    }
    for (const std::string& item : items_) {
      if ((field.keep_missing || !item.empty()) && !AddToBag(field, item)) return false;
    }
    text = "";
  }
  for (size_t at = 0; at <= text.size() && !text.empty();) {
    const size_t end = std::min(text.find(field.separator, at), text.size());
    std::string_view item = text.substr(at, end - at);
    if (field.list == Field::TRIMMED) item = TrimBlanks(item);
    if ((field.keep_missing || !item.empty()) && !AddToBag(field, item)) return false;
    at = end + 1;
  }
  EndBag(field);
  return true;
}

bool RowBuilder::AddList(const FieldPlan& field, std::string_view texts) {
  column_ = texts;
  while (!texts.empty()) {
    const std::string_view item = TakeText(&texts);
    if ((field.keep_missing || !item.empty()) && !AddToBag(field, item)) return false;
  }
  EndBag(field);
  return true;
}

bool RowBuilder::AddHistory(const FieldPlan& field, std::string_view texts,
                            const HistoryPlace& from) {
  column_ = texts;
  int64_t row_time = 0;
  if (from.time_gap && !RowTime(field, &row_time)) return false;
  for (int at = 0; !texts.empty(); at = at + 1 == from.values ? 0 : at + 1) {
    const std::string_view text = TakeText(&texts);
    if (at != from.place) continue;
    int64_t time = 0;
    if (!from.time_gap) {
      if (!AddToBag(field, text)) return false;
    } else if (ParseInteger(text, &time)) {
      const auto gap = static_cast<uint64_t>(row_time) - static_cast<uint64_t>(time);
      if (!AddToBag(field, IntegerText(std::bit_width(gap)).view())) return false;
    }
  }
  EndBag(field);
  return true;
}

bool RowBuilder::RowTime(const FieldPlan& field, int64_t* time) {
  if (std::ssize(chunk_->times) <= chunk_->rows) {
    return Fail(StrCat("field ", field.name, ": found no TIME of the row, expected its column"));
  }
  *time = chunk_->times.back();
  return true;
}

void RowBuilder::AddEvent(std::string_view text) {
  column_ = text;
  chunk_->events.push_back(PlaceOf(text));
  ++row_events_;
}

bool RowBuilder::AddToBag(const FieldPlan& field, std::string_view text) {
  if (!Encode(field, text, &chunk_->bags)) return false;
  if (chunk_->bags.size() * sizeof(uint64_t) + chunk_->made.size() > kMostListBytes) {
    return Fail(StrCat("field ", field.name, ": found lists of more than 1 GiB in a few rows, ",
                       "expected a smaller max_length or shorter lists"));
  }
  const bool full = chunk_->bags.size() - BagBegin() > field.max_length;
  if (full) ++row_cuts_[chunk_->bag_ends.size() % multi_];
  if (full && field.type == Field::MULTI_HOT) chunk_->bags.pop_back();
  return true;
}

void RowBuilder::EndBag(const FieldPlan& field) {
  std::vector<uint64_t>& bags = chunk_->bags;
  const size_t begin = BagBegin();
  if (bags.size() - begin > field.max_length) {  // a SEQUENCE keeps its end
    std::copy(bags.end() - field.max_length, bags.end(), bags.begin() + begin);
    bags.resize(begin + field.max_length);
  }
  chunk_->bag_ends.push_back(static_cast<uint32_t>(bags.size()));
}

// The value that a transform makes a category of.
bool RowBuilder::Make(const FieldPlan& field, std::string_view text, int64_t* value) {
  if (field.transform == Field::BUCKET || field.transform == Field::LOG2_BUCKET) {
    double number;
    if (!ParseNumber(text, &number) || number < kLeastBucketed) return FailNumber(field, text);
    const auto& boundaries = field.boundaries;
    *value =
        field.transform == Field::LOG2_BUCKET
            ? static_cast<int64_t>(std::floor(Log2Transform(number)))
            : std::upper_bound(boundaries.begin(), boundaries.end(), number) - boundaries.begin();
    return true;
  }
  int64_t seconds;
  if (!ParseTime(text, field.time_format, &seconds)) return FailTime(field, text);
  if (field.transform == Field::AGE || field.transform == Field::DAYS_SINCE) {
    int64_t time;
    if (!RowTime(field, &time)) return false;
    *value =
        field.transform == Field::AGE ? YearsBetween(seconds, time) : DaysBetween(seconds, time);
    return true;
  }
  *value = field.transform == Field::HOUR    ? HourOf(seconds)
           : field.transform == Field::DAY   ? DayOf(seconds)
           : field.transform == Field::MONTH ? MonthOf(seconds)
                                             : WeekdayOf(seconds);
  if (field.transform == Field::WEEKEND) *value = *value >= 5;
  return true;
}

bool RowBuilder::AddMade(const FieldPlan& field, std::string_view text) {
  if (text.empty()) return AddText(field, text);  // missing
  int64_t value;
  if (!Make(field, text, &value)) return false;
  return Encode(field, IntegerText(value).view(), &chunk_->ids);
}

uint64_t RowBuilder::PlaceOf(std::string_view text) {
  const auto lies_in = [&text](std::string_view all) {
    return !std::less<>()(text.data(), all.data()) &&
           std::less<>()(text.data(), all.data() + all.size());
  };
  if (lies_in(chunk_->text)) {
    return ParsedChunk::PackText(text.data() - chunk_->text.data(), text.size());
  }
  if (lies_in(column_)) {
    chunk_->outside.push_back(text.data());
    return ParsedChunk::PackOutside(chunk_->outside.size() - 1, text.size());
  }
  const size_t place = chunk_->text.size() + chunk_->made.size();
  chunk_->made.append(text);
  return ParsedChunk::PackText(place, text.size());
}

bool RowBuilder::Encode(const FieldPlan& field, std::string_view text, std::vector<uint64_t>* ids) {
  uint64_t id;
  if (TakesText(field.encoding)) {
    id = field.encoding == Field::VOCABULARY ? PlaceOf(text) : HashedId(field, text);
  } else if (field.encoding == Field::IDENTITY_KEY) {
    if (!ParseKey(text, &id)) {
      return FailField(field, text,
                       "an integer from -2^63 to 2^64 - 1; encoding HASHED_KEY takes any text");
    }
  } else {
    int64_t value;
    if (!ParseInteger(text, &value)) return FailField(field, text, "an integer");
    if (!EncodeInteger(field, value, text, &id)) return false;
  }
  ids->push_back(id);
  return true;
}

bool RowBuilder::EncodeInteger(const FieldPlan& field, int64_t value, std::string_view text,
                               uint64_t* id) {
  *id = static_cast<uint64_t>(value) - static_cast<uint64_t>(field.offset);
  if (value >= field.offset && *id < field.buckets) return true;
  return FailField(field, text,
                   StrCat("an id in [", field.offset, ", ",
                          field.offset + static_cast<int64_t>(field.buckets), ")"));
}

bool RowBuilder::Fail(int64_t column, const std::string& name, std::string_view found,
                      const std::string& expected) {
  const std::string place = column == 0    ? StrCat("field ", name)
                            : name.empty() ? StrCat("column ", column)
                                           : StrCat("column ", column, " (", name, ")");
  return Fail(StrCat(place, ": found ", Shown(found), ", expected ", expected));
}

bool RowBuilder::FailNumber(const FieldPlan& field, std::string_view found) {
  if (MeansMissing(found)) {
    return FailField(field, found, "a number, or an empty text where it is missing");
  }
  const std::string text(found);
  char* end;
  std::strtod(text.c_str(), &end);
  const bool number = !text.empty() && end == text.c_str() + text.size();
  return FailField(field, found, number ? "a decimal number within float range" : "a number");
}

bool RowBuilder::FailTime(const FieldPlan& field, std::string_view found) {
  return FailField(field, found,
                   StrCat("a time, ", TimeFormatText(field.time_format),
                          OtherTimeFormat(found, field.time_format)));
}

bool RowBuilder::Fail(std::string what) {
  failed_ = true;
  if (in_negative_) what = StrCat("negative with item ", Shown(negative_item_), ": ", what);
  if (chunk_->bad.size() < kKeptBadRows) chunk_->bad.push_back({FirstLine(), std::move(what)});
  return false;
}

void RowBuilder::Hint(const std::string& hint) {
  if (!chunk_->bad.empty() && chunk_->bad.back().line == FirstLine()) {
    chunk_->bad.back().what += hint;
  }
}

void RowBuilder::End(int64_t lines) {
  last_record_line_ = chunk_->lines;
  chunk_->lines += lines;
  if (failed_) chunk_->bad_records.push_back(static_cast<uint32_t>(chunk_->records));
  ++chunk_->records;
  EndRow();
}

void RowBuilder::BeginNegative(std::string_view item) {
  in_negative_ = true;
  negative_item_ = item;
}

void RowBuilder::EndNegative() {
  EndRow();
  in_negative_ = false;
}

void RowBuilder::EndRow() {
  for (size_t i = 0; i < multi_; ++i) {
    if (!failed_) chunk_->cut_values[i] += row_cuts_[i];
    row_cuts_[i] = 0;
  }
  const size_t events = std::exchange(row_events_, 0);
  if (!failed_) {
    ++chunk_->rows;
    bags_before_ = chunk_->bags.size();
    return;
  }
  chunk_->events.resize(chunk_->events.size() - events);
  // Columns that the schema does not fill have no rows to lose.
  const auto take_back = [this](auto* column, size_t per_row) {
    column->resize(std::min(column->size(), chunk_->rows * per_row));
  };
  ++chunk_->bad_rows;
  take_back(&chunk_->labels, labels_);
  take_back(&chunk_->numeric, numeric_);
  take_back(&chunk_->ids, single_);
  take_back(&chunk_->bag_ends, multi_);
  take_back(&chunk_->weights, 1);
  take_back(&chunk_->groups, 1);
  take_back(&chunk_->times, 1);
  take_back(&chunk_->split_hashes, 1);
  chunk_->bags.resize(bags_before_);
  failed_ = false;
}

}  // namespace elastor
