#ifndef ELASTOR_LAUNCHER_COMPARISON_LOSS_AND_GAP_H_
#define ELASTOR_LAUNCHER_COMPARISON_LOSS_AND_GAP_H_

#include <cstdint>
#include <string>

#include "core/base/status.h"
#include "launcher/comparison/energy_distance.h"

namespace elastor {

// Of a run's folder, from its metrics.jsonl. A point is a scheduled evaluation of the validation
// split: the mean loss of the training records since the evaluation before, and the logloss less
// that. Evaluations before `from_step` are left out: while the loss falls fast, a mean over steps
// is far above the loss at their end. User error where no such evaluation is.
StatusOr<LossAndGapRun> ReadLossAndGap(const std::string& folder, int64_t from_step);

}  // namespace elastor

#endif  // ELASTOR_LAUNCHER_COMPARISON_LOSS_AND_GAP_H_
