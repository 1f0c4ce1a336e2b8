#ifndef ELASTOR_TRAINER_METRICS_H_
#define ELASTOR_TRAINER_METRICS_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "collective/communicator.h"
#include "core/base/exact_sum.h"
#include "core/base/status.h"

namespace elastor {

// Metrics of binary predictions over all rows of all ranks; alike on every rank, and the same bits
// however the rows are spread.
struct MetricValues {
  int64_t rows = 0;
  int64_t positives = 0;
  double logloss = 0;                        // mean cross-entropy
  std::optional<double> auc;                 // none when all labels are of one class
  std::optional<double> normalized_entropy;  // logloss / entropy of the base rate; none likewise
  std::optional<double> calibration;         // sum of predictions / positives; none: no positives
};

// Collects the predictions of one rank, then computes metrics over all ranks.
//
// AUC is the probability that a positive scores higher than a negative, ties counting half, in
// exact integers: with float32 logits as scores, P positives and N negatives,
//   AUC = sum over distinct scores of pos * (2 * neg_below + neg_equal) / (2 P N).
// Each rank takes a range of scores: ranges are cut from a histogram so that all hold about the
// same number of rows, every row's score travels once (4 bytes), each rank sorts its range, and
// only counts are summed. Logloss and calibration are exact sums of doubles
// (core/base/exact_sum.h).
//
// Memory: 4 bytes a row, and as much again during Reduce. Thread-compatible.
class BinaryMetrics {
 public:
  // labels: 0 or 1. losses: each row's cross-entropy. REQUIRES: equal lengths.
  void Add(std::span<const float> logits, std::span<const float> labels,
           std::span<const double> losses);

  // Collective. Diverged when a logit is NaN or a loss not finite on any rank; user error when no
  // rank has a row.
  StatusOr<MetricValues> Reduce(Communicator& communicator) const;

 private:
  // REQUIRES: positives, negatives (over all ranks) > 0; no NaN logit.
  StatusOr<double> ReduceAuc(Communicator& communicator, int64_t positives,
                             int64_t negatives) const;

  // Scores as integers of the same order, by label.
  std::vector<uint32_t> keys_[2];
  ExactSum losses_;
  ExactSum predictions_;
  bool nan_logit_ = false;
};

}  // namespace elastor

#endif  // ELASTOR_TRAINER_METRICS_H_
