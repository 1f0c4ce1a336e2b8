#include "trainer/trainer.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <utility>
#include <vector>

#include "core/base/numerics.h"
#include "core/base/thread_pool.h"
#include "trainer/batch_source.h"
#include "trainer/config.h"
#include "trainer/describe.h"
#include "trainer/evaluation.h"
#include "trainer/run_log.h"
#include "trainer/run_setup.h"
#include "trainer/train_step.h"

namespace elastor {
namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Everything one rank needs for a run, built once, in this order.
class Run {
 public:
  static StatusOr<std::unique_ptr<Run>> Make(const TrainerOptions& options,
                                             Communicator* communicator);

  Status Train();

 private:
  Run(const TrainerOptions& options, Communicator* communicator, std::unique_ptr<Dataset> dataset,
      ShardPlan plan);

  Status TrainSteps();
  // The step's record when it is due, an evaluation, a spectrum.
  Status AfterStep(const StepResult& result);
  Status LogStep(const StepResult& result);
  Status Evaluate(Split split);
  Status MeasureSpectrum();
  Status Finish();
  bool Due(int64_t every) const { return every > 0 && step_.steps() % every == 0; }
  int64_t PlannedSteps() const;

  const TrainerOptions& options_;
  const Experiment& experiment_;
  Communicator* communicator_;
  std::unique_ptr<Dataset> dataset_;
  ShardPlan plan_;
  ThreadPool pool_;
  std::unique_ptr<Model<float>> model_;
  ShardedEmbedding<float> embedding_;
  TrainStep<float> step_;
  Evaluation evaluation_;
  BatchSource batches_;
  std::unique_ptr<RunLog> log_;

  Clock::time_point start_ = Clock::now();
  double train_seconds_ = 0;  // inside steps
  int64_t train_rows_ = 0;
  double logged_seconds_ = 0;
  int64_t logged_rows_ = 0;
  StepTimes logged_times_;
  int64_t evaluated_step_ = -1;
  Summary summary_;
};

ShardedEmbedding<float>::Options EmbeddingOptions(const Experiment& experiment,
                                                  const DatasetInfo& data) {
  ShardedEmbedding<float>::Options options;
  options.tables = MakeTables(experiment, data);
  options.fields = MakeFields(data);
  options.optimizer = MakeSparseOptimizer(experiment.optimizer());
  options.seed = experiment.training().seed();
  options.leaves = experiment.parallel().virtual_shards();
  return options;
}

Run::Run(const TrainerOptions& options, Communicator* communicator,
         std::unique_ptr<Dataset> dataset, ShardPlan plan)
    : options_(options),
      experiment_(options.experiment),
      communicator_(communicator),
      dataset_(std::move(dataset)),
      plan_(std::move(plan)),
      pool_(experiment_.parallel().threads()),
      model_(MakeModel<float>(MakeModelSpec(experiment_, dataset_->info()))),
      embedding_(EmbeddingOptions(experiment_, dataset_->info()), &plan_, communicator, &pool_),
      step_(MakeTrainStepOptions(experiment_), model_.get(), &embedding_, communicator, &pool_),
      evaluation_(dataset_.get(), model_.get(), &step_, communicator,
                  experiment_.parallel().virtual_shards(),
                  experiment_.training().eval_batch_size()),
      batches_(dataset_.get(), MakeRowOrder(experiment_),
               {.batch_rows = experiment_.training().batch_size(),
                .leaves = experiment_.parallel().virtual_shards(),
                .epochs = experiment_.training().epochs(),
                .rank = communicator->rank(),
                .ranks = communicator->size()}) {}

StatusOr<std::unique_ptr<Dataset>> OpenTrainingData(const TrainerOptions& options) {
  const std::string& path = options.experiment.data().path();
  ELASTOR_ASSIGN_OR_RETURN(std::unique_ptr<Dataset> dataset, Dataset::Open(path));
  if (dataset->rows(Split::kTrain) == 0) {
    return UserError(path + ": the training split has no rows");
  }
  return dataset;
}

StatusOr<std::unique_ptr<Run>> Run::Make(const TrainerOptions& options,
                                         Communicator* communicator) {
  StatusOr<std::unique_ptr<Dataset>> dataset = OpenTrainingData(options);
  ELASTOR_RETURN_IF_ERROR(AgreeOnStatus(*communicator, dataset.status()));
  ELASTOR_ASSIGN_OR_RETURN(
      ShardPlan plan,
      MakePlan(options.experiment, MakeTables(options.experiment, (*dataset)->info()),
               communicator->size()));
  // The log is opened first: a used directory is told before tables are allocated.
  StatusOr<std::unique_ptr<RunLog>> log =
      RunLog::Open(options.output_dir, options.experiment, communicator->rank());
  ELASTOR_RETURN_IF_ERROR(AgreeOnStatus(*communicator, log.status()));
  ELASTOR_RETURN_IF_ERROR(AgreeOnStatus(*communicator, (*log)->WritePlan(plan.ToString())));
  std::unique_ptr<Run> run(
      new Run(options, communicator, std::move(dataset).value(), std::move(plan)));
  run->log_ = std::move(log).value();
  return run;
}

int64_t Run::PlannedSteps() const {
  const int64_t limit = experiment_.training().max_steps();
  return limit > 0 ? std::min(limit, batches_.total_steps()) : batches_.total_steps();
}

Status Run::Train() {
  ELASTOR_RETURN_IF_ERROR(TrainSteps());
  if (!experiment_.spectrum().disabled()) ELASTOR_RETURN_IF_ERROR(MeasureSpectrum());
  ELASTOR_RETURN_IF_ERROR(Evaluate(options_.split == "test" ? Split::kTest : Split::kValidation));
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
  log_->ShowProgress(record, PlannedSteps());
  return log_->Append(record);
}

Status Run::Evaluate(Split split) {
  if (evaluated_step_ == step_.steps() && split == Split::kValidation) return OkStatus();
  if (dataset_->rows(split) == 0) return OkStatus();
  ELASTOR_ASSIGN_OR_RETURN(const MetricValues metrics, evaluation_.Measure(split, {}));
  if (split == Split::kValidation) evaluated_step_ = step_.steps();
  summary_.auc = metrics.auc;
  summary_.logloss = metrics.logloss;
  return log_->Append(EvalRecord{SplitName(split), step_.steps(), metrics});
}

Status Run::MeasureSpectrum() {
  if (dataset_->rows(Split::kValidation) == 0) return OkStatus();
  StatusOr<std::vector<SpectrumRecord>> records =
      evaluation_.MeasureSpectrum(Split::kValidation, experiment_.spectrum().samples());
  if (!records.ok()) return records.status();
  for (const SpectrumRecord& record : *records) ELASTOR_RETURN_IF_ERROR(log_->Append(record));
  summary_.spectrum = std::move(records).value();
  return OkStatus();
}

Status Run::Finish() {
  Digest digest;
  step_.AddToDigest(&digest);
  auto words = digest.ToWords();
  ELASTOR_RETURN_IF_ERROR(communicator_->AllReduceSum(Phase::kMetrics, words));
  digest = Digest::FromWords(words);
  // The control record: what besides weights and slots decides how the run would go on.
  const int64_t control[] = {step_.steps(), step_.steps() / batches_.steps_per_epoch(),
                             step_.steps() % batches_.steps_per_epoch(),
                             experiment_.training().seed()};
  digest.Add("control", 0, control, sizeof(control));

  summary_.name = experiment_.name();
  if (dataset_->info().best_auc >= 0) summary_.best_auc = dataset_->info().best_auc;
  summary_.steps = step_.steps();
  summary_.epochs = step_.steps() / batches_.steps_per_epoch();
  summary_.samples_per_s = static_cast<double>(train_rows_) / train_seconds_;
  summary_.ranks = communicator_->size();
  summary_.virtual_shards = experiment_.parallel().virtual_shards();
  summary_.dense_parameters = model_->parameters().element_count();
  for (const TableSpec& table : MakeTables(experiment_, dataset_->info())) {
    summary_.embedding_parameters += table.rows * table.width;
  }
  summary_.state_digest = digest.Hex();
  summary_.numerics = NumericsFingerprint();
  summary_.numeric_hash = NumericHash(experiment_);
  summary_.wall_s = SecondsSince(start_);
  return AgreeOnStatus(*communicator_, log_->Finish(summary_));
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
  ELASTOR_ASSIGN_OR_RETURN(const std::unique_ptr<Run> run, Run::Make(options, &communicator));
  return run->Train();
}

}  // namespace elastor
