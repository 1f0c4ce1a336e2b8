#include "trainer/trainer.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <utility>
#include <vector>

#include "core/base/digest.h"
#include "core/base/numerics.h"
#include "trainer/batch_source.h"
#include "trainer/describe.h"
#include "trainer/evaluation.h"
#include "trainer/inference.h"
#include "trainer/model_files.h"
#include "trainer/run_log.h"
#include "trainer/run_parts.h"
#include "trainer/run_setup.h"
#include "trainer/train_step.h"

namespace elastor {
namespace {

using Clock = std::chrono::steady_clock;

constexpr char kModelDirectory[] = "model";

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// A training run on one rank.
class Run {
 public:
  // parts, made for training, and options outlive the object.
  Run(const TrainerOptions& options, RunParts* parts);

  Status Train();

 private:
  Status TrainSteps();
  // The step's record when it is due, an evaluation, a spectrum.
  Status AfterStep(const StepResult& result);
  Status LogStep(const StepResult& result);
  Status Evaluate(Split split);
  Status MeasureSpectrum();
  Status Finish();
  StatusOr<std::string> StateDigest();
  bool Due(int64_t every) const { return every > 0 && step_.steps() % every == 0; }
  int64_t PlannedSteps() const;

  const TrainerOptions& options_;
  const Experiment& experiment_;
  RunParts& parts_;
  TrainStep<float>& step_;
  RunLog& log_;
  BatchSource batches_;

  double train_seconds_ = 0;  // inside steps
  int64_t train_rows_ = 0;
  double logged_seconds_ = 0;
  int64_t logged_rows_ = 0;
  StepTimes logged_times_;
  int64_t evaluated_step_ = -1;
  EvalRecord evaluated_;  // the last one; without a split: none
  std::vector<SpectrumRecord> spectrum_;
};

Run::Run(const TrainerOptions& options, RunParts* parts)
    : options_(options),
      experiment_(parts->experiment),
      parts_(*parts),
      step_(parts->step),
      log_(*parts->log),
      batches_(parts->dataset.get(), MakeRowOrder(experiment_),
               {.batch_rows = experiment_.training().batch_size(),
                .leaves = experiment_.parallel().virtual_shards(),
                .epochs = experiment_.training().epochs(),
                .rank = parts->communicator->rank(),
                .ranks = parts->communicator->size()}) {}

int64_t Run::PlannedSteps() const {
  const int64_t limit = experiment_.training().max_steps();
  return limit > 0 ? std::min(limit, batches_.total_steps()) : batches_.total_steps();
}

Status Run::Train() {
  ELASTOR_RETURN_IF_ERROR(TrainSteps());
  if (!experiment_.spectrum().disabled()) ELASTOR_RETURN_IF_ERROR(MeasureSpectrum());
  ELASTOR_RETURN_IF_ERROR(Evaluate(options_.split));
  return Finish();
}

Status Run::TrainSteps() {
  const int64_t planned = PlannedSteps();
  LocalBatch batch;
  LocalBatch next;
  ELASTOR_RETURN_IF_ERROR(batches_.Next(&batch));
  for (int64_t s = 0; s < planned; ++s) {
    const bool more = s + 1 < planned;
    if (more) ELASTOR_RETURN_IF_ERROR(batches_.Next(&next));
    const Clock::time_point start = Clock::now();
    StatusOr<StepResult> result =
        step_.Run(batch, more ? &next : nullptr, experiment_.optimizer().learning_rate());
    if (!result.ok()) return result.status();
    train_seconds_ += SecondsSince(start);
    train_rows_ += batch.global_rows;
    ELASTOR_RETURN_IF_ERROR(AfterStep(*result));
    std::swap(batch, next);
  }
  return OkStatus();
}

Status Run::AfterStep(const StepResult& result) {
  const bool last = step_.steps() == PlannedSteps();
  if (last || Due(experiment_.training().log_every_steps())) {
    ELASTOR_RETURN_IF_ERROR(LogStep(result));
  }
  const bool epoch_ends = step_.steps() % batches_.steps_per_epoch() == 0;
  if (epoch_ends || Due(experiment_.training().eval_every_steps())) {
    ELASTOR_RETURN_IF_ERROR(Evaluate(Split::kValidation));
  }
  if (!last && !experiment_.spectrum().disabled() && Due(experiment_.spectrum().every_steps())) {
    return MeasureSpectrum();
  }
  return OkStatus();
}

Status Run::LogStep(const StepResult& result) {
  const StepTimes& now = step_.times();
  const StepTimes& then = logged_times_;
  TrainRecord record;
  record.step = step_.steps();
  record.epoch = (step_.steps() - 1) / batches_.steps_per_epoch();
  record.loss = result.loss;
  record.l2 = result.l2;
  record.samples_per_s =
      static_cast<double>(train_rows_ - logged_rows_) / (train_seconds_ - logged_seconds_);
  record.phase_seconds = {
      {"route_ids", now.route_ids - then.route_ids},
      {"lookup", now.lookup - then.lookup},
      {"compute", now.compute - then.compute},
      {"reduce", now.reduce - then.reduce},
      {"route_gradients", now.route_gradients - then.route_gradients},
      {"scalars", now.scalars - then.scalars},
      {"update", now.update - then.update},
  };
  logged_times_ = now;
  logged_rows_ = train_rows_;
  logged_seconds_ = train_seconds_;
  log_.ShowProgress(record, PlannedSteps());
  return log_.Append(record);
}

Status Run::Evaluate(Split split) {
  if (evaluated_step_ == step_.steps() && split == Split::kValidation) return OkStatus();
  if (parts_.dataset->rows(split) == 0) return OkStatus();
  ELASTOR_ASSIGN_OR_RETURN(const MetricValues metrics, parts_.evaluation.Measure(split, {}));
  if (split == Split::kValidation) evaluated_step_ = step_.steps();
  evaluated_ = {SplitName(split), step_.steps(), metrics};
  return log_.Append(evaluated_);
}

Status Run::MeasureSpectrum() {
  if (parts_.dataset->rows(Split::kValidation) == 0) return OkStatus();
  ELASTOR_ASSIGN_OR_RETURN(spectrum_, parts_.evaluation.MeasureSpectrum(
                                          Split::kValidation, experiment_.spectrum().samples()));
  for (const SpectrumRecord& record : spectrum_) ELASTOR_RETURN_IF_ERROR(log_.Append(record));
  return OkStatus();
}

StatusOr<std::string> Run::StateDigest() {
  Digest digest;
  step_.AddToDigest(&digest);
  auto words = digest.ToWords();
  ELASTOR_RETURN_IF_ERROR(parts_.communicator->AllReduceSum(Phase::kMetrics, words));
  digest = Digest::FromWords(words);
  // The control record: what besides weights and slots decides how the run would go on.
  const int64_t control[] = {step_.steps(), step_.steps() / batches_.steps_per_epoch(),
                             step_.steps() % batches_.steps_per_epoch(),
                             experiment_.training().seed()};
  digest.Add("control", 0, control, sizeof(control));
  return digest.Hex();
}

// The model, then the summary: a folder with a summary is a whole run.
Status Run::Finish() {
  ELASTOR_ASSIGN_OR_RETURN(const std::string digest, StateDigest());
  const int64_t epochs = step_.steps() / batches_.steps_per_epoch();
  const ModelFacts facts = {step_.steps(), epochs, digest, NumericsFingerprint(),
                            parts_.ModelHash()};
  ELASTOR_RETURN_IF_ERROR(SaveModel(options_.output_dir + "/" + kModelDirectory, facts,
                                    parts_.Weights(), *parts_.communicator));

  ELASTOR_ASSIGN_OR_RETURN(Summary summary, parts_.MakeSummary());
  summary.split = evaluated_.split;
  summary.auc = evaluated_.metrics.auc;
  if (!evaluated_.split.empty()) summary.logloss = evaluated_.metrics.logloss;
  summary.steps = step_.steps();
  summary.epochs = epochs;
  summary.samples_per_s = static_cast<double>(train_rows_) / train_seconds_;
  summary.state_digest = digest;
  summary.spectrum = spectrum_;
  return AgreeOnStatus(*parts_.communicator, log_.Finish(summary));
}

Status PrintDescription(const TrainerOptions& options, Communicator& communicator) {
  DatasetInfo info = AssumedData(options.experiment.data().shape());
  if (const std::string& path = options.experiment.data().path(); !path.empty()) {
    ELASTOR_ASSIGN_OR_RETURN(std::unique_ptr<Dataset> dataset, Dataset::Open(path));
    info = dataset->info();
  }
  ELASTOR_ASSIGN_OR_RETURN(const std::string text,
                           Describe(options.experiment, info, options.describe_ranks));
  if (communicator.rank() == 0) std::fputs(text.c_str(), stdout);
  return OkStatus();
}

}  // namespace

Status RunTrainer(const TrainerOptions& options, Communicator& communicator) {
  if (options.mode == "describe") return PrintDescription(options, communicator);
  if (options.mode != "train") {
    return RunInference({.experiment = options.experiment,
                         .model_dir = options.model_dir,
                         .output_dir = options.output_dir,
                         .split = options.split,
                         .predict = options.mode == "predict"},
                        communicator);
  }
  ELASTOR_ASSIGN_OR_RETURN(
      const std::unique_ptr<RunParts> parts,
      RunParts::Open({.experiment = options.experiment, .output_dir = options.output_dir},
                     &communicator));
  return Run(options, parts.get()).Train();
}

}  // namespace elastor
