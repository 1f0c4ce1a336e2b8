#ifndef ELASTOR_LAUNCHER_PLAN_FILE_H_
#define ELASTOR_LAUNCHER_PLAN_FILE_H_

#include "core/base/status.h"
#include "launcher/plan.h"
#include "launcher/run_folder.h"

namespace elastor {

// Writes plan.jsonl: the sweep's line, then one line per run.
Status WritePlan(const Plan& plan, const SweepFiles& files);
StatusOr<Plan> ReadPlan(const SweepFiles& files);

}  // namespace elastor

#endif  // ELASTOR_LAUNCHER_PLAN_FILE_H_
