#ifndef ELASTOR_LAUNCHER_COMPARISON_RUNS_H_
#define ELASTOR_LAUNCHER_COMPARISON_RUNS_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "launcher/comparison/comparison.h"

namespace elastor {

struct ComparedRuns {
  std::string split;
  std::vector<uint8_t> labels;        // of the split's rows
  std::vector<ComparedModel> models;  // in the order in which the folders name them
};

// The runs of these folders, from experiment.textproto, summary.json and predictions.csv: of
// training with --predictions, or of --mode=predict. Runs of one `name` are one model. User error
// when a folder is not that of a whole run with predictions, when those are not the run's own
// (their AUC is not the summary's), when two runs have different rows, and when two of one name
// have the same seed or differ in another numeric field.
StatusOr<ComparedRuns> ReadComparedRuns(std::span<const std::string> folders);

}  // namespace elastor

#endif  // ELASTOR_LAUNCHER_COMPARISON_RUNS_H_
