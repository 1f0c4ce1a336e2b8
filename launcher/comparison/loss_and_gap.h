#ifndef ELASTOR_LAUNCHER_COMPARISON_LOSS_AND_GAP_H_
#define ELASTOR_LAUNCHER_COMPARISON_LOSS_AND_GAP_H_

#include <cstdint>
#include <string>

#include "core/base/status.h"
#include "launcher/comparison/energy_distance.h"

namespace elastor {

// Reads loss and gap from the metrics.jsonl in a run's folder. Each scheduled evaluation of the
// validation split is a point. Its loss is the mean over the training records since the previous
// evaluation, its gap the logloss minus that mean. Evaluations before `from_step` are left out:
// while the loss falls fast, a mean over steps is far above the loss at their end. User error
// without such an evaluation.
StatusOr<LossAndGapRun> ReadLossAndGap(const std::string& folder, int64_t from_step);

}  // namespace elastor

#endif  // ELASTOR_LAUNCHER_COMPARISON_LOSS_AND_GAP_H_
