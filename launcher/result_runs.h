#ifndef ELASTOR_LAUNCHER_RESULT_RUNS_H_
#define ELASTOR_LAUNCHER_RESULT_RUNS_H_

#include <span>
#include <string>
#include <vector>

#include "core/base/status.h"

namespace elastor {

// The result runs behind the folders that a user gives. A folder is a run's, or a sweep's, which
// stands for its finished final runs. Tuning runs are never results, even if the user names them.
struct ResultRuns {
  std::vector<std::string> folders;
  // Names of the runs in their sweeps (NameInSweep), one for each folder. Empty: of no sweep.
  std::vector<std::string> names;
  // Notes for people, one line per sweep: "runs/quick: 30 tuning runs and 2 unfinished ones are
  // left out".
  std::string left_out;
};
// Finds the result runs. User error for a sweep whose plan is damaged, or that has no result runs.
StatusOr<ResultRuns> FindResultRuns(std::span<const std::string> folders);

}  // namespace elastor

#endif  // ELASTOR_LAUNCHER_RESULT_RUNS_H_
