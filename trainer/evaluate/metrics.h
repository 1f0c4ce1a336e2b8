#ifndef ELASTOR_TRAINER_EVALUATE_METRICS_H_
#define ELASTOR_TRAINER_EVALUATE_METRICS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "collective/communicator.h"
#include "core/base/exact_sum.h"
#include "core/base/status.h"
#include "core/task/task.h"
#include "trainer/evaluate/area_under_curve.h"
#include "trainer/records/metric_values.h"

namespace elastor {

// Exact sums over a set of rows. They do not depend on the rows' order or on their spread over
// ranks.
class BinarySums {
 public:
  void Add(float logit, bool positive, double loss, float weight);

  static constexpr int kWords = 2 + 4 * ExactSum::kWords;
  // Appends the sums as words for an integer all-reduce, as ExactSum does.
  void AppendWords(std::vector<int64_t>* words) const;
  static BinarySums FromWords(std::span<const int64_t> words);

  int64_t positives() const { return positives_; }
  int64_t negatives() const { return rows_ - positives_; }
  bool finite() const { return losses_.ok() && predictions_.ok(); }
  bool weightless() const { return weights_.Value() == 0; }
  // Returns all metrics except auc. They are not-a-number without rows or if the weights sum to 0.
  BinaryValues Values() const;

 private:
  int64_t rows_ = 0;
  int64_t positives_ = 0;
  ExactSum weights_;
  ExactSum positive_weights_;
  ExactSum losses_;       // weight * loss
  ExactSum predictions_;  // weight * sigmoid(logit)
};

// States that row `row` of a batch belongs to slice `slice`.
struct RowSlice {
  int64_t row;
  int64_t slice;
};

// Rows of one rank with their predictions: logits [rows][task's outputs], losses [rows][task's
// losses], labels [rows][task's labels], the others [rows].
struct ScoredRows {
  std::span<const float> logits;
  std::span<const float> labels;          // not-a-number: none
  std::span<const double> losses;         // without weights
  std::span<const float> weights = {};    // empty: all 1
  std::span<const uint64_t> groups = {};  // used when `grouped`; kNoGroup: none
  std::span<const RowSlice> slices = {};  // any number a row, none twice
};

// Collects the predictions of one rank, then computes metrics over all ranks.
class Metrics {
 public:
  virtual ~Metrics() = default;
  virtual void Add(const ScoredRows& rows) = 0;
  // Returns the metrics of every learned label, in the task's order. Slices have no names yet.
  // Collective; called once. Diverged when an output is NaN or a loss is not finite on any rank.
  // User error when no rank has a row, or when the weights of the rows with a label sum to 0.
  virtual StatusOr<std::vector<MetricValues>> Reduce(Communicator& communicator) = 0;
};

// What is measured of binary labels besides the metrics of all rows. Class labels have none of it.
struct MetricOptions {
  int64_t slices = 0;     // number of slices
  bool grouped = false;   // gAUC; rows have groups
  bool weighted = false;  // weighted AUC and, when grouped, weighted gAUC of all rows
};

std::unique_ptr<Metrics> MakeMetrics(const Task& task, const MetricOptions& options);

// Metrics of class labels, all labels together. All labels of a row weigh alike, whatever its
// loss's mean is.
class ClassMetrics final : public Metrics {
 public:
  explicit ClassMetrics(const Task& task) : task_(task) {}
  void Add(const ScoredRows& rows) override;
  StatusOr<std::vector<MetricValues>> Reduce(Communicator& communicator) override;

 private:
  const Task task_;
  int64_t labels_ = 0;
  bool nan_logit_ = false;
  ExactSum weights_;
  ExactSum correct_;  // weight of the correctly predicted labels
  ExactSum losses_;   // weight * loss
};

// Metrics of one binary label: over all rows that have it, over every slice, and gAUC. Sums are
// exact; AUC counts in integers (trainer/evaluate/area_under_curve.h).
//
// Memory: StratifiedAuc's for each row and slice that it is in, GroupedAuc's if grouped, and
// WeightedAuc's if weighted.
// Thread-compatible.
class BinaryMetrics {
 public:
  // output: index among the task's outputs.
  BinaryMetrics(const Task& task, int64_t output, const MetricOptions& options)
      : label_(task.learned[output]),
        output_(output),
        outputs_(task.outputs()),
        columns_(task.labels()),
        grouped_(options.grouped),
        weighted_(options.weighted),
        sums_(1 + options.slices),
        areas_(1 + options.slices) {}

  // These do what the functions of Metrics do.
  void Add(const ScoredRows& rows);
  StatusOr<MetricValues> Reduce(Communicator& communicator);

 private:
  Status SumOverRanks(Communicator& communicator);

  const Task::Label label_;
  const int64_t output_;
  const int64_t outputs_;
  const int64_t columns_;
  const bool grouped_;
  const bool weighted_;
  // Sums of all rows, then of every slice.
  std::vector<BinarySums> sums_;
  StratifiedAuc areas_;
  GroupedAuc grouped_areas_;
  WeightedAuc weighted_area_;
  int64_t unlabelled_ = 0;  // number of rows without the label
  int64_t ungrouped_ = 0;   // number of labelled rows without a group
  bool nan_logit_ = false;
};

}  // namespace elastor

#endif  // ELASTOR_TRAINER_EVALUATE_METRICS_H_
