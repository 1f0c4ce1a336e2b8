#ifndef ELASTOR_LAUNCHER_COMPARISON_LOSS_AND_GAP_H_
#define ELASTOR_LAUNCHER_COMPARISON_LOSS_AND_GAP_H_

#include <cstdint>
#include <string>

#include "core/base/status.h"
#include "launcher/comparison/energy_distance.h"

namespace elastor {

// Reads loss and gap from the metrics.jsonl in a run's folder. Each scheduled evaluation of the
// validation split from `from_step` on is a point. Its loss is the logloss of the training rows
// (evaluation.train_rows) by the same weights, its gap the validation logloss minus that. The loss
// of the steps is no such loss: it is of rows before they were learned, with dropout. User error
// without such an evaluation, and where one has no training rows beside it.
StatusOr<LossAndGapRun> ReadLossAndGap(const std::string& folder, int64_t from_step);

}  // namespace elastor

#endif  // ELASTOR_LAUNCHER_COMPARISON_LOSS_AND_GAP_H_
