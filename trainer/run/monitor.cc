#include "trainer/run/monitor.h"

#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "core/base/file.h"
#include "core/base/json.h"
#include "core/base/json_entry.h"
#include "core/base/text.h"
#include "trainer/experiment/make_options.h"

namespace elastor {
namespace {

// Rows of a split that have a label, and those of them where it is 1.
struct LabelCounts {
  int64_t rows = 0;
  int64_t positives = 0;
};

// What stats.json says about the validation rows' label; `name` is empty if there is one label.
// Nothing: the file is not there or says nothing.
std::optional<LabelCounts> CountsOf(const std::string& dataset_path, const std::string& name) {
  const StatusOr<std::string> text = ReadFile(dataset_path + "/stats.json");
  if (!text.ok()) return std::nullopt;
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  try {
    const Json json = ParseJson(*text);
    const JsonEntry split = JsonEntry(json).Member("splits").Member("validation");
    const JsonEntry label = name.empty() ? split : split.Member("labels").Member(name);
    if (label.Member("positives").json().is_null()) return LabelCounts();
    return LabelCounts{label.Member("rows").Integer(0, kMost),
                       label.Member("positives").Integer(0, kMost)};
  } catch (const std::string&) {
    return std::nullopt;
  }
}

}  // namespace

std::string MetricName(const MonitorConfig& monitor) {
  if (monitor.metric() == MonitorConfig::LOGLOSS) return "logloss";
  const std::string name = monitor.metric() == MonitorConfig::GAUC ? "gauc" : "auc";
  return monitor.weighted() ? "weighted_" + name : name;
}

double MonitoredMetric(const MonitorConfig& monitor, const MetricValues& values) {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  if (monitor.metric() == MonitorConfig::LOGLOSS) return values.rows > 0 ? values.logloss : kNone;
  const bool grouped = monitor.metric() == MonitorConfig::GAUC;
  if (monitor.weighted()) {
    return (grouped ? values.weighted_gauc : values.weighted_auc).value_or(kNone);
  }
  return (grouped ? values.gauc : values.auc).value_or(kNone);
}

Status CheckMonitor(const Experiment& experiment, const Task& task, const Dataset& dataset) {
  const TrainingConfig& training = experiment.training();
  const MonitorConfig& monitor = training.monitor();
  const DatasetInfo& data = dataset.info();
  if (monitor.weighted() && !data.has_weights) {
    return UserError(
        "training.monitor.weighted: true, but the data set has no weights; expected false, or data "
        "with a field of type WEIGHT");
  }
  const bool followed = monitor.best_weights() || monitor.early_stop_patience() > 0 ||
                        training.schedule().plateau_factor() > 0;
  if (!followed) return OkStatus();
  if (dataset.rows(Split::kValidation) == 0) {
    return UserError(
        "training.monitor: the data set has no validation rows; expected some, for early stop, "
        "plateaus and best weights");
  }
  if (monitor.metric() == MonitorConfig::GAUC && !data.has_groups) {
    return UserError(
        "training.monitor.metric: GAUC, but the data set has no groups; expected AUC or LOGLOSS");
  }
  if (data.classes > 0) return OkStatus();
  const Task::Label& label = task.learned[MonitoredLabel(experiment, task)];
  const std::string name = data.labels.empty() ? "" : data.labels[label.column].name;
  const auto counts = CountsOf(experiment.data().path(), name);
  if (!counts) return OkStatus();
  const std::string which = name.empty() ? "label" : "label " + name;
  if (counts->rows == 0) {
    return UserError("training.monitor: no validation row has the " + which +
                     "; expected rows with it, for early stop, plateaus and best weights");
  }
  if (monitor.metric() == MonitorConfig::LOGLOSS ||
      (counts->positives > 0 && counts->positives < counts->rows)) {
    return OkStatus();
  }
  return UserError(StrCat("training.monitor.metric: ", MonitorConfig::Metric_Name(monitor.metric()),
                          ", but the ", which, " is ", counts->positives == 0 ? 0 : 1,
                          " in every validation row; expected rows of both, or LOGLOSS"));
}

}  // namespace elastor
