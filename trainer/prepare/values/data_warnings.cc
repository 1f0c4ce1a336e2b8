#include "trainer/prepare/values/data_warnings.h"

#include <algorithm>
#include <cstdint>
#include <functional>

#include "core/base/text.h"
#include "trainer/data/dataset.h"
#include "trainer/prepare/rows/history_columns.h"
#include "trainer/prepare/rows/row_builder.h"
#include "trainer/prepare/rows/time_text.h"

namespace elastor {
namespace {

constexpr size_t kNamedFields = 5;

// Returns "field a" or "fields a, b, ... (12 in all)".
std::string FieldsText(const std::vector<std::string>& names) {
  const std::vector<std::string> first(names.begin(),
                                       names.begin() + std::min(names.size(), kNamedFields));
  const std::string all = StrCat(", ... (", names.size(), " in all)");
  return StrCat(names.size() == 1 ? "field " : "fields ", Join(first, ", "),
                names.size() > kNamedFields ? all : "");
}

class Warnings {
 public:
  Warnings(const PreparePlan& plan, const TextPassResult& text, const Measures& measures,
           const RankedValues& ranked)
      : plan_(plan), text_(text), measures_(measures), ranked_(ranked) {}

  std::vector<std::string> Make() && {
    OfLabels();
    for (int split = 0; split < 3; ++split) {
      if (measures_.splits[split].rows == 0) continue;
      OfMissing(split);
      OfUnknown(split);
      OfWeights(split);
    }
    OfMinCount();
    OfCuts();
    OfLists();
    OfTimes();
    return std::move(lines_);
  }

 private:
  // Adds a line for the categorical columns that `has` chooses.
  void OfColumns(const std::function<bool(size_t column)>& has, const std::string& what);
  void OfLabels();
  void OfMissing(int split);
  void OfUnknown(int split);
  void OfWeights(int split);
  void OfMinCount();
  void OfCuts();
  void OfLists();
  void OfTimes();

  const PreparePlan& plan_;
  const TextPassResult& text_;
  const Measures& measures_;
  const RankedValues& ranked_;
  std::vector<std::string> lines_;
};

void Warnings::OfColumns(const std::function<bool(size_t column)>& has, const std::string& what) {
  std::vector<std::string> names;
  for (size_t i = 0; i < plan_.ids.size(); ++i) {
    if (has(i)) names.push_back(plan_.ids[i].field->name());
  }
  if (!names.empty()) lines_.push_back(StrCat(FieldsText(names), ": ", what));
}

// A column of one value is seldom the label's.
void Warnings::OfLabels() {
  for (const int split : {0, 1}) {
    const SplitTally& tally = measures_.splits[split];
    for (size_t i = 0; i < plan_.labels.size(); ++i) {
      const auto [rows, positives] = tally.labels[i];
      if (tally.rows == 0 || (positives > 0 && positives < rows)) continue;
      lines_.push_back(StrCat("the label", plan_.labels.size() == 1 ? "" : " ",
                              plan_.labels.size() == 1 ? "" : plan_.labels[i], " of all ",
                              rows == 0 ? tally.rows : rows, " ", SplitName(split), " rows is ",
                              rows == 0        ? "missing"
                              : positives == 0 ? "0"
                                               : "1",
                              "; is the LABEL field's column right?"));
    }
  }
}

void Warnings::OfMissing(int split) {
  const SplitTally& tally = measures_.splits[split];
  std::vector<std::string> names;
  for (size_t i = 0; i < plan_.numeric.size(); ++i) {
    if (tally.numeric[i].count == 0) names.push_back(plan_.numeric[i]->name());
  }
  for (size_t i = 0; i < plan_.ids.size(); ++i) {
    const ValueTally& values = ranked_.tallies[i];
    const bool missing = plan_.ids[i].bag
                             ? tally.empty_bags[i] == tally.rows
                             : values.values[split] > 0 && values.missing[split] == tally.rows;
    if (missing) names.push_back(plan_.ids[i].field->name());
  }
  if (names.empty()) return;
  lines_.push_back(StrCat(FieldsText(names), ": missing in all ", tally.rows, " ", SplitName(split),
                          " rows; is the column right?"));
}

void Warnings::OfUnknown(int split) {
  OfColumns(
      [&](size_t i) {
        const ValueTally& tally = ranked_.tallies[i];
        const int64_t values = tally.values[split] - tally.missing[split];
        const int table = plan_.ids[i].table;
        return plan_.ids[i].text && values > 0 && tally.unknown[split] == values &&
               ranked_.table_rows[table] > 1;
      },
      StrCat("all values of the ", SplitName(split),
             " rows are unknown to the vocabulary and get id 0; are they written as in the "
             "training rows (123 or 123.0, spaces, capitals)?"));
}

void Warnings::OfWeights(int split) {
  const SplitTally& tally = measures_.splits[split];
  if (tally.weighted_rows > 0) return;
  lines_.push_back(StrCat(
      "the weight of all ", tally.rows, " ", SplitName(split), " rows is 0, so nothing can be ",
      split == 0 ? "learned from" : "measured on", " them; is the WEIGHT field's column right?"));
}

void Warnings::OfMinCount() {
  OfColumns(
      [&](size_t i) {
        const ValueTally& tally = ranked_.tallies[i];
        return plan_.ids[i].text && ranked_.table_rows[plan_.ids[i].table] == 1 &&
               tally.values[0] > tally.missing[0];
      },
      "no value is there min_count times in the training rows, so all values get id 0");
}

void Warnings::OfCuts() {
  for (size_t i = 0; i < plan_.ids.size(); ++i) {
    if (text_.cut_values[i] == 0 || plan_.ids[i].field->max_length() > 0) continue;
    int64_t kept = 0;
    for (const SplitTally& tally : measures_.splits) kept += tally.values[i];
    lines_.push_back(StrCat("field ", plan_.ids[i].field->name(), ": ", text_.cut_values[i], " of ",
                            text_.cut_values[i] + kept, " ids are left out, as a row keeps ",
                            kDefaultMaxLength, " where the schema gives no max_length"));
  }
}

// A wrong separator makes one value of every list. Pairs have none.
void Warnings::OfLists() {
  if (plan_.schema.layout() != Schema::DELIMITED) return;
  constexpr int64_t kSureRows = 1000;
  const SplitTally& train = measures_.splits[0];
  OfColumns(
      [&](size_t i) {
        const Field& field = *plan_.ids[i].field;
        const bool is_history =
            std::ranges::any_of(HistoryPlaces(plan_.schema), [&field](const HistoryPlace& place) {
              return place.column == (field.column().empty() ? field.name() : field.column());
            });
        return plan_.ids[i].bag && !is_history && field.list() != Field::BRACKETS &&
               field.max_length() != 1 && train.values[i] >= kSureRows &&
               train.values[i] == train.rows - train.empty_bags[i];
      },
      "no training row has more than one value; are these lists, and is the separator right?");
}

// Rows that a hash splits are of all times on purpose.
void Warnings::OfTimes() {
  for (const int split : {1, 2}) {
    const SplitTally& train = measures_.splits[0];
    const SplitTally& later = measures_.splits[split];
    if (plan_.split_by_hash || !plan_.times || train.rows == 0 || later.rows == 0) continue;
    if (train.latest <= later.earliest) continue;
    lines_.push_back(
        StrCat("training rows are later than ", SplitName(split), " rows (the last at ",
               TimeText(train.latest), ", the first ", SplitName(split), " row at ",
               TimeText(later.earliest),
               "), so a model learns from the future; `by: TIME` in the schema's split "
               "cuts by time"));
    return;
  }
}

}  // namespace

std::vector<std::string> DataWarnings(const PreparePlan& plan, const TextPassResult& text,
                                      const Measures& measures, const RankedValues& ranked) {
  return Warnings(plan, text, measures, ranked).Make();
}

}  // namespace elastor
