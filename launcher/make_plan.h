#ifndef ELASTOR_LAUNCHER_MAKE_PLAN_H_
#define ELASTOR_LAUNCHER_MAKE_PLAN_H_

#include <string>

#include "configs/proto/sweep.pb.h"
#include "core/base/status.h"
#include "launcher/plan.h"
#include "launcher/run_folder.h"

namespace elastor {

// Plans the runs of a loaded sweep that its finished runs in `files` determine. Without tuning
// these are all runs. Else they are the trials whose rung can begin and the final runs of tuned
// configurations. The same files give the same plan. User error, in one line that begins with
// `source` (the sweep's path), for the first impossible run: a field that does not exist, an
// experiment that is refused, two runs with the same outcome.
StatusOr<Plan> MakePlan(const Sweep& sweep, const std::string& source,
                        const SweepFiles& files = {});

}  // namespace elastor

#endif  // ELASTOR_LAUNCHER_MAKE_PLAN_H_
