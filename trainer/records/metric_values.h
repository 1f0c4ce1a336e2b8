#ifndef ELASTOR_TRAINER_RECORDS_METRIC_VALUES_H_
#define ELASTOR_TRAINER_RECORDS_METRIC_VALUES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace elastor {

// Metrics of binary predictions over a set of rows of all ranks (docs/reference/training.md). Every
// rank gets the same bits, however the rows are spread over ranks. Weights count in all metrics
// except rows, positives and AUC.
struct BinaryValues {
  int64_t rows = 0;  // number of rows that have the label
  int64_t positives = 0;
  double logloss = 0;                        // mean cross-entropy; not-a-number without rows
  std::optional<double> auc;                 // none if all labels are of one class
  std::optional<double> normalized_entropy;  // logloss / entropy of the base rate; none likewise
  std::optional<double> calibration;         // sum of predictions / positives; none: no positives
};

// Metrics over the rows that have one value of a categorical field.
struct SliceValues : BinaryValues {
  std::string field;
  int64_t id = 0;
  std::string value;  // the id's text; empty where the data set does not tell
};

struct MetricValues : BinaryValues {
  // Set only for class labels, which have these two, logloss and `rows`; all other fields stay
  // empty.
  std::optional<double> accuracy;  // weighted share of labels whose class has the largest logit
  std::optional<double> bits_per_label;  // logloss / ln 2: of bytes, bits per byte
  std::string label;                     // name of the measured label; empty: the only label
  std::optional<double> gauc;  // mean of the groups' AUC by rows; none: no group with both classes
  int64_t gauc_groups = 0;     // number of groups with both classes
  std::vector<SliceValues> slices = {};
};

}  // namespace elastor

#endif  // ELASTOR_TRAINER_RECORDS_METRIC_VALUES_H_
