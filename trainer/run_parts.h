#ifndef ELASTOR_TRAINER_RUN_PARTS_H_
#define ELASTOR_TRAINER_RUN_PARTS_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "collective/communicator.h"
#include "configs/proto/experiment.pb.h"
#include "core/base/clock.h"
#include "core/base/status.h"
#include "core/base/thread_pool.h"
#include "core/models/model.h"
#include "embedding/shard_plan.h"
#include "embedding/table.h"
#include "trainer/checkpoint/checkpoint.h"
#include "trainer/data/dataset.h"
#include "trainer/evaluation.h"
#include "trainer/run_log.h"
#include "trainer/run_records.h"
#include "trainer/step_parts.h"

namespace elastor {

// What a run of any mode is made of on one rank, built in the order below. The weights are the
// initial ones.
struct RunParts {
  enum class Purpose {
    kTrain,
    kInfer,  // no optimizer slots are kept
  };
  struct Options {
    Experiment experiment;                      // resolved and valid
    std::string output_dir;                     // a new directory, unless the run continues
    std::optional<int64_t> continue_from = {};  // steps that the run has done
    Purpose purpose = Purpose::kTrain;
    Split split = Split::kTrain;  // must have rows
    RunDevice device = RunDevice::kCpu;
    std::string numerics = {};  // NumericsFingerprint of the device
  };
  // Collective; all ranks return the same status. Opens the log before tables are allocated, so
  // that a used directory is told at once. communicator outlives the object.
  static StatusOr<std::unique_ptr<RunParts>> Open(const Options& options,
                                                  Communicator* communicator);

  RunParts(const Options& options, Communicator* communicator, std::unique_ptr<Dataset> dataset,
           ShardPlan plan, std::unique_ptr<RunLog> log);

  // Collective. The part of the summary that is alike for all modes, up to now.
  StatusOr<Summary> MakeSummary();
  // To be read; or written, with step().WeightsChanged() afterwards.
  StateView State() {
    return {&model->parameters(), [this] { return step().weights(); }, step().optimizer(), &tables,
            compute_->embedding()};
  }
  Step<float>& step() const { return *compute_->step(); }
  Evaluation& evaluation() { return *evaluation_; }
  // Of what is saved now; without the digest.
  CheckpointFacts MakeFacts(Contents contents, const ControlRecord& control) const;
  ModelIdentity Identity() const { return {experiment, dataset->info()}; }

  const Clock::time_point start = Clock::now();
  const Experiment experiment;
  const std::string numerics;
  Communicator* const communicator;
  const std::unique_ptr<Dataset> dataset;
  const ShardPlan plan;
  const std::unique_ptr<RunLog> log;
  const std::vector<TableSpec> tables;
  ThreadPool pool;
  const std::unique_ptr<Model<float>> model;

 private:
  // The last part of Open.
  Status MakeStep(const Options& options);

  std::unique_ptr<StepParts> compute_;
  std::optional<Evaluation> evaluation_;
};

}  // namespace elastor

#endif  // ELASTOR_TRAINER_RUN_PARTS_H_
