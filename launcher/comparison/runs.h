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
  std::vector<uint8_t> labels;        // labels of the split's rows
  std::vector<ComparedModel> models;  // in the order in which the folders name them
};

// Reads the runs in these folders, which come from training with --predictions or from
// --mode=predict, from experiment.textproto, summary.json and predictions.csv. `names` has a name
// for each; an empty one stands for the experiment's `name`. Runs with the same name form one
// model. User error when a folder holds no whole run with predictions; when the predictions are not
// the run's own (their AUC differs from the summary's); when two runs have different rows; and when
// two runs of one name have the same seed or differ in another numeric field. REQUIRES: as many
// names as folders.
StatusOr<ComparedRuns> ReadComparedRuns(std::span<const std::string> folders,
                                        std::span<const std::string> names);

}  // namespace elastor

#endif  // ELASTOR_LAUNCHER_COMPARISON_RUNS_H_
