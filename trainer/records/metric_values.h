#ifndef ELASTOR_TRAINER_RECORDS_METRIC_VALUES_H_
#define ELASTOR_TRAINER_RECORDS_METRIC_VALUES_H_

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "trainer/records/record_field.h"

namespace elastor {

// Metrics of binary predictions over a set of rows of all ranks (docs/reference/training.md). Every
// rank gets the same bits, however the rows are spread over ranks. Weights count in all metrics
// except rows, positives, AUC and gAUC.
struct BinaryValues {
  int64_t rows = 0;  // number of rows that have the label
  int64_t positives = 0;
  // Mean cross-entropy; not-a-number without rows.
  double logloss = std::numeric_limits<double>::quiet_NaN();
  std::optional<double> auc;                 // none if all labels are of one class
  std::optional<double> normalized_entropy;  // logloss / entropy of the base rate; none likewise
  std::optional<double> calibration;         // sum of predictions / positives; none: no positives
};

// Metrics over the rows that have one value of a categorical field.
struct SliceValues : BinaryValues {
  std::string field;
  uint64_t id = 0;    // or key
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
  int64_t ungrouped_rows = 0;  // number of rows outside gAUC, as they have no group
  // Where weights count (training.monitor.weighted); none: not asked for, or a class has no weight.
  std::optional<double> weighted_auc = {};
  std::optional<double> weighted_gauc = {};
  std::vector<SliceValues> slices = {};
};

// Metrics of all rows and of slices.
inline constexpr RecordField<BinaryValues> kBinaryFields[] = {
    {.name = "rows", .value = &BinaryValues::rows, .title = "rows"},
    {.name = "positives", .value = &BinaryValues::positives, .title = "positives"},
    {.name = "auc",
     .value = &BinaryValues::auc,
     .tag = "auc",
     .title = "AUC",
     .word = "auc",
     .in_summary = true,
     .picture = {"AUC", "AUC"}},
    {.name = "logloss",
     .value = &BinaryValues::logloss,
     .tag = "logloss",
     .title = "logloss",
     .word = "logloss",
     .in_summary = true,
     .picture = {"Logloss", "logloss"}},
    {.name = "normalized_entropy",
     .value = &BinaryValues::normalized_entropy,
     .tag = "normalized_entropy",
     .title = "normalised entropy"},
    {.name = "calibration",
     .value = &BinaryValues::calibration,
     .tag = "calibration",
     .title = "calibration",
     .picture = {"Calibration", "predictions / positives"}},
};

// Metrics of all rows alone.
inline constexpr RecordField<MetricValues> kGroupFields[] = {
    {.name = "gauc",
     .value = &MetricValues::gauc,
     .if_empty = IfEmpty::kLeftOut,
     .tag = "gauc",
     .title = "gAUC",
     .word = "gauc",
     .in_summary = true,
     .picture = {"gAUC", "gAUC"}},
    {.name = "gauc_groups", .value = &MetricValues::gauc_groups, .if_empty = IfEmpty::kLeftOut},
    {.name = "ungrouped_rows",
     .value = &MetricValues::ungrouped_rows,
     .if_empty = IfEmpty::kLeftOut},
    {.name = "weighted_auc",
     .value = &MetricValues::weighted_auc,
     .if_empty = IfEmpty::kLeftOut,
     .tag = "weighted_auc",
     .word = "weighted_auc",
     .picture = {"Weighted AUC", "weighted AUC"}},
    {.name = "weighted_gauc",
     .value = &MetricValues::weighted_gauc,
     .if_empty = IfEmpty::kLeftOut,
     .tag = "weighted_gauc",
     .word = "weighted_gauc",
     .picture = {"Weighted gAUC", "weighted gAUC"}},
};

// Metrics of class labels, in the place of all others. Logloss shows as the binary one does.
inline constexpr RecordField<MetricValues> kClassFields[] = {
    {.name = "label_count", .value = &MetricValues::rows},
    {.name = "logloss", .value = &MetricValues::logloss},
    {.name = "accuracy", .value = &MetricValues::accuracy, .title = "accuracy", .in_summary = true},
    {.name = "bits_per_label",
     .value = &MetricValues::bits_per_label,
     .title = "bits per label",
     .word = "bits",
     .in_summary = true},
};

inline constexpr RecordField<SliceValues> kSliceFields[] = {
    {.name = "field", .value = &SliceValues::field},
    {.name = "id", .value = &SliceValues::id},
    {.name = "value", .value = &SliceValues::value, .if_empty = IfEmpty::kLeftOut},
};

}  // namespace elastor

#endif  // ELASTOR_TRAINER_RECORDS_METRIC_VALUES_H_
