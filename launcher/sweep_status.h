#ifndef ELASTOR_LAUNCHER_SWEEP_STATUS_H_
#define ELASTOR_LAUNCHER_SWEEP_STATUS_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "launcher/plan.h"
#include "launcher/run_folder.h"
#include "launcher/run_table.h"

namespace elastor {

// A run as its files show it.
struct RunStatus {
  RunState state = RunState::kWaiting;
  Attempts attempts;
  std::optional<RunResult> result;  // of a run that is done
};
RunStatus ReadStatus(const PlannedRun& run, const SweepFiles& files);

// The run's row, but for the progress of one that is not done. state: as the table has it.
RunRow RowOf(const PlannedRun& run, const RunStatus& status, const std::string& state);

// What --status prints: a line a run, then how many are done. `jobs`: of runs that Slurm has, by
// folder, what it says of them ("running on node1").
std::string StatusTable(const Plan& plan, const SweepFiles& files,
                        const std::map<std::string, std::string>& jobs = {});

// Writes runs.csv, a line a run in the plan's order: the plan's columns, size, state, results.
Status WriteTable(const Plan& plan, const SweepFiles& files);

// "auc 0.7915  logloss 0.4561", for people.
std::string Metrics(const RunResult& result);

}  // namespace elastor

#endif  // ELASTOR_LAUNCHER_SWEEP_STATUS_H_
