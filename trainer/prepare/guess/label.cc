#include "trainer/prepare/guess/label.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <string_view>
#include <utility>

#include "core/base/text.h"
#include "trainer/prepare/rows/value_text.h"

namespace elastor {
namespace {

constexpr size_t kMostRatings = 11;
constexpr int kTwoTextsScore = 3;

}  // namespace

int LabelScore(const SampleColumn& column, bool named) {
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
  if (two && !column.numeric()) return known ? 5 : kTwoTextsScore;
  const bool ratings = column.numeric() && column.values.size() > 2 &&
                       column.values.size() <= kMostRatings && column.least >= 0 &&
                       column.largest <= 10;
  return !ratings ? 0 : rating ? 5 : 1;
}

StatusOr<std::vector<size_t>> LabelCandidates(const SampleColumns& sample, bool named,
                                              const std::string& path) {
  std::map<int, std::vector<size_t>, std::greater<>> by_score;
  for (size_t i = 0; i < sample.columns.size(); ++i) {
    by_score[LabelScore(sample.columns[i], named)].push_back(i);
  }
  by_score.erase(0);
  std::vector<size_t> candidates;
  for (auto& [score, places] : by_score) {
    if (score == kTwoTextsScore) std::ranges::reverse(places);  // these stand last more often
    candidates.insert(candidates.end(), places.begin(), places.end());
  }
  if (sample.rows == 0) return UserError(StrCat(path, ": no rows found"));
  if (!candidates.empty()) return candidates;
  return UserError(StrCat(path,
                          ": no column can be the label; expected one with 0 and 1, two "
                          "texts, or ratings from 0 to 10, and never missing; or --label=COLUMN"));
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
  const size_t values = column->values.size();
  if (values < 2 || (values > 2 && !column->numeric())) {
    return UserError(StrCat("--label=", name, ": found ", values,
                            values == 1 ? " value" : " values",
                            "; expected 0 and 1, two texts, or numbers"));
  }
  return static_cast<size_t>(column - columns.begin());
}

bool IsTwoTexts(const SampleColumn& label) { return label.values.size() == 2 && !label.numeric(); }

std::string PositiveText(const SampleColumn& label) {
  constexpr std::string_view kYes[] = {"yes", "true", "y", "t", "click", "positive", "1"};
  const auto &first = *label.values.begin(), &second = *std::next(label.values.begin());
  for (const auto* value : {&first, &second}) {
    if (std::ranges::find(kYes, LowerCase(value->first)) != std::end(kYes)) return value->first;
  }
  return std::pair(first.second, first.first) < std::pair(second.second, second.first)
             ? first.first
             : second.first;
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
  int64_t positives = 0;
  for (const auto& [value, count] : label.values) {
    double number = 0;
    ParseNumber(value, &number);
    const bool positive = IsTwoTexts(label)         ? value == PositiveText(label)
                          : label.values.size() > 2 ? number >= LabelThreshold(label)
                                                    : number == 1;
    if (positive) positives += count;
  }
  return static_cast<double>(positives) / static_cast<double>(label.count);
}

std::vector<bool> LabelCopies(const Schema& schema, const TextSample& sample,
                              const std::vector<SampleColumn>& columns, size_t label) {
  std::vector<std::map<std::string, std::string>> label_of(columns.size());
  std::vector<bool> copies(columns.size());
  for (size_t i = 0; i < columns.size(); ++i) {
    copies[i] = i != label && columns[i].values.size() == columns[label].values.size();
  }
  ForEachRow(schema, sample, [&](const std::vector<std::string>& row) {
    if (row.size() != columns.size()) return;
    for (size_t i = 0; i < columns.size(); ++i) {
      copies[i] =
          copies[i] && label_of[i].try_emplace(row[i], row[label]).first->second == row[label];
    }
  });
  return copies;
}

}  // namespace elastor
