#ifndef ELASTOR_TRAINER_RUN_RUN_CONTEXT_H_
#define ELASTOR_TRAINER_RUN_RUN_CONTEXT_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "collective/communicator.h"
#include "collective/rank_hosts.h"
#include "configs/proto/experiment.pb.h"
#include "core/base/clock.h"
#include "core/base/status.h"
#include "core/base/thread_pool.h"
#include "core/process/claimed_folder.h"
#include "embedding/shard_plan.h"
#include "trainer/checkpoint/checkpoint.h"
#include "trainer/cost/planned_tables.h"
#include "trainer/data/dataset.h"
#include "trainer/evaluate/evaluation.h"
#include "trainer/evaluate/ntk.h"
#include "trainer/evaluate/predictions_file.h"
#include "trainer/evaluate/rank_projection.h"
#include "trainer/experiment/resolved_model.h"
#include "trainer/records/run_records.h"
#include "trainer/run/backend.h"
#include "trainer/run/run_log.h"

namespace elastor {

// Options of the command line. They are the same on every rank.
struct RunOptions {
  std::string mode = "train";  // its name (modes/modes.cc)
  Experiment experiment;       // every default filled in, every field checked (experiment/config.h)
  std::string output_dir;      // a new directory; unused by modes that print
  bool resume = false;         // mode train: output_dir's run goes on from its last checkpoint
  // Folder of the model or checkpoint, for modes that read one. Empty in mode ntk: the initial
  // weights.
  std::string model_dir;
  // The split to evaluate. In mode train: validation or test.
  Split split = Split::kValidation;
  bool predictions = false;  // mode train: the last evaluation writes predictions.csv
  LogitColumn logit = LogitColumn::kLeftOut;  // of predictions.csv
  bool per_sample = false;                    // mode spectra: also the ranks of every row
  int64_t ntk_rows = 0;                       // mode ntk: rows of the split; others: 0
  bool tensorboard = false;                   // the records go into a file for TensorBoard, too
  RunDevice device = RunDevice::kCpu;
  std::string numerics = {};  // NumericsFingerprint of the device

  bool trains() const { return mode == "train"; }
};

// All objects of a training or inference run on one rank, built in the order below. Weights are the
// initial ones. Optimizer slots exist only in mode train.
struct RunContext {
  // Builds the context. Opens the log, which the caller begins, before tables are allocated, so
  // that a used directory is refused at once. steps_done: steps of the run that options.resume
  // continues. claimed: on rank 0, output_dir if the caller has claimed it. communicator outlives
  // the object. Collective; all ranks return the same status.
  static StatusOr<std::unique_ptr<RunContext>> Open(
      const RunOptions& options, int64_t steps_done, Communicator* communicator,
      std::optional<ClaimedFolder> claimed = std::nullopt);

  RunContext(const RunOptions& options, Communicator* communicator,
             std::unique_ptr<Dataset> dataset, ResolvedModel model, PlannedTables planned,
             ShardPlan plan, std::unique_ptr<RunLog> log);

  // Calls RunLog::Begin. Collective.
  Status BeginLog();
  // Returns the part of the summary that all modes share, as of now. Collective.
  StatusOr<Summary> MakeSummary();
  // Evaluates the model as it is now. Collective, as Evaluation::Measure.
  StatusOr<EvalRecord> Evaluate(Split split, const Evaluation::Predicted& predicted);
  // Evaluates it on evaluation.train_rows rows of the training split. Collective.
  StatusOr<EvalRecord> EvaluateTrainingRows();
  // User error if the neural tangent kernel cannot be measured. Collective.
  Status CheckNtk() const;
  // Measures the neural tangent kernel of the model as it is now. Collective, as MeasureNtk of
  // evaluate/ntk.h.
  StatusOr<NtkMeasurement> MeasureNtk(Split split, int64_t rows, const NtkKernelVisit& kernel);
  // Returns the model whose head modes projection and spectra and the training's probes measure.
  ProjectionModel HeadModel() const;
  // Appends the record of the head's scoring matrices at `step` to the log, if there are any.
  Status LogScoring(int64_t step);
  // Adds an evaluation to the summary.
  void AddEvaluation(const EvalRecord& record, Summary* summary) const;
  // Returns the training state, to be read. Whoever writes to it calls step().WeightsChanged()
  // afterwards.
  StateView State() {
    const auto weights = [this]() -> StatusOr<float*> {
      ELASTOR_RETURN_IF_ERROR(step().Settle());
      return step().weights();
    };
    return {&model.graph.parameters(), weights, step().optimizer(), &model.tables,
            backend_->embedding()};
  }
  Step<float>& step() const { return *backend_->step(); }
  ShardedEmbedding<float>* host_embedding() const { return backend_->host_embedding(); }
  IdStaging id_staging() const { return backend_->id_staging(); }
  Evaluation& evaluation() { return *evaluation_; }
  // Returns the metadata of a checkpoint that is saved now, without the digest.
  CheckpointMetadata MakeMetadata(Contents contents, const ControlRecord& control) const;
  ModelIdentity Identity() const { return {experiment, dataset->info()}; }

  const Clock::time_point start = Clock::now();
  const Experiment experiment;
  const std::string numerics;
  const bool tensorboard;
  Communicator* const communicator;
  const std::unique_ptr<Dataset> dataset;
  const PlannedTables planned;  // of plan PLANNED; else empty
  const ShardPlan plan;
  const std::unique_ptr<RunLog> log;
  const ResolvedModel model;
  ThreadPool pool;

 private:
  // Returns the record of all labels' metrics.
  EvalRecord MakeEvalRecord(Split split, int64_t rows, std::vector<MetricValues> labels);
  // The last part of Open.
  Status MakeBackend(const RunOptions& options, RankHosts hosts);

  std::unique_ptr<Backend> backend_;
  std::optional<Evaluation> evaluation_;
  bool told_of_ungrouped_ = false;  // rows without a group
};

}  // namespace elastor

#endif  // ELASTOR_TRAINER_RUN_RUN_CONTEXT_H_
