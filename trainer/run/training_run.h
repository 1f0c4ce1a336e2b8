#ifndef ELASTOR_TRAINER_RUN_TRAINING_RUN_H_
#define ELASTOR_TRAINER_RUN_TRAINING_RUN_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "configs/proto/control.pb.h"
#include "core/base/status.h"
#include "trainer/data/batch_source.h"
#include "trainer/run/control.h"
#include "trainer/run/run_checkpoints.h"
#include "trainer/run/run_parts.h"
#include "trainer/run/stop_signals.h"

namespace elastor {

// A training run on one rank, from its parts to its summary. Collective: every rank makes the same
// calls, and all return the same status (but for machine errors, trainer.h).
class TrainingRun {
 public:
  struct Options {
    std::string output_dir;
    Split split = Split::kValidation;  // of the last evaluation
    std::string checkpoint = {};       // where the run continues; empty: at its beginning
  };
  // parts, made for training, outlive the object.
  TrainingRun(const Options& options, RunParts* parts);

  Status Train();

 private:
  // The state before the first step: initial, of a warm start, or of a checkpoint.
  StatusOr<ControlRecord> Begin();
  StatusOr<ControlRecord> Continue();
  Status TrainSteps();
  Status RunStep(const LocalBatch& batch, const LocalBatch* next);
  Status AfterStep(const StepResult& result);
  Status LogStep(const StepResult& result);
  Status ScheduledEvaluation();
  Status Evaluate(Split split, bool scheduled);
  Status MeasureSpectrum();
  Status WriteLastCheckpoint();
  Status Finish();

  int64_t step() const { return control_->record().step(); }
  int64_t PlannedSteps() const;
  bool AtEnd() const;
  bool Due(int64_t every) const { return every > 0 && step() % every == 0; }
  int64_t Requests() const;

  const Options options_;
  const Experiment& experiment_;
  RunParts& parts_;
  RunLog& log_;
  StopSignals signals_;
  RunCheckpoints checkpoints_;
  std::unique_ptr<Control> control_;
  std::unique_ptr<BatchSource> batches_;

  bool stopped_ = false;      // by a signal to any rank
  double train_seconds_ = 0;  // inside steps
  int64_t train_rows_ = 0;
  double logged_seconds_ = 0;
  int64_t logged_rows_ = 0;
  StepTimes logged_times_;
  int64_t evaluated_step_ = -1;
  EvalRecord evaluated_;  // the last one; without a split: none
  std::vector<SpectrumRecord> spectrum_;
};

}  // namespace elastor

#endif  // ELASTOR_TRAINER_RUN_TRAINING_RUN_H_
