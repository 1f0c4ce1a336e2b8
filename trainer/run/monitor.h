#ifndef ELASTOR_TRAINER_RUN_MONITOR_H_
#define ELASTOR_TRAINER_RUN_MONITOR_H_

#include <string>

#include "configs/proto/experiment.pb.h"
#include "core/base/status.h"
#include "core/task/task.h"
#include "trainer/data/dataset.h"
#include "trainer/records/metric_values.h"

namespace elastor {

// The metric that plateaus, early stop and best weights follow (MonitorConfig).

// Name of the metric in records, "weighted_auc" for one.
std::string MetricName(const MonitorConfig& monitor);

// Returns the metric of an evaluation; not-a-number if the evaluation has none, as AUC where all
// labels are alike.
double MonitoredMetric(const MonitorConfig& monitor, const MetricValues& values);

// User error in one line if something follows the metric and the data set says beforehand that no
// evaluation will have it. Reads the data set's statistics; a set without them is taken.
Status CheckMonitor(const Experiment& experiment, const Task& task, const Dataset& dataset);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_RUN_MONITOR_H_
