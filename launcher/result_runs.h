#ifndef ELASTOR_LAUNCHER_RESULT_RUNS_H_
#define ELASTOR_LAUNCHER_RESULT_RUNS_H_

#include <span>
#include <string>
#include <vector>

#include "core/base/status.h"

namespace elastor {

// The runs whose results are meant by folders that a user gives: a run's own, or a sweep's, which
// stands for its finished final runs. Runs that were only tuned by are no results, whoever names
// them.
struct ResultRuns {
  std::vector<std::string> folders;
  // For people, a line a sweep: "runs/quick: 30 tuning runs and 2 unfinished ones are left out".
  std::string left_out;
};
// User error for a sweep whose plan is damaged, or of which nothing is left.
StatusOr<ResultRuns> FindResultRuns(std::span<const std::string> folders);

}  // namespace elastor

#endif  // ELASTOR_LAUNCHER_RESULT_RUNS_H_
