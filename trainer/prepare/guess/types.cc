#include "trainer/prepare/guess/types.h"

#include <algorithm>
#include <iterator>

#include "core/base/text.h"
#include "google/protobuf/stubs/strutil.h"
#include "trainer/prepare/guess/label.h"

namespace elastor {
namespace {

constexpr int64_t kManyRows = 100;         // tell a value of its own in every row from chance
constexpr size_t kFewValues = 20;          // integers with as many are categories
constexpr size_t kMostSmallNumbers = 150;  // ages, hours: integers without large gaps
constexpr double kLargestGap = 20;
constexpr double kHeavyTail = 5;     // the largest of counts is as many times their mean
constexpr double kBagShare = 0.02;   // of the values of a bag have several items
constexpr int64_t kLongestBag = 64;  // that is proposed

bool HasHeavyTail(const SampleColumn& column) {
  return column.least >= -1 && column.largest >= kHeavyTail * column.mean();
}

// Returns the place in kBagSeparators of what separates a column's items, or its size.
size_t SeparatorOf(const SampleColumn& column, std::string_view delimiter) {
  for (size_t i = 0; i < kBagSeparators.size() && !column.numeric(); ++i) {
    if (kBagSeparators.substr(i, 1) == delimiter || column.bags[i] == 0) continue;
    const double least = kBagShare * static_cast<double>(column.count);
    if (static_cast<double>(column.bags[i]) >= least) return i;
  }
  return kBagSeparators.size();
}

std::string BagType(const SampleColumn& column, size_t separator) {
  const std::string name = LowerCase(column.name);
  const bool series = name.find("list") != name.npos || name.find("seq") != name.npos ||
                      name.find("hist") != name.npos;
  return StrCat(series ? "SEQUENCE" : "MULTI_HOT",
                " pooling: MEAN separator: ", ProtoQuoted(kBagSeparators.substr(separator, 1)),
                " max_length: ", std::min(column.longest_bag[separator], kLongestBag));
}

}  // namespace

std::optional<Field::TimeFormat> TimeFormatOf(const SampleColumn& column) {
  const auto format = std::ranges::find(column.times, column.count);
  if (column.values.size() <= 2 || format == std::end(column.times)) return std::nullopt;
  return static_cast<Field::TimeFormat>(format - column.times);
}

bool IsQuantity(const SampleColumn& column, int64_t rows) {
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

std::string LabelType(const SampleColumn& column) {
  if (IsTwoTexts(column)) {
    const std::string positive = PositiveText(column);
    const std::string& first = column.values.begin()->first;
    const std::string& other = first == positive ? std::next(column.values.begin())->first : first;
    return StrCat("LABEL positive: ", ProtoQuoted(positive), " negative: ", ProtoQuoted(other));
  }
  if (column.values.size() == 2) return "LABEL";
  return StrCat("LABEL at_least: ", NumberText(LabelThreshold(column)));
}

std::string ColumnType(const SampleColumn& column, int64_t rows, bool tells_label,
                       std::string_view delimiter) {
  if (tells_label) return "IGNORED  # tells the label";
  if (column.values.size() < 2) return "IGNORED  # the same in all rows";
  const auto distinct = static_cast<int64_t>(column.values.size());
  const bool text_or_integer = !column.numeric() || column.integral();
  if (distinct == rows && rows >= kManyRows && text_or_integer) {
    return "IGNORED  # another value in every row";
  }
  if (IsQuantity(column, rows)) {
    return StrCat("NUMERIC transform: ", HasHeavyTail(column) ? "LOG2_STANDARDIZE" : "STANDARDIZE");
  }
  if (const size_t at = SeparatorOf(column, delimiter); at < kBagSeparators.size()) {
    return BagType(column, at);
  }
  return distinct * 10 > rows ? "CATEGORICAL min_count: 2" : "CATEGORICAL";
}

std::string ProtoQuoted(std::string_view text) {
  return "\"" + google::protobuf::strings::Utf8SafeCEscape(std::string(text)) + "\"";
}

std::string NumberText(double value) { return Format("%.6g", value); }

}  // namespace elastor
