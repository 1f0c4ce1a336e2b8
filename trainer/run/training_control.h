#ifndef ELASTOR_TRAINER_RUN_TRAINING_CONTROL_H_
#define ELASTOR_TRAINER_RUN_TRAINING_CONTROL_H_

#include <cstdint>

#include "configs/proto/control.pb.h"
#include "configs/proto/experiment.pb.h"

namespace elastor {

// Decides learning rates, plateaus, early stop and best weights, as a pure function of the steps
// done and the scheduled evaluations so far. Formulas: docs/reference/training.md. Its whole state
// is the ControlRecord, so a run continues from a record as if it had never stopped.
class TrainingControl {
 public:
  struct Epoch {
    int64_t rows = 0;
    int64_t batch_rows = 0;
    int64_t steps() const { return (rows + batch_rows - 1) / batch_rows; }
  };
  // `record` is the state to continue from; a new run passes NewRecord, with its seed and
  // plateau_share 1.
  TrainingControl(const OptimizerConfig& optimizer, const TrainingConfig& training,
                  const Epoch& epoch, const ControlRecord& record);
  static ControlRecord NewRecord(const TrainingConfig& training);

  const ControlRecord& record() const { return record_; }
  int64_t total_steps() const { return epoch_.steps() * training_.epochs(); }
  bool finished() const { return record_.stopped_early() || record_.step() >= total_steps(); }

  // Returns the learning rate of the next step.
  double LearningRate() const;
  // Tells that a step was done with that learning rate. event_time: EmbeddingState::event_time.
  void StepDone(int64_t event_time = 0);
  // Returns whether a scheduled evaluation follows the step just done and was not told yet. Only
  // scheduled evaluations influence the run.
  bool EvaluationDue() const { return record_.evaluation_pending(); }
  // Tells the monitored metric's value in a scheduled evaluation. Returns whether it is the best so
  // far. Not-a-number, an evaluation without the metric, decides nothing. Otherwise the learning
  // rate may be lower, and the run may be finished.
  bool Evaluated(double value);
  // Tells whether effective ranks are to be measured after the step just done. They decide nothing.
  void SetSpectrumDue(bool due) { record_.set_spectrum_pending(due); }
  bool SpectrumDue() const { return record_.spectrum_pending(); }

 private:
  bool Improves(double value) const;

  OptimizerConfig optimizer_;
  TrainingConfig training_;
  Epoch epoch_;
  ControlRecord record_;
};

}  // namespace elastor

#endif  // ELASTOR_TRAINER_RUN_TRAINING_CONTROL_H_
