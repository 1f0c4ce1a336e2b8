#include "trainer/training_run.h"

#include <algorithm>
#include <cstdio>
#include <limits>
#include <utility>

#include "core/base/clock.h"
#include "trainer/run_setup.h"
#include "trainer/train_step.h"

namespace elastor {
namespace {

constexpr char kModelDirectory[] = "model";

// What a rank can ask of all in a step's scalars.
enum Request { kStop, kWriteCheckpoint, kCheckpointWritten };

double MonitoredMetric(MonitorConfig::Metric metric, const MetricValues& values) {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  if (metric == MonitorConfig::LOGLOSS) return values.logloss;
  return (metric == MonitorConfig::GAUC ? values.gauc : values.auc).value_or(kNone);
}

const char* MetricName(MonitorConfig::Metric metric) {
  if (metric == MonitorConfig::LOGLOSS) return "logloss";
  return metric == MonitorConfig::GAUC ? "gauc" : "auc";
}

Status CheckMonitor(const TrainingConfig& training, const Dataset& dataset) {
  const MonitorConfig& monitor = training.monitor();
  const bool monitored = monitor.best_weights() || monitor.early_stop_patience() > 0 ||
                         training.schedule().plateau_factor() > 0;
  if (!monitored) return OkStatus();
  if (dataset.rows(Split::kValidation) == 0) {
    return UserError(
        "training.monitor: the data set has no validation rows; expected some, for early stop, "
        "plateaus and best weights");
  }
  if (monitor.metric() == MonitorConfig::GAUC && !dataset.info().has_groups) {
    return UserError(
        "training.monitor.metric: GAUC, but the data set has no groups; expected AUC or LOGLOSS");
  }
  return OkStatus();
}

}  // namespace

TrainingRun::TrainingRun(const Options& options, RunParts* parts)
    : options_(options),
      experiment_(parts->experiment),
      parts_(*parts),
      log_(*parts->log),
      checkpoints_(options.output_dir, parts) {}

int64_t TrainingRun::PlannedSteps() const {
  const int64_t limit = experiment_.training().max_steps();
  return limit > 0 ? std::min(limit, control_->total_steps()) : control_->total_steps();
}

bool TrainingRun::AtEnd() const {
  return stopped_ || control_->finished() || step() >= PlannedSteps();
}

int64_t TrainingRun::Requests() const {
  int64_t requests = 0;
  if (signals_.received() != 0) requests |= 1 << kStop;
  if (parts_.communicator->rank() == 0 && checkpoints_.DueByTime()) {
    requests |= 1 << kWriteCheckpoint;
  }
  if (checkpoints_.Written()) requests |= 1 << kCheckpointWritten;
  return requests;
}

Status TrainingRun::Train() {
  ELASTOR_RETURN_IF_ERROR(CheckMonitor(experiment_.training(), *parts_.dataset));
  ELASTOR_ASSIGN_OR_RETURN(const ControlRecord record, Begin());
  const int64_t batch_rows = experiment_.training().batch_size();
  control_ = std::make_unique<Control>(
      experiment_.optimizer(), experiment_.training(),
      Control::Epoch{parts_.dataset->rows(Split::kTrain), batch_rows}, record);
  parts_.step().set_steps(record.step());
  parts_.step().set_optimizer_step_offset(record.optimizer_step_offset());
  batches_ = std::make_unique<BatchSource>(
      parts_.dataset.get(), MakeRowOrder(experiment_),
      BatchSource::Options{.batch_rows = batch_rows,
                           .leaves = experiment_.parallel().virtual_shards(),
                           .epochs = experiment_.training().epochs(),
                           .first_step = record.step(),
                           .rank = parts_.communicator->rank(),
                           .ranks = parts_.communicator->size(),
                           .readers = experiment_.data().reader_threads()});
  if (step() == 0 && experiment_.evaluation().at_start()) {
    ELASTOR_RETURN_IF_ERROR(Evaluate(Split::kValidation, /*scheduled=*/false));
  }
  ELASTOR_RETURN_IF_ERROR(TrainSteps());
  ELASTOR_RETURN_IF_ERROR(WriteLastCheckpoint());
  if (stopped_) {
    return StoppedBySignal("stopped by a signal at step " + std::to_string(step()) +
                           (experiment_.checkpoint().disabled()
                                ? "; checkpoint.disabled: nothing was saved"
                                : "; --resume continues from there"));
  }
  return Finish();
}

StatusOr<ControlRecord> TrainingRun::Begin() {
  if (!options_.checkpoint.empty()) return Continue();
  ControlRecord record = Control::NewRecord(experiment_.training());
  const WarmStartConfig& warm_start = experiment_.training().warm_start();
  if (warm_start.path().empty()) return record;
  ELASTOR_ASSIGN_OR_RETURN(const WarmStartReport report,
                           WarmStart(warm_start, parts_.State(), *parts_.communicator));
  parts_.step().WeightsChanged();
  log_.ShowLine(warm_start.path() + ": " + std::to_string(report.taken.size()) +
                " tensors and tables taken, " + std::to_string(report.left.size()) +
                " left there, " + std::to_string(report.fresh.size()) + " begin anew");
  record.set_warm_start_digest(report.facts.state_digest);
  if (warm_start.optimizer_state()) {
    record.set_optimizer_step_offset(report.facts.control.step() +
                                     report.facts.control.optimizer_step_offset());
  }
  return record;
}

StatusOr<ControlRecord> TrainingRun::Continue() {
  const Clock::time_point start = Clock::now();
  ELASTOR_ASSIGN_OR_RETURN(const CheckpointFacts facts,
                           LoadCheckpoint(options_.checkpoint, Contents::kState, parts_.Identity(),
                                          parts_.State(), *parts_.communicator));
  parts_.step().WeightsChanged();
  if (experiment_.training().monitor().best_weights()) {
    ELASTOR_RETURN_IF_ERROR(checkpoints_.CheckBest(facts.control));
  }
  checkpoints_.ContinueFrom(facts);
  char seconds[32];
  std::snprintf(seconds, sizeof(seconds), "%.1f", SecondsSince(start));
  log_.ShowLine("continuing at step " + std::to_string(facts.control.step()) + " from " +
                options_.checkpoint + ", read in " + seconds + " s");
  return facts.control;
}

Status TrainingRun::TrainSteps() {
  LocalBatch batch;
  LocalBatch next;
  if (!AtEnd()) ELASTOR_RETURN_IF_ERROR(batches_->Next(&batch));
  while (!AtEnd()) {
    const bool more = step() + 1 < PlannedSteps();
    if (more) ELASTOR_RETURN_IF_ERROR(batches_->Next(&next));
    ELASTOR_RETURN_IF_ERROR(RunStep(batch, more ? &next : nullptr));
    std::swap(batch, next);
  }
  return OkStatus();
}

Status TrainingRun::RunStep(const LocalBatch& batch, const LocalBatch* next) {
  const Clock::time_point start = Clock::now();
  ELASTOR_ASSIGN_OR_RETURN(const StepResult result,
                           parts_.step().Run(batch, next, control_->LearningRate(), Requests()));
  control_->StepDone();
  train_seconds_ += SecondsSince(start);
  train_rows_ += batch.global_rows;
  return AfterStep(result);
}

Status TrainingRun::AfterStep(const StepResult& result) {
  stopped_ = result.requests[kStop] > 0;
  // Before an evaluation begins another one, of which the request does not speak.
  if (result.requests[kCheckpointWritten] == parts_.communicator->size()) {
    ELASTOR_RETURN_IF_ERROR(checkpoints_.Finish());
  }
  if (Due(experiment_.training().log_every_steps()) || step() == PlannedSteps()) {
    ELASTOR_RETURN_IF_ERROR(LogStep(result));
  }
  if (control_->EvaluationDue()) ELASTOR_RETURN_IF_ERROR(ScheduledEvaluation());
  if (!experiment_.spectrum().disabled() && Due(experiment_.spectrum().every_steps()) && !AtEnd()) {
    ELASTOR_RETURN_IF_ERROR(MeasureSpectrum());
  }
  const bool due =
      Due(experiment_.checkpoint().every_steps()) || result.requests[kWriteCheckpoint] > 0;
  if (!due || AtEnd() || experiment_.checkpoint().disabled()) return OkStatus();
  return checkpoints_.Start(control_->record());
}

Status TrainingRun::LogStep(const StepResult& result) {
  const StepTimes& now = parts_.step().times();
  const StepTimes& then = logged_times_;
  TrainRecord record;
  record.step = step();
  record.epoch = (step() - 1) / batches_->steps_per_epoch();
  record.loss = result.loss;
  record.l2 = result.l2;
  record.learning_rate = control_->record().learning_rate();
  record.gradient_norm = result.gradient_norm;
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

// The only evaluation that decides anything.
Status TrainingRun::ScheduledEvaluation() {
  if (parts_.dataset->rows(Split::kValidation) == 0) return OkStatus();
  ELASTOR_RETURN_IF_ERROR(Evaluate(Split::kValidation, /*scheduled=*/true));
  const MonitorConfig& monitor = experiment_.training().monitor();
  const bool best = control_->Evaluated(MonitoredMetric(monitor.metric(), evaluated_.metrics));
  if (!best || !monitor.best_weights()) return OkStatus();
  return checkpoints_.StartBest(control_->record());
}

Status TrainingRun::Evaluate(Split split, bool scheduled) {
  if (parts_.dataset->rows(split) == 0) return OkStatus();
  ELASTOR_ASSIGN_OR_RETURN(const MetricValues metrics, parts_.evaluation().Measure(split, {}));
  if (split == Split::kValidation) evaluated_step_ = step();
  evaluated_ = {SplitName(split), step(), metrics, scheduled};
  return log_.Append(evaluated_);
}

Status TrainingRun::MeasureSpectrum() {
  if (parts_.dataset->rows(Split::kValidation) == 0) return OkStatus();
  ELASTOR_ASSIGN_OR_RETURN(spectrum_, parts_.evaluation().MeasureSpectrum(
                                          Split::kValidation, experiment_.spectrum().samples()));
  for (const SpectrumRecord& record : spectrum_) ELASTOR_RETURN_IF_ERROR(log_.Append(record));
  return OkStatus();
}

Status TrainingRun::WriteLastCheckpoint() {
  if (!experiment_.checkpoint().disabled() && checkpoints_.last_step() != step()) {
    ELASTOR_RETURN_IF_ERROR(checkpoints_.Start(control_->record()));
  }
  return checkpoints_.Finish();
}

// The model, then the summary: a folder with a summary is a whole run.
Status TrainingRun::Finish() {
  const ControlRecord& control = control_->record();
  std::string digest = checkpoints_.last_digest();
  if (checkpoints_.last_step() != step()) {
    ELASTOR_ASSIGN_OR_RETURN(digest, StateDigest(control, parts_.State(), *parts_.communicator));
  }
  const MonitorConfig& monitor = experiment_.training().monitor();
  const bool restored =
      monitor.best_weights() && control.has_best() && control.best_step() != control.step();
  if (restored) ELASTOR_RETURN_IF_ERROR(checkpoints_.RestoreBest(control));
  if (!experiment_.spectrum().disabled()) ELASTOR_RETURN_IF_ERROR(MeasureSpectrum());
  if (restored || evaluated_step_ != step() || options_.split != Split::kValidation) {
    ELASTOR_RETURN_IF_ERROR(Evaluate(options_.split, /*scheduled=*/false));
  }
  CheckpointFacts facts = parts_.MakeFacts(Contents::kWeights, control);
  facts.state_digest = digest;
  CheckpointWriter model(parts_.State(), /*staging_bytes=*/0, parts_.communicator);
  ELASTOR_RETURN_IF_ERROR(model.Start(options_.output_dir + "/" + kModelDirectory, facts));
  ELASTOR_RETURN_IF_ERROR(model.Finish().status());

  ELASTOR_ASSIGN_OR_RETURN(Summary summary, parts_.MakeSummary());
  summary.split = evaluated_.split;
  summary.auc = evaluated_.metrics.auc;
  summary.gauc = evaluated_.metrics.gauc;
  if (!evaluated_.split.empty()) summary.logloss = evaluated_.metrics.logloss;
  summary.steps = control.step();
  summary.epochs = control.epoch();
  if (control.has_best()) {
    summary.monitor = MetricName(monitor.metric());
    summary.best_step = control.best_step();
    summary.best_metric = control.best_metric();
  }
  summary.early_stopped = control.stopped_early();
  if (train_seconds_ > 0) {
    summary.samples_per_s = static_cast<double>(train_rows_) / train_seconds_;
  }
  summary.state_digest = digest;
  summary.spectrum = spectrum_;
  return AgreeOnStatus(*parts_.communicator, log_.Finish(summary));
}

}  // namespace elastor
