#ifndef ELASTOR_LAUNCHER_DRY_RUN_H_
#define ELASTOR_LAUNCHER_DRY_RUN_H_

#include <string>

#include "configs/proto/sweep.pb.h"
#include "core/base/status.h"
#include "launcher/machine.h"
#include "launcher/plan.h"
#include "launcher/run_folder.h"

namespace elastor {

// Returns the output of --dry_run: one line per run with its state, size, estimated time and
// command, then the totals. With `slurm`, tells how the runs would be submitted and nothing about
// this machine. Null: the runs would run here.
StatusOr<std::string> DryRun(const Plan& plan, const SweepFiles& files, const Machine& machine,
                             const std::string& trainer, const Slurm* slurm);

}  // namespace elastor

#endif  // ELASTOR_LAUNCHER_DRY_RUN_H_
