#ifndef ELASTOR_LAUNCHER_RUN_COMMAND_H_
#define ELASTOR_LAUNCHER_RUN_COMMAND_H_

#include <string>
#include <vector>

#include "launcher/machine.h"
#include "launcher/plan.h"
#include "launcher/run_folder.h"

namespace elastor {

// Returns why the machine cannot run a run, "needs 8 cores, host h gives 2", or empty.
std::string Misfit(const PlannedRun& run, const Machine& machine);

// Returns the trainer's command line for a run. An attempt that continues the run adds --resume.
std::vector<std::string> TrainerCommand(const PlannedRun& run, const SweepFiles& files,
                                        const std::string& trainer);
// Returns the command line that starts the run's ranks on this machine.
std::vector<std::string> LocalCommand(const PlannedRun& run, const SweepFiles& files,
                                      const std::string& trainer);

}  // namespace elastor

#endif  // ELASTOR_LAUNCHER_RUN_COMMAND_H_
