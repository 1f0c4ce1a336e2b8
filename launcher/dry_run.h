#ifndef ELASTOR_LAUNCHER_DRY_RUN_H_
#define ELASTOR_LAUNCHER_DRY_RUN_H_

#include <string>

#include "configs/proto/sweep.pb.h"
#include "core/base/status.h"
#include "launcher/machine.h"
#include "launcher/plan.h"
#include "launcher/run_folder.h"

namespace elastor {

// What --dry_run prints: a line a run, with its state, size, estimated time and command, then what
// all of them come to. slurm: how they would be submitted, and nothing of this machine; null: they
// run here.
StatusOr<std::string> DryRun(const Plan& plan, const SweepFiles& files, const Machine& machine,
                             const std::string& trainer, const Slurm* slurm);

}  // namespace elastor

#endif  // ELASTOR_LAUNCHER_DRY_RUN_H_
