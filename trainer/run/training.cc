#include "trainer/run/training.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "configs/proto/control.pb.h"
#include "core/base/clock.h"
#include "core/base/text.h"
#include "core/kernels/cpu/isa.h"
#include "core/process/claimed_folder.h"
#include "core/process/standard_streams.h"
#include "core/process/stop_signals.h"
#include "trainer/data/batch_source.h"
#include "trainer/data/block_format.h"
#include "trainer/data/data_statistics.h"
#include "trainer/experiment/describe.h"
#include "trainer/experiment/make_options.h"
#include "trainer/experiment/model_choice.h"
#include "trainer/records/record_text.h"
#include "trainer/records/run_files.h"
#include "trainer/run/inference.h"
#include "trainer/run/monitor.h"
#include "trainer/run/pass_watch.h"
#include "trainer/run/run_checkpoints.h"
#include "trainer/run/run_publications.h"
#include "trainer/run/training_control.h"

namespace elastor {
namespace {

// What a rank can ask of all in a step's scalars.
enum Request {
  kStop,
  kWriteCheckpoint,
  kWriteDelta,
  kPublish,
  kCheckpointWritten,
  kReadFailed,
};

// A training run on one rank, from its first step to its summary. Collective: every rank makes the
// same calls, and all return the same status.
class TrainingRun {
 public:
  // checkpoint: where the run continues; empty: at its beginning. options and context outlive the
  // object.
  TrainingRun(const RunOptions& options, const std::string& checkpoint, RunContext* context);

  Status Train();

 private:
  // Refuses what nothing could be decided by and what the end of the run could not write.
  // Whether the data have the times that tables need.
  Status CheckTimes() const;
  Status CheckEnd() const;
  // The state before the first step: initial, of a warm start, or of a checkpoint.
  StatusOr<ControlRecord> Begin();
  StatusOr<ControlRecord> Continue();
  // A new run that goes on from another run's state.
  bool GoesOn() const {
    return checkpoint_.empty() && !experiment_.training().continued_from().path().empty();
  }
  StatusOr<ControlRecord> GoOn();
  StatusOr<CheckpointMetadata> LoadOther();
  Status CheckSomethingIsLeft() const;
  std::unique_ptr<BatchSource> MakeBatches(int64_t first_step) const;
  Status TrainSteps();
  Status BeginWriting();
  Status ShowOpening();
  void WarnOfData();
  void WarnOfIdleSettings();
  Status RunStep(const LocalBatch& batch, const LocalBatch* next);
  Status AfterStep(const StepResult& result);
  Status LogStep(const StepResult& result);
  Status LogTables(bool all);
  void WarnOfPasses();
  void ShowProgress(double loss);
  // What is due after the step just done, or was when the run stopped there.
  Status MeasureWhatIsDue();
  Status ScheduledEvaluation();
  Status EvaluateAtEnd();
  Status Record(EvalRecord evaluated, bool scheduled);
  Status MeasureSpectrum();
  Status WriteLastCheckpoint();
  Status Finish();

  int64_t step() const { return control_->record().step(); }
  int64_t PlannedSteps() const;
  bool AtEnd() const;
  // Whether the end puts weights of an earlier step back.
  bool RestoresBest() const;
  bool Due(int64_t every) const { return every > 0 && step() % every == 0; }
  int64_t Requests() const;

  const RunOptions& options_;
  const std::string checkpoint_;
  const Experiment& experiment_;
  RunContext& context_;
  RunLog& log_;
  RunPublications publications_;
  RunCheckpoints checkpoints_;
  std::unique_ptr<TrainingControl> control_;
  std::unique_ptr<BatchSource> batches_;

  int64_t first_step_ = 0;    // done before this process
  Status read_;               // of the next batch, on this rank
  bool stopped_ = false;      // by a signal to any rank
  double train_seconds_ = 0;  // inside steps
  int64_t train_rows_ = 0;
  double logged_seconds_ = 0;
  int64_t logged_rows_ = 0;
  StepTimes logged_times_;
  // When progress was shown last; loss since then.
  double shown_seconds_ = 0, loss_sum_ = 0;
  int64_t shown_rows_ = 0, loss_steps_ = 0;
  bool told_of_no_metric_ = false;
  int64_t evaluated_step_ = -1;
  EvalRecord evaluated_;  // the last one; without a split: none
  std::vector<SpectrumRecord> spectrum_;
  std::map<int, PassWatch> passes_;  // by table
};

TrainingRun::TrainingRun(const RunOptions& options, const std::string& checkpoint,
                         RunContext* context)
    : options_(options),
      checkpoint_(checkpoint),
      experiment_(context->experiment),
      context_(*context),
      log_(*context->log),
      publications_(options.output_dir, context),
      checkpoints_(
          // A run that goes on from a checkpoint does not publish what came before it.
          options.output_dir, [this] { return publications_.Finish(); }, context) {}

int64_t TrainingRun::PlannedSteps() const {
  const int64_t limit = experiment_.training().max_steps();
  return limit > 0 ? std::min(limit, control_->total_steps()) : control_->total_steps();
}

bool TrainingRun::AtEnd() const {
  return stopped_ || control_->finished() || step() >= PlannedSteps();
}

bool TrainingRun::RestoresBest() const {
  const ControlRecord& control = control_->record();
  return experiment_.training().monitor().best_weights() && control.has_best() &&
         control.best_step() != control.step();
}

int64_t TrainingRun::Requests() const {
  int64_t requests = 0;
  if (StopSignal() != 0) requests |= 1 << kStop;
  if (context_.communicator->rank() == 0) {
    if (checkpoints_.DueByTime()) requests |= 1 << kWriteCheckpoint;
    if (checkpoints_.DeltaDueByTime()) requests |= 1 << kWriteDelta;
    if (publications_.DueByTime()) requests |= 1 << kPublish;
  }
  if (checkpoints_.Written() && publications_.Written()) requests |= 1 << kCheckpointWritten;
  if (!read_.ok()) requests |= 1 << kReadFailed;
  return requests;
}

Status TrainingRun::Train() {
  ELASTOR_RETURN_IF_ERROR(CheckTimes());
  ELASTOR_RETURN_IF_ERROR(CheckEnd());
  if (experiment_.spectrum().ntk_rows() > 0) {
    const Status status = context_.CheckNtk();
    if (!status.ok()) return UserError("spectrum.ntk_rows: " + status.message());
  }
  ELASTOR_ASSIGN_OR_RETURN(const ControlRecord record, Begin());
  control_ = std::make_unique<TrainingControl>(
      experiment_.optimizer(), experiment_.training(),
      TrainingControl::Epoch{context_.dataset->rows(Split::kTrain, MakeRowOrder(experiment_)),
                             experiment_.training().batch_size()},
      record);
  if (GoesOn()) ELASTOR_RETURN_IF_ERROR(CheckSomethingIsLeft());
  first_step_ = record.step();
  context_.step().set_steps(record.step());
  context_.step().set_optimizer_step_offset(record.optimizer_step_offset());
  context_.State().embedding->set_event_time(record.event_time());
  ELASTOR_RETURN_IF_ERROR(
      publications_.Begin(record, [this](int64_t first_step) { return MakeBatches(first_step); }));
  batches_ = MakeBatches(record.step());
  ELASTOR_RETURN_IF_ERROR(TrainSteps());
  ELASTOR_RETURN_IF_ERROR(WriteLastCheckpoint());
  if (stopped_) {
    return StoppedBySignal(
        StrCat("stopped by a signal at step ", step(),
               experiment_.checkpoint().disabled()
                   ? "; checkpoint.disabled: nothing was saved"
                   : "; start the same command again with --resume to go on from there"));
  }
  return Finish();
}

Status TrainingRun::CheckTimes() const {
  if (context_.dataset->info().has_times) return OkStatus();
  for (const TableSpec& table : context_.model.tables) {
    if (!table.rules.by_time()) continue;
    return UserError("data.path: " + experiment_.data().path() +
                     ": no TIME field, by which the eviction of table '" + table.name +
                     "' goes; expected one in the schema, or another policy than TTL_EVENT_TIME");
  }
  return OkStatus();
}

Status TrainingRun::CheckEnd() const {
  Communicator& communicator = *context_.communicator;
  // The statistics are a file that ranks may see differently.
  Status status;
  if (communicator.rank() == 0) {
    status = CheckWeightedRows(experiment_.data().path(), context_.dataset->info());
    if (status.ok()) status = CheckMonitor(experiment_, context_.model.task, *context_.dataset);
  }
  ELASTOR_RETURN_IF_ERROR(AgreeOnStatus(communicator, status));
  if (!options_.predictions) return OkStatus();
  ELASTOR_RETURN_IF_ERROR(CheckPredictions("--predictions", context_));
  if (context_.dataset->rows(options_.split) > 0) return OkStatus();
  return UserError(experiment_.data().path() + ": the " + SplitName(options_.split) +
                   " split has no rows; expected some for --predictions");
}

std::unique_ptr<BatchSource> TrainingRun::MakeBatches(int64_t first_step) const {
  return std::make_unique<BatchSource>(
      context_.dataset.get(), MakeRowOrder(experiment_),
      BatchSource::Options{.batch_rows = experiment_.training().batch_size(),
                           .leaves = experiment_.parallel().virtual_shards(),
                           .epochs = experiment_.training().epochs(),
                           .first_step = first_step,
                           .rank = context_.communicator->rank(),
                           .ranks = context_.communicator->size(),
                           .readers = experiment_.data().reader_threads(),
                           .sequences = context_.model.graph.features().sequences,
                           .stage = context_.id_staging()});
}

StatusOr<ControlRecord> TrainingRun::Begin() {
  if (!checkpoint_.empty()) return Continue();
  if (GoesOn()) return GoOn();
  ControlRecord record = TrainingControl::NewRecord(experiment_.training());
  const WarmStartConfig& warm_start = experiment_.training().warm_start();
  if (warm_start.path().empty()) return record;
  ELASTOR_ASSIGN_OR_RETURN(
      const WarmStartReport report,
      WarmStart(warm_start, context_.dataset->info(), context_.State(), *context_.communicator));
  context_.step().WeightsChanged();
  log_.ShowLine(StrCat(warm_start.path(), ": ", report.taken.size(), " tensors and tables taken, ",
                       report.left.size(), " left there, ", report.fresh.size(), " begin anew"));
  record.set_warm_start_digest(report.metadata.state_digest);
  if (warm_start.optimizer_state()) {
    record.set_optimizer_step_offset(report.metadata.control.step() +
                                     report.metadata.control.optimizer_step_offset());
    record.set_event_time(report.metadata.control.event_time());
  }
  return record;
}

StatusOr<ControlRecord> TrainingRun::Continue() {
  const Clock::time_point start = Clock::now();
  context_.communicator->Enter(Activity::kCheckpointLoad);
  ELASTOR_ASSIGN_OR_RETURN(const CheckpointMetadata metadata,
                           LoadCheckpoint(checkpoint_, Contents::kState, context_.Identity(),
                                          context_.State(), *context_.communicator));
  context_.step().WeightsChanged();
  if (experiment_.training().monitor().best_weights()) {
    ELASTOR_RETURN_IF_ERROR(checkpoints_.CheckBest(metadata.control));
  }
  checkpoints_.ContinueFrom(checkpoint_, metadata);
  char seconds[32];
  std::snprintf(seconds, sizeof(seconds), "%.1f", SecondsSince(start));
  log_.ShowLine(StrCat("continuing at step ", metadata.control.step(), " from ", checkpoint_,
                       ", read in ", seconds, " s"));
  return metadata.control;
}

StatusOr<ControlRecord> TrainingRun::GoOn() {
  context_.communicator->Enter(Activity::kCheckpointLoad);
  ELASTOR_ASSIGN_OR_RETURN(const CheckpointMetadata metadata, LoadOther());
  ControlRecord record = metadata.control;
  record.set_stopped_early(false);  // its patience is larger now
  record.set_continued_digest(metadata.state_digest);
  log_.ShowLine(StrCat("continuing at step ", record.step(), " as a new run from ",
                       experiment_.training().continued_from().path()));
  return record;
}

StatusOr<CheckpointMetadata> TrainingRun::LoadOther() {
  ELASTOR_ASSIGN_OR_RETURN(
      CheckpointMetadata metadata,
      LoadCheckpoint(experiment_.training().continued_from().path(), Contents::kState,
                     context_.Identity(), context_.State(), *context_.communicator));
  context_.step().WeightsChanged();
  return metadata;
}

Status TrainingRun::CheckSomethingIsLeft() const {
  if (!AtEnd()) return OkStatus();
  const TrainingConfig& training = experiment_.training();
  if (control_->finished()) {
    return UserError(StrCat("training.epochs: ", training.epochs(), "; the run before has done ",
                            control_->record().epoch(),
                            ", expected more: --set=training.epochs=N"));
  }
  return UserError(StrCat("training.max_steps: ", training.max_steps(),
                          "; the run before has done ", step(), ", expected more or 0"));
}

Status TrainingRun::TrainSteps() {
  LocalBatch batch;
  LocalBatch next;
  if (!AtEnd()) {
    context_.communicator->Enter(Activity::kDataRead);
    ELASTOR_RETURN_IF_ERROR(AgreeOnStatus(*context_.communicator, batches_->Next(&batch)));
  }
  ELASTOR_RETURN_IF_ERROR(BeginWriting());
  RememberStopSignals();  // from now on there is something to save
  context_.evaluation().StopWhen([] { return StopSignal() != 0; });
  ELASTOR_RETURN_IF_ERROR(MeasureWhatIsDue());
  while (!AtEnd()) {
    const bool more = step() + 1 < PlannedSteps();
    context_.communicator->Enter(Activity::kDataRead);
    if (more) read_ = batches_->Next(&next);
    // A rank that cannot read announces rows it has, for no step on them will come.
    const LocalBatch* const announced = read_.ok() ? &next : &batch;
    ELASTOR_RETURN_IF_ERROR(RunStep(batch, more ? announced : nullptr));
    std::swap(batch, next);
  }
  return OkStatus();
}

// Begins the output files. Every check that can refuse the command has passed.
Status TrainingRun::BeginWriting() {
  context_.communicator->Enter(Activity::kRecords);
  ELASTOR_RETURN_IF_ERROR(context_.BeginLog());
  ELASTOR_RETURN_IF_ERROR(ShowOpening());
  WarnOfData();
  WarnOfIdleSettings();
  if (GoesOn() && experiment_.training().monitor().best_weights() &&
      control_->record().has_best()) {
    // The end must not need the other run's folder.
    ELASTOR_RETURN_IF_ERROR(
        checkpoints_.TakeBest(experiment_.training().continued_from().path(), control_->record()));
    ELASTOR_RETURN_IF_ERROR(LoadOther().status());
  }
  if (step() > 0) return OkStatus();
  if (experiment_.spectrum().at_start() && !experiment_.spectrum().disabled()) {
    ELASTOR_RETURN_IF_ERROR(MeasureSpectrum());
  }
  if (!experiment_.evaluation().at_start()) return OkStatus();
  if (context_.dataset->rows(Split::kValidation) == 0) return OkStatus();
  ELASTOR_ASSIGN_OR_RETURN(EvalRecord evaluated, context_.Evaluate(Split::kValidation, {}));
  return Record(std::move(evaluated), /*scheduled=*/false);
}

// The instruction sets of all ranks' kernels: "v4", or "3 ranks of v4 and 1 of neon".
StatusOr<std::string> IsasOfRanks(Communicator& communicator) {
  int64_t ranks[kIsas] = {};
  ++ranks[static_cast<int>(ActiveIsa())];
  ELASTOR_RETURN_IF_ERROR(communicator.AllReduceSum(Phase::kSetup, ranks));
  std::string text;
  for (int isa = 0; isa < kIsas; ++isa) {
    const char* const name = IsaName(static_cast<Isa>(isa));
    if (ranks[isa] == communicator.size()) return std::string(name);
    if (ranks[isa] == 0) continue;
    text += (text.empty() ? CountText(ranks[isa], "rank") : StrCat(" and ", ranks[isa])) + " of " +
            name;
  }
  return text;
}

// What runs, on what.
Status TrainingRun::ShowOpening() {
  const ParallelConfig& parallel = experiment_.parallel();
  ELASTOR_ASSIGN_OR_RETURN(
      const RunFigures figures,
      DescribeFigures(experiment_, context_.dataset->info(), context_.communicator->size()));
  log_.ShowLine(StrCat("run: ", experiment_.name(), ", ",
                       KindName(*ChosenModel(experiment_.model())), ", ", figures.dense_parameters,
                       " dense and ", figures.embedding_parameters, " embedding parameters"));
  log_.ShowLine("data: " + CountText(context_.dataset->rows(Split::kTrain), "row") + " of " +
                experiment_.data().path());
  ELASTOR_ASSIGN_OR_RETURN(const std::string isas, IsasOfRanks(*context_.communicator));
  char memory[32];
  std::snprintf(memory, sizeof(memory), "%.2g GB", static_cast<double>(figures.sure_bytes) / 1e9);
  log_.ShowLine("plan: " + CountText(PlannedSteps(), "step") + ", " +
                CountText(context_.communicator->size(), "rank") + " of " +
                CountText(parallel.threads(), "thread") + ", " +
                (options_.device == RunDevice::kCuda ? "GPU" : isas) + ", " +
                ParallelConfig::Plan_Name(parallel.plan()) + ", " + memory + " a rank or more");
  return OkStatus();
}

// What `prepare` told, and splits without rows: a run without them is a good run, but somebody may
// wait for what it does not measure.
void TrainingRun::WarnOfData() {
  if (context_.communicator->rank() != 0) return;  // the others have no log
  const std::string& path = experiment_.data().path();
  for (const std::string& line : WarningsOf(path)) {
    log_.ShowLine("warning: " + path + ": " + line);
  }
  const std::string begin = "warning: " + path + ": the ";
  if (context_.dataset->rows(Split::kValidation) == 0) {
    log_.ShowLine(begin + "validation split has no rows: no effective ranks are measured, and no " +
                  (options_.split == Split::kTest ? "AUC and logloss before the end"
                                                  : "AUC and logloss; the summary has none"));
  }
  if (options_.split == Split::kTest && context_.dataset->rows(Split::kTest) == 0) {
    log_.ShowLine(begin + "test split has no rows: --split=test measures nothing at the end");
  }
}

// Settings that a run can have and that are mostly slips.
void TrainingRun::WarnOfIdleSettings() {
  const int64_t warmup = experiment_.training().schedule().warmup_steps();
  if (warmup > control_->total_steps()) {
    log_.ShowLine(StrCat("warning: training.schedule.warmup_steps: ", warmup, "; the run has ",
                         CountText(control_->total_steps(), "step"),
                         ", so the learning rate stays below optimizer.learning_rate"));
  }
  const int64_t batch = experiment_.training().batch_size();
  const int64_t rows = context_.dataset->rows(Split::kTrain, MakeRowOrder(experiment_));
  if (batch > rows) {
    log_.ShowLine(StrCat("warning: training.batch_size: ", batch, "; training has ",
                         CountText(rows, "row"), ", so a step takes all of them"));
  }
  const int64_t shards = experiment_.parallel().virtual_shards();
  const int64_t threads = int64_t{experiment_.parallel().threads()} * context_.communicator->size();
  if (threads > shards) {
    log_.ShowLine(StrCat("warning: parallel.threads: ", threads, " on all ranks; those beyond ",
                         "parallel.virtual_shards, ", shards, ", idle in dense work"));
  }
}

Status TrainingRun::RunStep(const LocalBatch& batch, const LocalBatch* next) {
  const Clock::time_point start = Clock::now();
  ELASTOR_ASSIGN_OR_RETURN(const StepResult result,
                           context_.step().Run(batch, next, control_->LearningRate(), Requests()));
  control_->StepDone(context_.State().embedding->event_time());
  train_seconds_ += SecondsSince(start);
  train_rows_ += batch.global_rows;
  context_.communicator->Enter(Activity::kRecords);
  return AfterStep(result);
}

Status TrainingRun::AfterStep(const StepResult& result) {
  if (result.requests[kReadFailed] > 0) return AgreeOnStatus(*context_.communicator, read_);
  stopped_ = result.requests[kStop] > 0;
  // Before an evaluation begins another one, of which the request does not speak.
  if (result.requests[kCheckpointWritten] == context_.communicator->size()) {
    ELASTOR_RETURN_IF_ERROR(checkpoints_.Finish());
  }
  ELASTOR_RETURN_IF_ERROR(
      publications_.AfterStep(control_->record(), result.requests[kPublish] > 0));
  ShowProgress(result.loss);
  const bool logs = Due(experiment_.training().log_every_steps()) || step() == PlannedSteps();
  if (logs) ELASTOR_RETURN_IF_ERROR(LogStep(result));
  ELASTOR_RETURN_IF_ERROR(LogTables(logs));
  WarnOfPasses();
  control_->SetSpectrumDue(!experiment_.spectrum().disabled() &&
                           Due(experiment_.spectrum().every_steps()));
  ELASTOR_RETURN_IF_ERROR(MeasureWhatIsDue());
  const CheckpointConfig& checkpoint = experiment_.checkpoint();
  if (AtEnd() || checkpoint.disabled()) return OkStatus();
  if (Due(checkpoint.every_steps()) || result.requests[kWriteCheckpoint] > 0) {
    return checkpoints_.Start(control_->record());
  }
  if (Due(checkpoint.delta_every_steps()) || result.requests[kWriteDelta] > 0) {
    return checkpoints_.StartDelta(control_->record());
  }
  return OkStatus();
}

Status TrainingRun::LogStep(const StepResult& result) {
  const StepTimes& now = context_.step().times();
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
  for (int i = 0; i < kStepParts; ++i) {
    const auto part = static_cast<StepPart>(i);
    record.phase_seconds.emplace_back(StepPartName(part), now[part] - then[part]);
  }
  logged_times_ = now;
  logged_rows_ = train_rows_;
  logged_seconds_ = train_seconds_;
  return log_.Append(record);
}

// `all`: tables that lost no row, too.
Status TrainingRun::LogTables(bool all) {
  const StateView state = context_.State();
  for (const auto& keyed : state.embedding->keyed_tables()) {
    if (!all && keyed.evicted == 0) continue;
    const TableSpec& table = (*state.tables)[keyed.table];
    int64_t row_bytes = sizeof(int64_t);
    for (const Column& column :
         ColumnsOf(table, state.embedding->optimizer_kind(), Contents::kState)) {
      row_bytes += column.width * static_cast<int64_t>(sizeof(float));
    }
    std::optional<double> unadmitted;
    if (table.rules.admits() && keyed.occurrences > 0) {
      unadmitted = static_cast<double>(keyed.unadmitted) / static_cast<double>(keyed.occurrences);
    }
    ELASTOR_RETURN_IF_ERROR(log_.Append(TableRecord{.step = step(),
                                                    .table = table.name,
                                                    .rows = keyed.rows,
                                                    .admitted = keyed.admitted,
                                                    .evicted = keyed.evicted,
                                                    .bytes = keyed.rows * row_bytes,
                                                    .unadmitted_share = unadmitted}));
  }
  return OkStatus();
}

void TrainingRun::WarnOfPasses() {
  const StateView state = context_.State();
  for (const auto& keyed : state.embedding->keyed_tables()) {
    const std::string line = passes_[keyed.table].AfterStep((*state.tables)[keyed.table], step(),
                                                            keyed.rows, keyed.evicted);
    if (!line.empty()) log_.ShowLine(line);
  }
}

void TrainingRun::ShowProgress(double loss) {
  loss_sum_ += loss;
  ++loss_steps_;
  if (!log_.ProgressDue() && step() != PlannedSteps()) return;
  log_.ShowProgress({.step = step(),
                     .first_step = first_step_,
                     .total_steps = PlannedSteps(),
                     .epoch = (step() - 1) / batches_->steps_per_epoch(),
                     .epochs = experiment_.training().epochs(),
                     .loss = loss_sum_ / static_cast<double>(loss_steps_),
                     .samples_per_s = static_cast<double>(train_rows_ - shown_rows_) /
                                      (train_seconds_ - shown_seconds_)});
  shown_rows_ = train_rows_;
  shown_seconds_ = train_seconds_;
  loss_sum_ = 0;
  loss_steps_ = 0;
}

Status TrainingRun::MeasureWhatIsDue() {
  Status measured;
  if (control_->EvaluationDue()) measured = ScheduledEvaluation();
  if (measured.ok() && control_->SpectrumDue()) {
    // Finish measures the end's weights. A run that a signal stops goes on after this step.
    if (!control_->finished() && (step() < PlannedSteps() || RestoresBest())) {
      measured = MeasureSpectrum();
    }
    if (measured.ok()) control_->SetSpectrumDue(false);
  }
  if (measured.code() != StatusCode::kStopped) return measured;
  stopped_ = true;
  return OkStatus();
}

// The only evaluation that decides anything.
Status TrainingRun::ScheduledEvaluation() {
  if (context_.dataset->rows(Split::kValidation) == 0) {
    control_->Evaluated(std::numeric_limits<double>::quiet_NaN());
    return OkStatus();
  }
  // Nothing is recorded before all is measured.
  std::optional<EvalRecord> training;
  if (experiment_.evaluation().train_rows() > 0) {
    ELASTOR_ASSIGN_OR_RETURN(training, context_.EvaluateTrainingRows());
  }
  ELASTOR_ASSIGN_OR_RETURN(EvalRecord evaluated, context_.Evaluate(Split::kValidation, {}));
  if (training.has_value()) ELASTOR_RETURN_IF_ERROR(log_.Append(*training));
  ELASTOR_RETURN_IF_ERROR(Record(std::move(evaluated), /*scheduled=*/true));
  const MonitorConfig& monitor = experiment_.training().monitor();
  const double metric = MonitoredMetric(monitor, evaluated_.metrics);
  if (std::isnan(metric) && !std::exchange(told_of_no_metric_, true)) {
    log_.ShowLine(StrCat("warning: the evaluation at step ", step(), " has no ",
                         MetricName(monitor),
                         "; such evaluations decide nothing (training.monitor.metric)"));
  }
  const bool best = control_->Evaluated(metric);
  if (!best || !monitor.best_weights()) return OkStatus();
  return checkpoints_.StartBest(control_->record());
}

Status TrainingRun::EvaluateAtEnd() {
  const Split split = options_.split;
  if (context_.dataset->rows(split) == 0) return OkStatus();
  ELASTOR_ASSIGN_OR_RETURN(EvalRecord evaluated, options_.predictions
                                                     ? MeasureAndPredict(options_, &context_)
                                                     : context_.Evaluate(split, {}));
  return Record(std::move(evaluated), /*scheduled=*/false);
}

Status TrainingRun::Record(EvalRecord evaluated, bool scheduled) {
  evaluated_ = std::move(evaluated);
  if (evaluated_.split == SplitName(Split::kValidation)) evaluated_step_ = step();
  evaluated_.scheduled = scheduled;
  if (scheduled && !AtEnd()) {
    log_.ShowFrequentLine(ToText(evaluated_));
  } else {
    log_.ShowLine(ToText(evaluated_));
  }
  return log_.Append(evaluated_);
}

// Nothing is recorded before all is measured, as a signal may cut it short.
Status TrainingRun::MeasureSpectrum() {
  context_.communicator->Enter(Activity::kSpectrum);
  ELASTOR_RETURN_IF_ERROR(context_.step().Settle());
  if (context_.dataset->rows(Split::kValidation) == 0) return OkStatus();
  const SpectrumConfig& config = experiment_.spectrum();
  ELASTOR_ASSIGN_OR_RETURN(
      std::vector<SpectrumRecord> spectrum,
      context_.evaluation().MeasureSpectrum(Split::kValidation, config.samples(), {}));
  std::vector<SpectrumRecord> training;
  if (config.training_samples() > 0) {
    ELASTOR_ASSIGN_OR_RETURN(training, context_.evaluation().MeasureSpectrum(
                                           Split::kTrain, config.training_samples(), {}));
  }
  NtkMeasurement ntk;
  if (config.ntk_rows() > 0) {
    ELASTOR_ASSIGN_OR_RETURN(ntk, context_.MeasureNtk(Split::kValidation, config.ntk_rows(), {}));
  }
  spectrum_ = std::move(spectrum);
  for (const SpectrumRecord& record : spectrum_) ELASTOR_RETURN_IF_ERROR(log_.Append(record));
  ELASTOR_RETURN_IF_ERROR(context_.LogScoring(context_.step().steps()));
  for (const NtkRecord& record : ntk.records) ELASTOR_RETURN_IF_ERROR(log_.Append(record));
  for (const SpectrumRecord& record : training) ELASTOR_RETURN_IF_ERROR(log_.Append(record));
  return OkStatus();
}

Status TrainingRun::WriteLastCheckpoint() {
  if (control_->finished() && !RestoresBest()) {
    ELASTOR_RETURN_IF_ERROR(publications_.AtEnd(control_->record()));
  }
  ELASTOR_RETURN_IF_ERROR(publications_.Finish());
  if (!experiment_.checkpoint().disabled() && !checkpoints_.Holds(control_->record())) {
    // A signal may leave little time. A run that is complete leaves a folder that stands alone.
    ELASTOR_RETURN_IF_ERROR(control_->finished() ? checkpoints_.Start(control_->record())
                                                 : checkpoints_.StartDelta(control_->record()));
  }
  return checkpoints_.Finish();
}

// The model, then the summary: a folder with a summary is a whole run.
Status TrainingRun::Finish() {
  context_.communicator->Enter(Activity::kFinish);
  context_.evaluation().StopWhen(nullptr);
  if (!experiment_.checkpoint().disabled()) {
    // All is saved, and --resume does what is left.
    ExitOnStopSignals(/*speaks=*/context_.communicator->rank() == 0,
                      /*speaks_of_sigterm=*/context_.communicator->size() == 1);
  }
  const ControlRecord& control = control_->record();
  std::string digest = checkpoints_.last_digest();
  if (!checkpoints_.Holds(control)) {
    ELASTOR_ASSIGN_OR_RETURN(digest,
                             StateDigest(control, context_.State(), *context_.communicator));
  }
  const MonitorConfig& monitor = experiment_.training().monitor();
  const bool restored = RestoresBest();
  if (restored) {
    ELASTOR_RETURN_IF_ERROR(checkpoints_.RestoreBest(control));
    context_.step().set_steps(control.best_step());  // what is measured from here on says so
    if (control_->finished()) ELASTOR_RETURN_IF_ERROR(publications_.AtBest(control));
  }
  if (!experiment_.spectrum().disabled()) ELASTOR_RETURN_IF_ERROR(MeasureSpectrum());
  const bool evaluated = !restored && evaluated_step_ == step();
  if (!evaluated || options_.split != Split::kValidation || options_.predictions) {
    ELASTOR_RETURN_IF_ERROR(EvaluateAtEnd());
  }
  CheckpointMetadata metadata = context_.MakeMetadata(Contents::kWeights, control);
  metadata.state_digest = digest;
  ELASTOR_RETURN_IF_ERROR(AgreeOnStatus(*context_.communicator, log_.CheckInPlace()));
  CheckpointWriter model(context_.State(), /*staging_bytes=*/0, context_.communicator);
  // Vocabularies that are whole since the run began; those of version 2 nobody has looked at.
  const bool verified = context_.dataset->version() >= kPreparedVersion;
  ELASTOR_RETURN_IF_ERROR(model.Start(options_.output_dir + "/" + kModelFolder, metadata,
                                      verified ? experiment_.data().path() : ""));
  ELASTOR_RETURN_IF_ERROR(model.Finish().status());
  ELASTOR_RETURN_IF_ERROR(publications_.Finish());

  ELASTOR_ASSIGN_OR_RETURN(Summary summary, context_.MakeSummary());
  if (options_.predictions) summary.predictions = PredictionsPath(options_);
  if (!evaluated_.split.empty()) context_.AddEvaluation(evaluated_, &summary);
  summary.steps = control.step();
  summary.epochs = control.epoch();
  if (control.has_best()) {
    summary.monitor = MetricName(monitor);
    summary.best_step = control.best_step();
    summary.best_metric = control.best_metric();
  }
  summary.early_stopped = control.stopped_early();
  if (train_seconds_ > 0) {
    summary.samples_per_s = static_cast<double>(train_rows_) / train_seconds_;
  }
  summary.state_digest = digest;
  summary.continued_digest = control.continued_digest();
  summary.spectrum = spectrum_;
  return AgreeOnStatus(*context_.communicator, log_.Finish(summary));
}

// Ranks that outlive their mpirun for a moment still write there: what the folder holds is looked
// at when they have left. Collective; the folder is rank 0's.
StatusOr<std::optional<ClaimedFolder>> ClaimToContinue(const std::string& output_dir,
                                                       Communicator& communicator) {
  constexpr double kPatienceSeconds = 30;
  std::optional<ClaimedFolder> claimed;
  Status status;
  if (communicator.rank() == 0) {
    StatusOr<ClaimedFolder> folder = ClaimedFolder::Claim(output_dir, kPatienceSeconds, [&] {
      WriteToStderr("--output_dir=" + WithoutControls(output_dir) +
                    ": another process is writing there; waiting for its end\n");
    });
    if (folder.ok()) claimed.emplace(std::move(folder).value());
    status = folder.status();
  }
  ELASTOR_RETURN_IF_ERROR(AgreeOnStatus(communicator, status));
  return claimed;
}

}  // namespace

Status RunTraining(const RunOptions& options, Communicator& communicator) {
  Continuation continuation;
  std::optional<ClaimedFolder> claimed;
  if (options.resume) {
    ELASTOR_ASSIGN_OR_RETURN(claimed, ClaimToContinue(options.output_dir, communicator));
    ELASTOR_ASSIGN_OR_RETURN(continuation, FindContinuation(options, communicator));
  }
  if (continuation.checkpoint.empty()) {
    ELASTOR_RETURN_IF_ERROR(CheckContinuedFrom(options, communicator));
  }
  ELASTOR_ASSIGN_OR_RETURN(
      const std::unique_ptr<RunContext> context,
      RunContext::Open(options, continuation.step, &communicator, std::move(claimed)));
  if (options.resume && continuation.checkpoint.empty()) {
    context->log->ShowLine("--resume: no checkpoint in " +
                           RunCheckpoints::Directory(options.output_dir) +
                           "; starting from the beginning");
  }
  TrainingRun run(options, continuation.checkpoint, context.get());
  return run.Train();
}

}  // namespace elastor
