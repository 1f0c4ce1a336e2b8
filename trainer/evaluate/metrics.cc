#include "trainer/evaluate/metrics.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "core/base/canonical_math.h"
#include "core/base/log.h"
#include "trainer/data/dataset.h"

namespace elastor {

void BinarySums::Add(float logit, bool positive, double loss, float weight) {
  ++rows_;
  positives_ += positive;
  weights_.Add(weight);
  if (positive) positive_weights_.Add(weight);
  losses_.Add(weight * loss);
  predictions_.Add(weight / (1 + CanonicalExp(-double{logit})));
}

void BinarySums::AppendWords(std::vector<int64_t>* words) const {
  words->insert(words->end(), {rows_, positives_});
  for (const ExactSum* sum : {&weights_, &positive_weights_, &losses_, &predictions_}) {
    const auto part = sum->ToWords();
    words->insert(words->end(), part.begin(), part.end());
  }
}

BinarySums BinarySums::FromWords(std::span<const int64_t> words) {
  CHECK_EQ(words.size(), static_cast<size_t>(kWords));
  BinarySums sums;
  sums.rows_ = words[0];
  sums.positives_ = words[1];
  auto from = words.begin() + 2;
  for (ExactSum* sum :
       {&sums.weights_, &sums.positive_weights_, &sums.losses_, &sums.predictions_}) {
    std::array<int64_t, ExactSum::kWords> part;
    std::copy_n(from, part.size(), part.begin());
    from += part.size();
    *sum = ExactSum::FromWords(part);
  }
  return sums;
}

BinaryValues BinarySums::Values() const {
  BinaryValues values;
  values.rows = rows_;
  values.positives = positives_;
  const double weight = weights_.Value();
  const double positive_weight = positive_weights_.Value();
  values.logloss = losses_.Value() / weight;
  if (positive_weight > 0) values.calibration = predictions_.Value() / positive_weight;
  const double rate = positive_weight / weight;
  const double other = (weight - positive_weight) / weight;
  if (rate > 0 && other > 0) {
    values.normalized_entropy =
        values.logloss / -(rate * CanonicalLog(rate) + other * CanonicalLog(other));
  }
  return values;
}

void BinaryMetrics::Add(const ScoredRows& rows) {
  const size_t count = rows.labels.size() / columns_;
  CHECK_EQ(rows.labels.size(), count * columns_);
  CHECK_EQ(rows.logits.size(), count * outputs_);
  CHECK_EQ(rows.losses.size(), count * outputs_);
  if (!rows.weights.empty()) CHECK_EQ(count, rows.weights.size());
  if (grouped_) CHECK_EQ(count, rows.groups.size());
  const auto add = [&](size_t row, int64_t stratum) {
    const float logit = rows.logits[row * outputs_ + output_];
    const float label = rows.labels[row * columns_ + label_.column];
    if (std::isnan(logit)) {
      nan_logit_ = true;
      return;
    }
    if (std::isnan(label)) {
      unlabelled_ += stratum == 0;
      return;
    }
    CHECK(label == 0 || label == 1) << "label " << label;
    const float weight = rows.weights.empty() ? 1.0f : rows.weights[row];
    sums_[stratum].Add(logit, label == 1, rows.losses[row * outputs_ + output_], weight);
    areas_.Add(stratum, logit, label == 1);
    if (stratum > 0) return;
    if (weighted_) weighted_area_.Add(logit, label == 1, weight);
    if (!grouped_) return;
    if (rows.groups[row] == kNoGroup) {
      ++ungrouped_;
    } else {
      grouped_areas_.Add(rows.groups[row], logit, label == 1, weight);
    }
  };
  for (size_t row = 0; row < count; ++row) add(row, 0);
  for (const RowSlice& slice : rows.slices) add(slice.row, 1 + slice.slice);
}

// One exchange for everything that is a plain sum.
Status BinaryMetrics::SumOverRanks(Communicator& communicator) {
  std::vector<int64_t> words;
  for (const BinarySums& sums : sums_) sums.AppendWords(&words);
  words.insert(words.end(), {nan_logit_, unlabelled_, ungrouped_});
  ELASTOR_RETURN_IF_ERROR(communicator.AllReduceSum(Phase::kMetrics, words));
  std::span<const int64_t> rest = words;
  for (BinarySums& sums : sums_) {
    sums = BinarySums::FromWords(rest.first(BinarySums::kWords));
    rest = rest.subspan(BinarySums::kWords);
  }
  ungrouped_ = rest[2];
  if (rest[0] > 0) return DivergedError("evaluation: a logit is not a number");
  if (!sums_[0].finite()) return DivergedError("evaluation: a row's loss is not finite");
  const bool labelled = sums_[0].positives() + sums_[0].negatives() > 0;
  if (!labelled && rest[1] == 0) return UserError("evaluation: the split has no rows");
  if (!labelled || !sums_[0].weightless()) return OkStatus();
  return UserError("evaluation: the weights of the split sum to 0");
}

StatusOr<MetricValues> BinaryMetrics::Reduce(Communicator& communicator) {
  ELASTOR_RETURN_IF_ERROR(SumOverRanks(communicator));
  std::vector<int64_t> positives, negatives;
  for (const BinarySums& sums : sums_) {
    positives.push_back(sums.positives());
    negatives.push_back(sums.negatives());
  }
  if (communicator.rank() == 0 && (positives[0] == 0 || negatives[0] == 0)) {
    const int64_t labelled = positives[0] + negatives[0];
    const std::string name = label_.name.empty() ? "" : " " + label_.name;
    if (labelled > 0) {
      LOG(WARNING) << "all " << labelled << " labels" << name << " are "
                   << (positives[0] == 0 ? 0 : 1) << ": no AUC";
    } else if (!name.empty()) {
      LOG(WARNING) << "no row has the label" << name << ": no metrics of it";
    }
  }
  ELASTOR_ASSIGN_OR_RETURN(const std::vector<std::optional<double>> areas,
                           areas_.Reduce(positives, negatives, communicator));
  MetricValues values;
  values.label = label_.name;
  static_cast<BinaryValues&>(values) = sums_[0].Values();
  values.auc = areas[0];
  for (size_t s = 1; s < sums_.size(); ++s) {
    SliceValues slice;
    static_cast<BinaryValues&>(slice) = sums_[s].Values();
    slice.auc = areas[s];
    values.slices.push_back(std::move(slice));
  }
  if (weighted_) {
    ELASTOR_ASSIGN_OR_RETURN(values.weighted_auc, weighted_area_.Reduce(communicator));
  }
  if (grouped_) {
    const auto means =
        weighted_ ? GroupedAuc::Means::kByRowsAndWeights : GroupedAuc::Means::kByRows;
    ELASTOR_ASSIGN_OR_RETURN(const GroupedAuc::Result grouped,
                             grouped_areas_.Reduce(means, communicator));
    values.gauc = grouped.mean;
    values.gauc_groups = grouped.groups;
    values.ungrouped_rows = ungrouped_;
    values.weighted_gauc = grouped.weighted_mean;
  }
  return values;
}

void ClassMetrics::Add(const ScoredRows& rows) {
  const int64_t count = static_cast<int64_t>(rows.labels.size()) / task_.labels();
  CHECK_EQ(static_cast<int64_t>(rows.logits.size()), count * task_.outputs());
  CHECK_EQ(static_cast<int64_t>(rows.losses.size()), count * task_.losses());
  const int64_t classes = task_.outputs_per_label();
  for (int64_t row = 0; row < count; ++row) {
    const double weight = rows.weights.empty() ? 1.0 : double{rows.weights[row]};
    for (int64_t i = 0; i < task_.losses(); ++i) {
      const float label = rows.labels[row * task_.labels() + task_.learned[i].column];
      const auto logits = rows.logits.subspan(row * task_.outputs() + i * classes, classes);
      nan_logit_ |= std::ranges::any_of(logits, [](float z) { return std::isnan(z); });
      if (std::isnan(label)) continue;
      const int64_t most = std::ranges::max_element(logits) - logits.begin();
      ++labels_;
      weights_.Add(weight);
      if (static_cast<float>(most) == label) correct_.Add(weight);
      losses_.Add(weight * rows.losses[row * task_.losses() + i]);
    }
  }
}

StatusOr<std::vector<MetricValues>> ClassMetrics::Reduce(Communicator& communicator) {
  ExactSum* const sums[] = {&weights_, &correct_, &losses_};
  std::vector<int64_t> words = {labels_, nan_logit_};
  for (const ExactSum* sum : sums) {
    const auto own = sum->ToWords();
    words.insert(words.end(), own.begin(), own.end());
  }
  ELASTOR_RETURN_IF_ERROR(communicator.AllReduceSum(Phase::kMetrics, words));
  auto from = words.begin() + 2;
  for (ExactSum* sum : sums) {
    std::array<int64_t, ExactSum::kWords> part;
    std::copy_n(from, part.size(), part.begin());
    from += part.size();
    *sum = ExactSum::FromWords(part);
  }
  if (words[1] > 0) return DivergedError("evaluation: a logit is not a number");
  if (!losses_.ok()) return DivergedError("evaluation: a row's loss is not finite");
  if (words[0] == 0) return UserError("evaluation: the split has no labels");
  const double weight = weights_.Value();
  if (weight == 0) return UserError("evaluation: the weights of the split sum to 0");
  MetricValues values;
  values.rows = words[0];
  values.logloss = losses_.Value() / weight;
  values.accuracy = correct_.Value() / weight;
  values.bits_per_label = values.logloss / CanonicalLog(2);
  return std::vector{values};
}

namespace {

// One after the other.
class MetricsOfLabels final : public Metrics {
 public:
  MetricsOfLabels(const Task& task, const MetricOptions& options) {
    for (int64_t i = 0; i < task.outputs(); ++i) labels_.emplace_back(task, i, options);
  }
  void Add(const ScoredRows& rows) override {
    for (BinaryMetrics& label : labels_) label.Add(rows);
  }
  StatusOr<std::vector<MetricValues>> Reduce(Communicator& communicator) override {
    std::vector<MetricValues> all;
    for (BinaryMetrics& label : labels_) {
      ELASTOR_ASSIGN_OR_RETURN(MetricValues values, label.Reduce(communicator));
      all.push_back(std::move(values));
    }
    return all;
  }

 private:
  std::vector<BinaryMetrics> labels_;
};

}  // namespace

std::unique_ptr<Metrics> MakeMetrics(const Task& task, const MetricOptions& options) {
  switch (task.kind) {
    case Task::Kind::kBinary:
      return std::make_unique<MetricsOfLabels>(task, options);
    case Task::Kind::kClasses:
      return std::make_unique<ClassMetrics>(task);
  }
  LOG(FATAL) << "no such task";
}

}  // namespace elastor
