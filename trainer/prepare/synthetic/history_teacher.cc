#include "trainer/prepare/synthetic/history_teacher.h"

#include <algorithm>
#include <string>
#include <vector>

#include "core/base/random.h"
#include "trainer/prepare/synthetic/planted_random.h"
#include "xxhash.h"

namespace elastor {

using namespace planted;

HistoryTeacher::HistoryTeacher(const Synthetic& plan)
    : plan_(plan), columns_(plan.categorical_fields() + 1) {
  Rows rows;
  std::vector<double> scores;
  for (int64_t row = 0; row < std::min<int64_t>(plan.rows(), kCalibrationRows); ++row) {
    AppendFeatures(row, &rows);
    scores.push_back(RawScore(rows));
  }
  const Moments moments =
      MomentsOf(static_cast<int64_t>(scores.size()), [&](int64_t i) { return scores[i]; });
  scale_ = SignalOf(plan) / moments.stddev;
  for (double& score : scores) score = scale_ * (score - moments.mean);
  shift_ = ShiftToBaseRate(plan, scores) - scale_ * moments.mean;
}

int64_t HistoryTeacher::HeavyTailedItem(uint32_t high, uint32_t low) const {
  return HeavyTailed(Uniform53(high, low), plan_.ids_per_field(), ZipfExponentOf(plan_));
}

int64_t HistoryTeacher::ItemOf(int64_t user, int64_t place) const {
  const PhiloxBlock bits = RowBits(plan_, user, kHistoryItem, static_cast<uint32_t>(place));
  return HeavyTailedItem(bits[0], bits[1]);
}

// Row r is the (r / users)-th visit of user r mod users, who sees one item more at each. Half of
// the rows have an item of the interest of one that the history has.
void HistoryTeacher::AppendFeatures(int64_t row, Rows* rows) const {
  const int64_t user = row % plan_.users();
  const int64_t visit = row / plan_.users();
  const auto length = static_cast<int64_t>(RowBits(plan_, user, kHistoryItem, ~0u)[0] %
                                           (static_cast<uint32_t>(plan_.history_length()) + 1));
  const auto end_bag = [&] { rows->offsets.push_back(static_cast<int64_t>(rows->ids.size())); };
  if (rows->offsets.empty()) end_bag();
  ++rows->rows;
  for (int64_t field = 0; field < columns_ - 1; ++field) {
    const PhiloxBlock bits = RowBits(plan_, row, kIdItem + static_cast<uint32_t>(field), 0);
    rows->ids.push_back(HeavyTailedItem(bits[0], bits[1]));
    end_bag();
  }
  const int64_t end = plan_.history_length() + visit;
  for (int64_t place = end - length; place < end; ++place) {
    rows->ids.push_back(ItemOf(user, place));
  }
  end_bag();
  const std::string name = std::to_string(user);
  rows->groups.push_back(XXH3_64bits(name.data(), name.size()));
  const PhiloxBlock bits = RowBits(plan_, row, kHistoryItem + 1, 0);
  if (length == 0 || bits[0] % 2 == 0) return;
  const int64_t interest = rows->ids[rows->ids.size() - 1 - bits[1] % length] % plan_.interests();
  const int64_t items = (plan_.ids_per_field() - 1 - interest) / plan_.interests() + 1;
  rows->ids[rows->offsets[(rows->rows - 1) * columns_]] =
      interest + static_cast<int64_t>(bits[2] % static_cast<uint64_t>(items)) * plan_.interests();
}

double HistoryTeacher::WeightOf(int64_t item) const {
  double weight;
  FillNormal(MakeRandomKey(plan_.seed(), RandomPurpose::kSynthetic, 1), item, 1.0, 1, &weight);
  return weight;
}

double HistoryTeacher::RawScore(const Rows& rows) const {
  const int64_t first_bag = (rows.rows - 1) * columns_;
  const int64_t item = rows.ids[rows.offsets[first_bag]];
  double score = 0;
  for (int64_t i = rows.offsets[first_bag + columns_ - 1]; i < rows.offsets[first_bag + columns_];
       ++i) {
    if ((rows.ids[i] - item) % plan_.interests() == 0) score += WeightOf(rows.ids[i]);
  }
  return score;
}

double HistoryTeacher::AppendRow(int64_t row, Rows* rows) const {
  AppendFeatures(row, rows);
  const double logit = scale_ * RawScore(*rows) + shift_;
  const PhiloxBlock bits = RowBits(plan_, row, kLabelItem, 0);
  rows->labels.push_back(Uniform53(bits[0], bits[1]) < Sigmoid(logit) ? 1.0f : 0.0f);
  return logit;
}

}  // namespace elastor
