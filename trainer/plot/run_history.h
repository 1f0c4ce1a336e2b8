#ifndef ELASTOR_TRAINER_PLOT_RUN_HISTORY_H_
#define ELASTOR_TRAINER_PLOT_RUN_HISTORY_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "trainer/records/run_records.h"

namespace elastor {

// Most curves of a picture, which its colours tell apart.
inline constexpr size_t kMostCurves = 6;

// Records of a training run, finished or not, as its folder tells them.
struct RunHistory {
  std::string folder;  // as it was given
  std::string name;    // short name, different from the other runs' names
  // Name of the runs that differ from this one in nothing but their seed: what they differ in from
  // the others. Empty: no two of the runs are such seeds, or these are all that is shown.
  std::string group;
  std::vector<TrainRecord> train;  // in the order of metrics.jsonl, as all records
  std::vector<EvalRecord> evaluations;
  std::vector<EvalRecord> training_evaluations;
  std::vector<std::vector<SpectrumRecord>>
      spectra;  // measurements, each in the order of the stages
  std::vector<TableRecord> tables;
  std::string data;                           // the data set's path
  std::map<std::string, std::string> fields;  // of its experiment: "optimizer.learning_rate"
  std::string experiment;                     // experiment.textproto
  std::optional<Summary> summary;             // none: not finished
  int64_t steps() const;                      // steps done, by the records
};

// Returns the groups of the runs, in the order of their first runs; empty without groups.
std::vector<std::string> GroupsOf(const std::vector<RunHistory>& runs);

// Reads the runs in these folders. Leaves out a last line that is still being written. User error
// in one line: a folder without a training run, without records or given twice, or damaged records.
StatusOr<std::vector<RunHistory>> ReadRuns(const std::vector<std::string>& folders);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_PLOT_RUN_HISTORY_H_
