#ifndef ELASTOR_LAUNCHER_PREDICTED_TIMES_H_
#define ELASTOR_LAUNCHER_PREDICTED_TIMES_H_

#include <map>
#include <string>

#include "core/base/status.h"
#include "launcher/plan.h"

namespace elastor {

// Asks the trainer's mode describe how long steps take on parallel.machine. Runs of one shape are
// asked for once.
class PredictedTimes {
 public:
  explicit PredictedTimes(std::string trainer) : trainer_(std::move(trainer)) {}

  // Sets predicted_sample_s of every run whose experiment has parallel.machine. User error with the
  // trainer's line if it refuses one. REQUIRES: one thread.
  Status Add(Plan* plan);

 private:
  Status Add(PlannedRun* run);

  const std::string trainer_;
  std::map<std::string, double> known_;  // by what the time depends on
};

}  // namespace elastor

#endif  // ELASTOR_LAUNCHER_PREDICTED_TIMES_H_
