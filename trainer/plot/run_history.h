#ifndef ELASTOR_TRAINER_PLOT_RUN_HISTORY_H_
#define ELASTOR_TRAINER_PLOT_RUN_HISTORY_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/report/chart.h"
#include "nlohmann/json.hpp"

namespace elastor {

using RunRecord = nlohmann::ordered_json;

// What the folder of a training run tells of it, finished or not.
struct RunHistory {
  std::string folder;                           // as it was given
  std::string name;                             // that tells it from the others it is read with
  std::vector<RunRecord> train, evaluations;    // lines of metrics.jsonl, in its order
  std::vector<std::vector<RunRecord>> spectra;  // measurements, each in the order of the stages
  std::string data;                             // the data set's path
  std::map<std::string, std::string> fields;    // of its experiment: "optimizer.learning_rate"
  std::string experiment;                       // experiment.textproto
  std::optional<RunRecord> summary;             // none: not finished
  int64_t steps() const;                        // done, by the records
};

// Reads them. A last line that is being written is left out. User error in one line: a folder that
// holds no training run, one without records, one twice, records that are damaged.
StatusOr<std::vector<RunHistory>> ReadRuns(const std::vector<std::string>& folders);

// A record's field; NaN, or empty, where it is null or not there.
double NumberIn(const RunRecord& record, const char* field);
std::string TextIn(const RunRecord& record, const char* field);

// A field over the steps.
std::vector<ChartPoint> CurveOf(const std::vector<RunRecord>& records, const char* field);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_PLOT_RUN_HISTORY_H_
