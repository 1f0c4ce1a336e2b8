#include "trainer/prepare/guess/types.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "core/base/text.h"
#include "core/base/utf8.h"
#include "core/report/csv.h"
#include "google/protobuf/stubs/strutil.h"
#include "trainer/prepare/guess/lists.h"
#include "trainer/prepare/guess/name_hints.h"
#include "trainer/prepare/guess/value_kinds.h"
#include "trainer/prepare/rows/time_text.h"
#include "trainer/prepare/rows/value_text.h"

namespace elastor {
namespace {

constexpr int64_t kManyRows = 100;         // tell a value of its own in every row from chance
constexpr size_t kFewValues = 20;          // integers with as many are categories
constexpr size_t kMostSmallNumbers = 150;  // ages, hours: integers without large gaps
constexpr double kLargestGap = 20;
constexpr double kHeavyTail = 5;       // the largest of counts is as many times their mean
constexpr double kTailOfCounts = 0.3;  // the mean of different counts, by the largest
constexpr double kMostShare = 0.8;     // of a column's values have one kind, and the others are odd
constexpr size_t kMostMarks = 2;       // texts for missing values beside numbers
constexpr size_t kMostUnits = 3;       // of a column's numbers: k, M
constexpr int64_t kLeastRowsOfShape = 500;  // tell the shape of a histogram from chance
constexpr double kChangingRows = 2;         // variance of the rows of a number, by their mean
constexpr double kSlowSteps = 1.4;          // the same from one number to the next
constexpr double kExactIntegers = 9007199254740992;  // 2^53
constexpr int64_t kLongestBag = 256;                 // that is proposed

const char kLeftOut[] = "IGNORED";

ColumnProposal Ignored(const std::string& reason) { return {kLeftOut, reason, "", {}}; }
ColumnProposal LeftOut(const std::string& doubt) { return {kLeftOut, "", doubt, {}}; }

bool HasHeavyTail(const SampleColumn& column) {
  return column.least >= -1 && column.largest >= kHeavyTail * column.mean();
}

// Whether the larger of a column's different numbers are the sparser, as of counts: ids are not.
bool ThinsOut(const SampleColumn& column) {
  double sum = 0;
  for (const auto& [value, rows] : column.values) {
    double number = 0;
    ParseNumber(value, &number);
    sum += number;
  }
  return sum < kTailOfCounts * column.largest * static_cast<double>(column.values.size());
}

bool IsNumberText(std::string_view text) {
  double number;
  return ParseNumber(text, &number);
}
bool IsDateText(std::string_view text) { return IsLikelyTime(text, Field::YYYY_MM_DD_HH_MM_SS); }

// The values of a column that are not of the kind of all others.
struct OddTexts {
  size_t count = 0;
  std::string least;

  OddTexts(const SampleColumn& column, bool (*is)(std::string_view)) {
    for (const auto& [value, rows] : column.values) {
      if (is(value)) continue;
      if (++count == 1 || value < least) least = value;
    }
  }
  // Whether they are so few that they can be marks of missing values, in however many rows.
  bool AreMarks(const SampleColumn& column) const {
    return count <= kMostMarks && column.values.size() > kFewValues + count;
  }
  std::string Text() const {
    return StrCat(CountText(static_cast<int64_t>(count), "other text"), " such as ", Shown(least));
  }
};

// Shows the first value in order that `is` of the kind asked for. REQUIRES: there is one.
std::string FirstText(const SampleColumn& column, bool (*is)(std::string_view)) {
  const std::string* first = nullptr;
  for (const auto& [value, rows] : column.values) {
    if (is(value) && (first == nullptr || value < *first)) first = &value;
  }
  return Shown(*first);
}

// The day of a time, as YYYY-MM-DD.
std::string DayText(int64_t seconds) {
  constexpr size_t kDay = 10;
  return TimeText(seconds).substr(0, kDay);
}

// The format that reads all numbers of a column as likely times since 1970, if there is one.
std::optional<Field::TimeFormat> EpochFormat(const SampleColumn& column) {
  for (const Field::TimeFormat format : {Field::UNIX_SECONDS, Field::UNIX_MILLISECONDS,
                                         Field::UNIX_MICROSECONDS, Field::UNIX_NANOSECONDS}) {
    if (column.times[format] == column.count) return format;
  }
  return std::nullopt;
}

// "2014-10-21 to 2014-10-30": the first and the last day of a column of times.
std::string DaysText(const SampleColumn& column, Field::TimeFormat format) {
  int64_t first = std::numeric_limits<int64_t>::max(), last = -first, seconds;
  for (const auto& [value, rows] : column.values) {
    if (!ParseTime(value, format, &seconds)) continue;
    first = std::min(first, seconds);
    last = std::max(last, seconds);
  }
  return StrCat(DayText(first), " to ", DayText(last));
}

bool AllValues(const SampleColumn& column, bool (*is)(std::string_view)) {
  return std::ranges::all_of(column.values, [&](const auto& each) { return is(each.first); });
}

// A column of integers or other numbers that may be times. Nothing: it is none.
std::optional<ColumnProposal> ProposeNumericTime(const SampleColumn& column, bool named,
                                                 std::string* doubt) {
  const bool timely = named && IsTimeName(column.name);
  const bool thing = named && IsThingName(column.name) && !timely;
  if (column.values.size() <= 2 || thing) return std::nullopt;
  if (column.times[Field::YYYYMMDDHHMMSS] == column.count) {
    const std::string why =
        timely ? "" : StrCat("taken for dates, ", DaysText(column, Field::YYYYMMDDHHMMSS));
    return ColumnProposal{"", "", why, Field::YYYYMMDDHHMMSS};
  }
  if (column.integral() && AllValues(column, IsShortDate) && timely) {
    return LeftOut(StrCat("dates such as ", FirstText(column, IsShortDate),
                          ", whose digits no time_format reads; left out"));
  }
  if (column.times[Field::YYMMDDHH] == column.count) {
    return ColumnProposal{"", "", "", Field::YYMMDDHH};
  }
  const std::optional<Field::TimeFormat> format = EpochFormat(column);
  if (!format) return std::nullopt;
  const std::string range = DaysText(column, *format);
  if (named && !timely) {
    *doubt = StrCat("may be times, ", range);
    return std::nullopt;
  }
  // Ids are often numbered from a thousand million on, which would be days of September 2001.
  const bool round = column.least >= 1e9 && column.least < 1.005e9;
  const std::string why = round || !named ? StrCat("taken for times, ", range) : "";
  return ColumnProposal{"", "", why, *format};
}

// Doubts years of two digits that are taken for far ones, as 43 of a birth for 2043.
std::string LateYearDoubt(const SampleColumn& column, Field::TimeFormat format) {
  constexpr int64_t kLate = 2208988800;  // 2040
  std::string late;
  int64_t seconds;
  for (const auto& [value, rows] : column.values) {
    const size_t end = std::min(value.find_first_of(", "), value.size());
    const size_t year = value.find_last_of("/.-", end) + 1;
    const bool is_late = end - year == 2 && ParseTime(value, format, &seconds) && seconds >= kLate;
    if (is_late && (late.empty() || value < late)) late = value;
  }
  if (late.empty()) return "";
  ParseTime(late, format, &seconds);
  return StrCat("years of two digits: ", Shown(late), " is taken for ", DayText(seconds));
}

// The format of a column of texts that are likely times. Nothing: no format reads all of them.
std::optional<ColumnProposal> ProposeWrittenTime(const SampleColumn& column) {
  const auto reads_all = [&](Field::TimeFormat format) {
    return column.times[format] == column.count;
  };
  if (column.values.size() <= 2) return std::nullopt;
  for (const Field::TimeFormat format :
       {Field::YYYY_MM_DD_HH_MM_SS, Field::ISO_8601, Field::YYYY_MM_DD}) {
    if (reads_all(format)) return ColumnProposal{"", "", "", format};
  }
  const bool month_first = reads_all(Field::MM_DD_YYYY), day_first = reads_all(Field::DD_MM_YYYY);
  if (!month_first && !day_first) return std::nullopt;
  if (month_first != day_first) {
    const Field::TimeFormat format = month_first ? Field::MM_DD_YYYY : Field::DD_MM_YYYY;
    return ColumnProposal{"", "", LateYearDoubt(column, format), format};
  }
  // No day is beyond the 12th. Points are German.
  const bool points = AllValues(
      column, [](std::string_view text) { return text.find('.') < text.find_first_of("/-"); });
  return ColumnProposal{"", "",
                        StrCat("taken for dates with the ", points ? "day" : "month",
                               " first; no day is beyond the 12th"),
                        points ? Field::DD_MM_YYYY : Field::MM_DD_YYYY};
}

ColumnProposal Bag(const SampleColumn& column, const ListFinding& list) {
  ColumnProposal bag;
  bag.type = StrCat(IsSeriesName(column.name) ? "SEQUENCE" : "MULTI_HOT", " pooling: MEAN ",
                    list.form == Field::BRACKETS
                        ? std::string("list: BRACKETS")
                        : StrCat("separator: ", ProtoQuoted({&list.separator, 1}),
                                 list.form == Field::TRIMMED ? " list: TRIMMED" : ""),
                    " max_length: ", std::min(list.longest, kLongestBag));
  bag.doubt = list.doubt;
  if (list.longest > kLongestBag) {
    bag.doubt = StrCat("lists of up to ", list.longest, " items, of which ", kLongestBag,
                       " are kept; max_length can be larger");
  }
  return bag;
}

// A column that a table says to be lists.
ColumnProposal ProposeList(const SampleColumn& column) {
  constexpr char kBetween = '|';
  ListFinding list = {ListFinding::kList, Field::PLAIN, kBetween, 1, ""};
  for (const auto& [value, rows] : column.values) {
    list.longest = std::max<int64_t>(list.longest, 1 + std::ranges::count(value, kBetween));
    double number;
    const std::string first = value.substr(0, value.find(kBetween));
    if (ParseNumber(first, &number) && number != std::floor(number)) {
      return LeftOut("lists of numbers with a fraction, which no schema reads; left out");
    }
  }
  return Bag(column, list);
}

std::string CategoryType(const SampleColumn& column, int64_t rows) {
  const auto distinct = static_cast<int64_t>(column.values.size());
  return distinct * 10 > rows ? "CATEGORICAL min_count: 2" : "CATEGORICAL";
}

std::string QuantityType(const SampleColumn& column) {
  // LOG2 leaves 1.9 as it is and makes 0 of 2.5, so that fractions lose their order.
  const bool counts = column.whole() && HasHeavyTail(column);
  return StrCat("NUMERIC transform: ", counts ? "LOG2_STANDARDIZE" : "STANDARDIZE");
}

// Whether how often a column's numbers occur goes up and down slowly along the numbers, as of ages,
// and is not the same for all. Ids occur as often as it happens, or the newest the most.
bool GoesSlowly(const SampleColumn& column) {
  if (column.count < kLeastRowsOfShape) return false;
  std::map<double, int64_t> rows_of;
  for (const auto& [value, rows] : column.values) {
    double number = 0;
    ParseNumber(value, &number);
    rows_of[number] += rows;
  }
  const auto distinct = static_cast<double>(rows_of.size());
  const double mean = static_cast<double>(column.count) / distinct;
  double spread = 0, steps = 0;
  double before = static_cast<double>(rows_of.begin()->second);
  for (const auto& [number, rows] : rows_of) {
    const auto now = static_cast<double>(rows);
    spread += (now - mean) * (now - mean);
    steps += (now - before) * (now - before) / 2;
    before = now;
  }
  int64_t last = 0;
  size_t tenth = rows_of.size() / 10 + 1;
  const auto numbers = static_cast<double>(tenth);
  for (auto each = rows_of.rbegin(); tenth > 0; ++each, --tenth) last += each->second;
  if (static_cast<double>(last) > numbers * mean) return false;
  // By chance alone both are as large as the mean.
  return spread > kChangingRows * mean * distinct && steps < kSlowSteps * mean * distinct;
}

bool EveryRowOfItsOwn(const SampleColumn& column, int64_t rows) {
  return static_cast<int64_t>(column.values.size()) == rows && rows >= kManyRows;
}

// Whole numbers: quantities, or names of things. The column's name decides; else how they spread.
ColumnProposal ProposeWhole(const SampleColumn& column, bool named, int64_t rows) {
  const size_t distinct = column.values.size();
  const bool unique = EveryRowOfItsOwn(column, rows);
  const bool thing = named && IsThingName(column.name);
  const bool quantity = named && !thing && IsQuantityName(column.name);
  const bool large = column.largest > kExactIntegers || -column.least > kExactIntegers;
  const bool often = 2 * static_cast<int64_t>(distinct) <= rows;
  const bool numbered =
      column.largest - column.least + 1 == static_cast<double>(distinct) && !quantity;
  if (unique && (thing || large || column.leading_zeros || numbered)) {
    return Ignored("another value in every row");
  }
  if (thing || large || (column.leading_zeros && !quantity)) {
    return {CategoryType(column, rows), "", "", {}};
  }
  if (distinct <= kFewValues && !(quantity && !often)) {
    return {CategoryType(column, rows), "", "", {}};
  }
  if (quantity || column.least < -1) return {QuantityType(column), "", "", {}};
  if (unique) return LeftOut("another number in every row, which may be a quantity; left out");
  const bool tail = HasHeavyTail(column), thins = ThinsOut(column);
  if (tail && thins) return {QuantityType(column), "", "", {}};
  const bool dense = column.largest - column.least < kLargestGap * static_cast<double>(distinct);
  const bool small = dense && distinct <= kMostSmallNumbers;
  if (dense && GoesSlowly(column)) return {QuantityType(column), "", "", {}};
  if (!tail && (small || !often)) {
    return {QuantityType(column), "", "taken for a quantity; may be names of things", {}};
  }
  return {CategoryType(column, rows), "", "taken for names of things; may be a quantity", {}};
}

// Doubts a number that stands further from all others than they do from one another: one such as
// -999 or 9999, or any that several rows have. Empty: there is none.
std::string MarkDoubt(const SampleColumn& column) {
  constexpr double kMarks[] = {99, 999, 9999, 99999, 999999};
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const double end : {column.least, column.largest}) {
    const bool mark = std::ranges::find(kMarks, std::abs(end)) != std::end(kMarks);
    double least = kInfinity, largest = -kInfinity;
    int64_t marked = 0;
    for (const auto& [value, rows] : column.values) {
      double number = 0;
      ParseNumber(value, &number);
      if (number == end) {
        marked += rows;
        continue;
      }
      least = std::min(least, number);
      largest = std::max(largest, number);
    }
    if (!mark && (marked < 2 || column.values.size() <= kFewValues)) continue;
    if (std::max(least - end, end - largest) > largest - least) {
      return StrCat(CsvNumber(end), " is far from all other numbers, and may mean missing");
    }
  }
  return "";
}

// Doubts numbers whose points may stand between thousands: 957 and 1.041, and no other ones. Empty:
// there are no such.
std::string ThousandsDoubt(const SampleColumn& column) {
  constexpr size_t kGroup = 3;
  std::string grouped;
  bool plain = false;
  for (const auto& [value, rows] : column.values) {
    const std::string_view digits = std::string_view(value).substr(value[0] == '-');
    const size_t point = std::min(digits.find('.'), digits.size());
    const bool is_grouped = point + 1 + kGroup == digits.size();
    if (point == 0 || point > kGroup || (is_grouped ? digits[0] == '0' : point < digits.size()) ||
        digits.find_first_not_of(".0123456789") != digits.npos) {
      return "";
    }
    plain |= !is_grouped;
    if (is_grouped && (grouped.empty() || value < grouped)) grouped = value;
  }
  if (!plain || grouped.empty()) return "";
  return StrCat("the point of ", Shown(grouped), " may stand between thousands");
}

// Doubts whole numbers that stand for things and are written in several ways, each of which is
// another value: 7 and 7.0, 7 and 00007, or shortened as 1.18E+11. Empty: they are not.
std::string WritingDoubt(const SampleColumn& column) {
  std::map<double, std::string> texts;
  std::string first, second;
  for (const auto& [value, rows] : column.values) {
    double number = 0;
    ParseNumber(value, &number);
    if (value.find_first_of("eE") != value.npos && std::abs(number) >= 10) {
      return "numbers with an exponent, as of a spreadsheet, have lost digits";
    }
    if (std::abs(number) > kExactIntegers) continue;  // equal for different ones
    const auto [same, is_new] = texts.try_emplace(number, value);
    if (is_new) continue;
    auto [less, more] = std::minmax(same->second, value);
    if (first.empty() || less < first) first = less, second = more;
  }
  if (first.empty()) return "";
  return StrCat(Shown(first), " and ", Shown(second), " are two values here, and one number");
}

ColumnProposal ProposeNumeric(const SampleColumn& column, bool named, int64_t rows) {
  std::string doubt;
  if (auto time = ProposeNumericTime(column, named, &doubt)) return *time;
  ColumnProposal proposal = column.whole() ? ProposeWhole(column, named, rows)
                                           : ColumnProposal{QuantityType(column), "", "", {}};
  if (!doubt.empty()) proposal.doubt = doubt;
  if (proposal.doubt.empty() && proposal.type.starts_with("NUMERIC")) {
    proposal.doubt = MarkDoubt(column);
    if (proposal.doubt.empty()) proposal.doubt = ThousandsDoubt(column);
  }
  if (proposal.doubt.empty() && proposal.type.starts_with("CATEGORICAL")) {
    proposal.doubt = WritingDoubt(column);
  }
  return proposal;
}

bool HasUnit(std::string_view text) { return !UnitOf(text).empty(); }

// Whether nearly all values are numbers, many of them with one of a few units behind or signs
// before them. With few values they are names, as 36 months and 60 months.
bool HaveUnits(const SampleColumn& column) {
  if (column.values.size() <= kFewValues) return false;
  std::map<std::string, int64_t> rows_of;
  for (const auto& [value, rows] : column.values) {
    if (std::string unit = UnitOf(value); !unit.empty()) rows_of[std::move(unit)] += rows;
  }
  std::vector<int64_t> rows;
  for (const auto& [unit, count] : rows_of) rows.push_back(count);
  std::ranges::sort(rows, std::greater<>());
  rows.resize(std::min(rows.size(), kMostUnits));
  const int64_t with = std::accumulate(rows.begin(), rows.end(), int64_t{0});
  return with > 0 && static_cast<double>(with + column.numbers) >=
                         kMostShare * static_cast<double>(column.count);
}

// Texts of one kind that no schema reads, wholly or but for a few. Nothing: they are of none.
std::optional<ColumnProposal> ProposeOdd(const SampleColumn& column) {
  const auto share = [&](int64_t rows) {
    return static_cast<double>(rows) / static_cast<double>(column.count);
  };
  const int64_t dates = column.times[Field::YYYY_MM_DD_HH_MM_SS];
  if (column.written_times > 0 && share(column.written_times + dates) >= kMostShare) {
    return LeftOut(StrCat("times such as ", FirstText(column, IsWrittenTime),
                          ", which no one time_format reads; left out"));
  }
  const OddTexts no_dates(column, IsDateText), no_numbers(column, IsNumberText);
  if (dates > 0 && (share(dates) >= kMostShare || no_dates.AreMarks(column))) {
    return LeftOut(StrCat("times but for ", no_dates.Text(), "; left out"));
  }
  if (column.written_numbers > 0 && share(column.written_numbers + column.numbers) >= kMostShare) {
    return LeftOut(StrCat("numbers such as ", FirstText(column, IsWrittenNumber),
                          ", which no schema reads so; left out"));
  }
  if (share(column.numbers) < kMostShare && !no_numbers.AreMarks(column)) {
    return HaveUnits(column) ? LeftOut(StrCat("numbers such as ", FirstText(column, HasUnit),
                                              ", which no schema reads so; left out"))
                             : std::optional<ColumnProposal>();
  }
  const std::string odd = StrCat("numbers but for ", no_numbers.Text());
  if (column.wholes < column.numbers) return LeftOut(StrCat(odd, "; left out"));
  return ColumnProposal{"CATEGORICAL", "", StrCat(odd, "; taken for texts"), {}};
}

bool IsRowOfOneSign(std::string_view text) {
  const auto sign = static_cast<unsigned char>(text[0]);
  const size_t bytes = std::max(Utf8Bytes(text), 1);
  for (size_t at = 0; at < text.size(); at += bytes) {
    if (text.substr(at, bytes) != text.substr(0, bytes)) return false;
  }
  return std::isalnum(sign) == 0;
}

// Pairs index:value between other delimiters than libsvm's. With few values and several indices
// they are names, as 16:9 and 4:3.
std::optional<ColumnProposal> ProposePairs(const SampleColumn& column) {
  int64_t rows = 0;
  std::set<std::string> indices;
  for (const auto& [value, count] : column.values) {
    if (!HoldsPairs(value)) continue;
    rows += count;
    indices.insert(value.substr(0, value.find(':')));
  }
  const bool names = column.values.size() <= kFewValues && indices.size() > 1;
  if (names || static_cast<double>(rows) < kMostShare * static_cast<double>(column.count))
    return {};
  return LeftOut(StrCat("pairs such as ", FirstText(column, HoldsPairs),
                        ", as libsvm's index:value; no schema reads them so; left out"));
}

// Doubts values that have few forms with numbers in it, and are no names as u17. Empty:
// they have none.
std::string FormDoubt(const SampleColumn& column, bool named) {
  if (AllValues(column, IsRowOfOneSign)) {
    return StrCat("texts such as ", FirstText(column, IsRowOfOneSign),
                  " may be numbers by their length");
  }
  if ((named && IsThingName(column.name)) || column.values.size() <= kFewValues) return "";
  constexpr size_t kMostForms = 2;
  std::map<std::string, size_t> values_of;
  for (const auto& [value, rows] : column.values) {
    std::string form = FormOf(value);
    if (!IsFormOfName(form)) ++values_of[std::move(form)];
  }
  std::vector<size_t> forms;
  for (const auto& [form, values] : values_of) forms.push_back(values);
  std::ranges::sort(forms, std::greater<>());
  forms.resize(std::min(forms.size(), kMostForms));
  const size_t with = std::accumulate(forms.begin(), forms.end(), size_t{0});
  if (static_cast<double>(with) < kMostShare * static_cast<double>(column.values.size())) return "";
  const auto is_odd = [](std::string_view text) { return !IsFormOfName(FormOf(text)); };
  return StrCat("texts such as ", FirstText(column, is_odd),
                " of one form may be times, numbers or parts of a name");
}

ColumnProposal ProposeText(const SampleColumn& column, bool named, int64_t rows,
                           std::string_view delimiter) {
  if (auto time = ProposeWrittenTime(column)) return *time;
  if (auto odd = ProposeOdd(column)) return *odd;
  const ListFinding list = FindList(column, named, delimiter);
  if (list.kind == ListFinding::kUnreadable) return LeftOut(list.doubt);
  if (auto pairs = ProposePairs(column)) return *pairs;
  if (list.kind == ListFinding::kList) return Bag(column, list);
  const std::string doubt = list.doubt.empty() ? FormDoubt(column, named) : list.doubt;
  if (EveryRowOfItsOwn(column, rows)) {
    ColumnProposal ignored = Ignored("another value in every row");
    ignored.doubt = doubt;
    return ignored;
  }
  return {CategoryType(column, rows), "", doubt, {}};
}

}  // namespace

std::string LabelType(const SampleColumn& column) {
  const LabelForm form = LabelFormOf(column);
  if (form == LabelForm::kZeroOne) return "LABEL";
  if (form == LabelForm::kTwoNumbers || form == LabelForm::kRatings) {
    return StrCat("LABEL at_least: ", CsvNumber(LabelThreshold(column)));
  }
  const std::string positive = PositiveText(column);
  if (form == LabelForm::kTexts) return StrCat("LABEL positive: ", ProtoQuoted(positive));
  const std::string& first = column.values.begin()->first;
  const std::string& other = first == positive ? std::next(column.values.begin())->first : first;
  return StrCat("LABEL positive: ", ProtoQuoted(positive), " negative: ", ProtoQuoted(other));
}

ColumnProposal ProposeColumn(const SampleColumn& column, bool named, int64_t rows, Telling telling,
                             std::string_view delimiter) {
  if (column.values.empty()) return Ignored("missing in all rows");
  if (column.is_list) return ProposeList(column);
  if (telling == Telling::kValue) return Ignored("tells the label");
  if (telling == Telling::kMark) {
    return LeftOut(StrCat(Shown(CommonestValue(column)),
                          " in all rows where the label has one value, in none where it has the "
                          "other; may be known only afterwards; left out"));
  }
  if (telling == Telling::kPresence) {
    return LeftOut(
        "missing where the label has one value, there where it has the other; may be "
        "known only afterwards; left out");
  }
  if (named && IsSecondLabel(column, LabelName::kYes)) {
    return LeftOut("may be a second label, known only afterwards; left out");
  }
  if (column.values.size() == 1) {
    if (column.missing == 0) return Ignored("the same in all rows");
    return {"CATEGORICAL", "", "", {}};
  }
  ColumnProposal proposal = column.numeric() ? ProposeNumeric(column, named, rows)
                                             : ProposeText(column, named, rows, delimiter);
  if (proposal.doubt.empty() && named && IsSecondLabel(column, LabelName::kPartly)) {
    proposal.doubt = "may be a second label, known only afterwards";
  }
  return proposal;
}

std::string ProtoQuoted(std::string_view text) {
  const std::string plain(text);
  // Characters that steer a terminal are escaped, too.
  const bool steers = WithoutControls(plain) != plain;
  return StrCat(
      "\"",
      steers ? google::protobuf::CEscape(plain) : google::protobuf::strings::Utf8SafeCEscape(plain),
      "\"");
}

std::string NumberText(double value) { return Format("%.6g", value); }

}  // namespace elastor
