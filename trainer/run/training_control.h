#ifndef ELASTOR_TRAINER_RUN_TRAINING_CONTROL_H_
#define ELASTOR_TRAINER_RUN_TRAINING_CONTROL_H_

#include <cstdint>

#include "configs/proto/control.pb.h"
#include "configs/proto/experiment.pb.h"

namespace elastor {

// What happens when in a run, as a pure function of the steps done and of the scheduled evaluations
// so far: learning rates, plateaus, early stop, best weights. Formulas: docs/reference/training.md. Its whole
// state is the ControlRecord, so a run continues from a record as if it had never stopped.
class TrainingControl {
 public:
  struct Epoch {
    int64_t rows = 0;
    int64_t batch_rows = 0;
    int64_t steps() const { return (rows + batch_rows - 1) / batch_rows; }
  };
  // `record`: where to continue; of a new run: its seed and plateau_share 1 (NewRecord).
  TrainingControl(const OptimizerConfig& optimizer, const TrainingConfig& training,
                  const Epoch& epoch, const ControlRecord& record);
  static ControlRecord NewRecord(const TrainingConfig& training);

  const ControlRecord& record() const { return record_; }
  int64_t total_steps() const { return epoch_.steps() * training_.epochs(); }
  bool finished() const { return record_.stopped_early() || record_.step() >= total_steps(); }

  // Of the next step.
  double LearningRate() const;
  // A step was done with that rate.
  void StepDone();
  // Whether the step just done is followed by a scheduled evaluation: only these decide anything.
  bool EvaluationDue() const;
  // A scheduled evaluation found the monitored metric to be `value`. Returns whether it is the best
  // so far; afterwards the rate may be lower, and the run finished.
  bool Evaluated(double value);

 private:
  bool Improves(double value) const;

  OptimizerConfig optimizer_;
  TrainingConfig training_;
  Epoch epoch_;
  ControlRecord record_;
};

}  // namespace elastor

#endif  // ELASTOR_TRAINER_RUN_TRAINING_CONTROL_H_
