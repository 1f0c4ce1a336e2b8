#ifndef ELASTOR_LAUNCHER_COMPARISON_LOSS_AND_GAP_H_
#define ELASTOR_LAUNCHER_COMPARISON_LOSS_AND_GAP_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "launcher/comparison/energy_distance.h"

namespace elastor {

// The runs of one name, an arm of the test.
struct LossAndGapArm {
  std::string name;
  std::vector<LossAndGapRun> runs;
};

// Of runs' folders, from summary.json and metrics.jsonl, in the order in which they name the arms.
// A point is a scheduled evaluation of the validation split: the mean loss of the training records
// since the evaluation before, and the logloss less that. Evaluations before `from_step` are left
// out: while the loss falls fast, a mean over steps is far above the loss at their end. User error
// for a folder that is not that of a finished training with such an evaluation.
StatusOr<std::vector<LossAndGapArm>> ReadLossAndGap(std::span<const std::string> folders,
                                                    int64_t from_step);

}  // namespace elastor

#endif  // ELASTOR_LAUNCHER_COMPARISON_LOSS_AND_GAP_H_
