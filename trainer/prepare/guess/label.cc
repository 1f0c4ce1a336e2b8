#include "trainer/prepare/guess/label.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <string_view>
#include <utility>

#include "core/base/text.h"
#include "core/report/csv.h"
#include "trainer/prepare/guess/name_hints.h"
#include "trainer/prepare/rows/value_text.h"

namespace elastor {
namespace {

constexpr size_t kMostRatings = 11;
constexpr size_t kMostTexts = 10;      // of a label that its name tells
constexpr size_t kMostNumbers = 100;   // the same
constexpr double kMostMissing = 0.5;   // rows that lack a label that its name tells
constexpr double kFewMissing = 0.05;   // and another label
constexpr double kSomeMissing = 0.1;   // and one of 0 and 1, which is doubted then
constexpr double kLeastShare = 0.001;  // of the rarer class of a label that its name does not tell

constexpr size_t kMostStars = 5;
constexpr int64_t kLeastMarkedRows = 5;  // of either class, that tell a mark from chance

constexpr int kRatingsScore = 7;
constexpr int kTextsScore = 3;
constexpr int kNumbersScore = 2;

constexpr std::string_view kYes[] = {"yes",     "true",    "y",         "t",        "click",
                                     "clicked", "1",       "positive",  "pos",      "buy",
                                     "bought",  "success", "converted", "purchase", "purchased"};
constexpr std::string_view kNo[] = {"no", "false", "n", "f", "0", "negative", "neg", "none"};

bool IsYes(const std::string& text) {
  return std::ranges::find(kYes, LowerCase(text)) != std::end(kYes);
}

// Whether `text` says no to `other`: no, false, <=50K to >50K, or not_clicked to clicked.
bool IsNo(const std::string& text, const std::string& other) {
  if (text.starts_with('<') && other.starts_with('>')) return true;
  const std::string lower = LowerCase(text);
  const bool negates = lower.starts_with("no") || lower.starts_with("un");
  return std::ranges::find(kNo, lower) != std::end(kNo) ||
         (negates && lower.size() > other.size() && lower.ends_with(LowerCase(other)));
}

// Returns whether one value of a label of texts is positive by its meaning.
bool SaysYes(const SampleColumn& label) {
  const auto &first = label.values.begin()->first, &second = std::next(label.values.begin())->first;
  if (label.values.size() == 2) {
    return (IsYes(first) && !IsYes(second)) || (IsYes(second) && !IsYes(first)) ||
           IsNo(first, second) != IsNo(second, first);
  }
  return std::ranges::count_if(label.values, [](const auto& each) { return IsYes(each.first); }) ==
         1;
}

// Rows of the rarer class.
int64_t RarerRows(const SampleColumn& column) {
  const double rate = PositiveRate(column);
  return static_cast<int64_t>(std::min(rate, 1 - rate) * static_cast<double>(column.count) + 0.5);
}

bool AreSexes(const SampleColumn& column) {
  return std::ranges::all_of(column.values, [](const auto& each) {
    const std::string lower = LowerCase(each.first);
    return lower == "m" || lower == "f" || lower == "male" || lower == "female";
  });
}

bool HasRareClass(const SampleColumn& column) {
  return static_cast<double>(RarerRows(column)) < kLeastShare * static_cast<double>(column.count);
}

}  // namespace

LabelForm LabelFormOf(const SampleColumn& column) {
  const size_t values = column.values.size();
  if (values < 2) return LabelForm::kNone;
  bool labels = true, one = false, zero = false;
  for (const auto& [value, rows] : column.values) {
    float label = 0;
    labels = labels && ParseLabel(value, &label);
    (label == 1 ? one : zero) = true;
  }
  if (labels && one && zero) return LabelForm::kZeroOne;
  if (column.numeric()) return values == 2 ? LabelForm::kTwoNumbers : LabelForm::kRatings;
  return values == 2 ? LabelForm::kTwoTexts : LabelForm::kTexts;
}

bool HasThreeSigns(const SampleColumn& label) {
  const bool zero = std::ranges::any_of(label.values, [](const auto& each) {
    double number;
    return ParseNumber(each.first, &number) && number == 0;
  });
  return zero && label.least < 0 && label.largest > 0;
}

int LabelScore(const SampleColumn& column, bool named) {
  const LabelForm form = LabelFormOf(column);
  const LabelName name = named ? LabelNameOf(column.name) : LabelName::kNo;
  const bool known = name == LabelName::kYes;
  const double missing =
      static_cast<double>(column.missing) / static_cast<double>(column.missing + column.count);
  const bool some = form == LabelForm::kZeroOne && !known && missing > kFewMissing;
  const double most = known ? kMostMissing : some ? kSomeMissing : kFewMissing;
  if (form == LabelForm::kNone || missing > most) return 0;
  const bool two =
      form == LabelForm::kZeroOne || form == LabelForm::kTwoTexts || form == LabelForm::kTwoNumbers;
  if (!known && two && HasRareClass(column)) return 0;
  const int more = (name == LabelName::kPartly ? 2 : 0) - (!known && column.missing > 0);
  if (form == LabelForm::kZeroOne) return known ? 9 : some ? kNumbersScore : 4 + more;
  if (form == LabelForm::kTwoTexts) return known ? 8 : AreSexes(column) ? 1 : kTextsScore + more;
  if (form == LabelForm::kTwoNumbers) return known ? 7 : kNumbersScore + more;
  const bool alone = known && IsLabelNameAlone(column.name);
  if (form == LabelForm::kTexts) return alone && column.values.size() <= kMostTexts ? 5 : 0;
  const bool ratings =
      column.values.size() <= kMostRatings && column.least >= 0 && column.largest <= 10;
  if (ratings && named && IsRatingName(column.name)) return kRatingsScore;
  if (alone && column.integral() && column.values.size() <= kMostNumbers) return 5;
  const bool stars = column.least == 1 && column.largest == kMostStars;
  return !ratings ? 0 : stars && column.values.size() >= kMostStars ? kNumbersScore : 1;
}

StatusOr<std::vector<size_t>> LabelCandidates(const SampleColumns& sample,
                                              const std::string& path) {
  std::map<int, std::vector<size_t>, std::greater<>> by_score;
  for (size_t i = 0; i < sample.columns.size(); ++i) {
    if (sample.columns[i].name.empty()) continue;
    by_score[LabelScore(sample.columns[i], sample.named)].push_back(i);
  }
  by_score.erase(0);
  std::vector<size_t> candidates;
  for (auto& [score, places] : by_score) {
    // These stand last more often.
    if (score == kTextsScore) std::ranges::reverse(places);
    candidates.insert(candidates.end(), places.begin(), places.end());
  }
  if (sample.rows == 0) return UserError(StrCat(path, ": no rows found"));
  if (!candidates.empty()) return candidates;
  std::vector<std::string> names;
  for (const SampleColumn& column : sample.columns) names.push_back(Shown(column.name));
  constexpr size_t kNamesTold = 8;
  const std::string more = names.size() > kNamesTold ? ", ..." : "";
  names.resize(std::min(names.size(), kNamesTold));
  return UserError(StrCat(path, ": no column can be the label, of ", Join(names, ", "), more,
                          sample.named ? "" : ", which have no header",
                          "; expected one with 0 and 1, two texts, or ratings from 0 to 10, and "
                          "never missing; or --label=COLUMN"));
}

StatusOr<size_t> GivenLabel(const std::vector<SampleColumn>& columns, const std::string& name) {
  const auto column = std::ranges::find(columns, name, &SampleColumn::name);
  if (column == columns.end()) {
    std::vector<std::string> names;
    for (const SampleColumn& each : columns) {
      if (!each.name.empty()) names.push_back(each.name);
    }
    return UserError(
        StrCat("--label=", name, ": no such column; expected one of ", Join(names, ", ")));
  }
  const LabelForm form = LabelFormOf(*column);
  if (form == LabelForm::kNone || form == LabelForm::kTexts) {
    const size_t values = column->values.size();
    return UserError(StrCat("--label=", name, ": found ", values,
                            values == 1 ? " value" : " values",
                            "; expected 0 and 1, two texts, or numbers"));
  }
  return static_cast<size_t>(column - columns.begin());
}

std::string LabelDoubt(const SampleColumns& sample, const std::vector<size_t>& candidates,
                       bool given) {
  const SampleColumn& label = sample.columns[candidates[0]];
  const LabelForm form = LabelFormOf(label);
  const int score = LabelScore(label, sample.named);
  const LabelName name = sample.named ? LabelNameOf(label.name) : LabelName::kNo;
  std::vector<std::string> doubts;
  for (const size_t other : candidates) {
    if (given || !MayBeLabel(sample, candidates, other)) continue;
    doubts.push_back(
        StrCat("taken for the label; ", Shown(sample.columns[other].name), " can be it, too"));
    break;
  }
  if (!given && doubts.empty() && name != LabelName::kYes &&
      (sample.named || score <= kNumbersScore)) {
    doubts.push_back(
        StrCat("taken for the label", sample.named ? ", though its name is none" : ""));
  }
  if (form == LabelForm::kTwoNumbers || form == LabelForm::kRatings) {
    doubts.push_back(StrCat("numbers from ", CsvNumber(LabelThreshold(label)), " on count as 1"));
  } else if (form != LabelForm::kZeroOne && !SaysYes(label)) {
    doubts.push_back(StrCat(Shown(PositiveText(label)), " counts as 1, as the rarest value"));
  } else if (form == LabelForm::kTexts) {
    doubts.push_back(StrCat("all values but ", Shown(PositiveText(label)), " count as 0"));
  } else if (HasThreeSigns(label)) {
    doubts.emplace_back(kThreeSigns);
  }
  if (HasRareClass(label)) {
    doubts.push_back(StrCat("only ", CountText(RarerRows(label), "row"), " of ", label.count,
                            PositiveRate(label) < 0.5 ? " are positive" : " are negative"));
  }
  return Join(doubts, "; ");
}

bool MayBeLabel(const SampleColumns& sample, const std::vector<size_t>& candidates, size_t place) {
  const auto has_name = [&](size_t of) {
    return sample.named && LabelNameOf(sample.columns[of].name) == LabelName::kYes;
  };
  if (place == candidates[0] || std::ranges::find(candidates, place) == candidates.end()) {
    return false;
  }
  const int score = LabelScore(sample.columns[place], sample.named);
  return has_name(place) || score >= kRatingsScore ||
         (!has_name(candidates[0]) && score >= kNumbersScore);
}

bool IsSecondLabel(const SampleColumn& column, LabelName name) {
  const LabelForm form = LabelFormOf(column);
  const bool two = form == LabelForm::kZeroOne || form == LabelForm::kTwoTexts;
  return two && LabelNameOf(column.name) == name;
}

std::string PositiveText(const SampleColumn& label) {
  const auto rarer = [](const auto& a, const auto& b) {
    return std::pair(a.second, a.first) < std::pair(b.second, b.first);
  };
  const auto rarest = std::ranges::min_element(label.values, rarer);
  if (!SaysYes(label)) return rarest->first;
  for (const auto& [value, rows] : label.values) {
    if (IsYes(value)) return value;
  }
  const auto &first = label.values.begin()->first, &second = std::next(label.values.begin())->first;
  return IsNo(first, second) ? second : first;
}

double LabelThreshold(const SampleColumn& label) {
  double least = label.largest;
  for (const auto& [value, count] : label.values) {
    double number = 0;
    ParseNumber(value, &number);
    if (number > label.mean()) least = std::min(least, number);
  }
  return least;
}

double PositiveRate(const SampleColumn& label) {
  const LabelForm form = LabelFormOf(label);
  const bool texts = form == LabelForm::kTwoTexts || form == LabelForm::kTexts;
  const std::string positive_text = texts ? PositiveText(label) : "";
  const double threshold = form == LabelForm::kZeroOne ? 1 : LabelThreshold(label);
  int64_t positives = 0;
  for (const auto& [value, count] : label.values) {
    float number = 0;
    double quantity = 0;
    const bool positive = texts ? value == positive_text
                          : form == LabelForm::kZeroOne
                              ? ParseLabel(value, &number) && number == 1
                              : ParseNumber(value, &quantity) && quantity >= threshold;
    if (positive) positives += count;
  }
  return static_cast<double>(positives) / static_cast<double>(label.count);
}

std::vector<Telling> FindTelling(const Schema& schema, const TextSample& sample,
                                 const std::vector<SampleColumn>& columns, size_t label) {
  // The label that goes with whether a column has a mark.
  struct Mark {
    bool tells;
    std::map<bool, std::string> label_of;

    void Add(bool marked, const std::string& label) {
      tells = tells && label_of.try_emplace(marked, label).first->second == label;
    }
    bool TellsTwo() const { return tells && label_of.size() == 2; }
  };
  struct Seen {
    bool value;
    std::map<std::string, std::string> by_value;
    Mark commonest, missing;
    const std::string* common;
  };
  std::vector<Seen> seen;
  const bool two = columns[label].values.size() == 2;
  const bool many = two && RarerRows(columns[label]) >= kLeastMarkedRows;
  for (size_t i = 0; i < columns.size(); ++i) {
    const SampleColumn& column = columns[i];
    const bool other = i != label && column.count > 0;
    seen.push_back({i != label && column.values.size() == columns[label].values.size(),
                    {},
                    {many && other && column.values.size() > 1, {}},
                    {two && other && column.missing > 0, {}},
                    other ? &CommonestValue(column) : nullptr});
  }
  const auto is_missing = [](const SampleColumn& column, const std::string& text) {
    return text.empty() || column.nulls.contains(text);
  };
  ForEachRow(schema, sample, [&](const std::vector<std::string>& row) {
    if (row.size() != columns.size() || is_missing(columns[label], row[label])) return;
    for (size_t i = 0; i < columns.size(); ++i) {
      Seen& of = seen[i];
      const std::string& own = row[label];
      of.value = of.value && of.by_value.try_emplace(row[i], own).first->second == own;
      if (of.commonest.tells) of.commonest.Add(row[i] == *of.common, own);
      if (of.missing.tells) of.missing.Add(is_missing(columns[i], row[i]), own);
    }
  });
  std::vector<Telling> telling;
  for (const Seen& of : seen) {
    telling.push_back(of.value                  ? Telling::kValue
                      : of.missing.TellsTwo()   ? Telling::kPresence
                      : of.commonest.TellsTwo() ? Telling::kMark
                                                : Telling::kNothing);
  }
  return telling;
}

const std::string& CommonestValue(const SampleColumn& column) {
  const auto less = [](const auto& a, const auto& b) {
    return a.second < b.second || (a.second == b.second && a.first > b.first);
  };
  return std::ranges::max_element(column.values, less)->first;
}

}  // namespace elastor
