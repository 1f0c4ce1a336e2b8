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
#include "trainer/records/run_records.h"

namespace elastor {

// Status of a run, from its files.
struct RunStatus {
  RunState state = RunState::kWaiting;
  Attempts attempts;
  std::optional<Summary> result;  // of a run that is done
  std::string mistake;            // why the files in its folder are not taken; empty: they are
};
RunStatus ReadStatus(const PlannedRun& run, const SweepFiles& files);

// Returns the run's row, without the progress of a run that is not done. `state` is the text in the
// table.
RunRow RowOf(const PlannedRun& run, const RunStatus& status, const std::string& state);

// Returns the output of --status: one line per run, then how many are done. `jobs` holds Slurm's
// states ("running on node1") of the runs that it has, by folder.
std::string StatusTable(const Plan& plan, const SweepFiles& files,
                        const std::map<std::string, std::string>& jobs = {});

// Writes runs.csv with one line per run in the plan's order: the plan's columns, size, state,
// results.
Status WriteTable(const Plan& plan, const SweepFiles& files);

// Returns a result for people: "auc 0.7915  logloss 0.4561".
std::string Metrics(const Summary& result);

}  // namespace elastor

#endif  // ELASTOR_LAUNCHER_SWEEP_STATUS_H_
