#include "trainer/trainer.h"

#include <cstdio>
#include <memory>
#include <utility>

#include "glog/logging.h"
#include "trainer/checkpoint/checkpoint.h"
#include "trainer/config.h"
#include "trainer/describe.h"
#include "trainer/inference.h"
#include "trainer/run_checkpoints.h"
#include "trainer/run_parts.h"
#include "trainer/run_setup.h"
#include "trainer/training_run.h"

namespace elastor {
namespace {

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

Status PrintVerification(const std::string& path, Communicator& communicator) {
  ELASTOR_ASSIGN_OR_RETURN(const CheckpointFacts facts, VerifyCheckpoint(path, communicator));
  if (communicator.rank() == 0) {
    std::printf("%s: whole\n  contents: %s\n  step: %lld\n  state digest: %s\n  numerics: %s\n",
                path.c_str(),
                facts.contents == Contents::kState ? "training state" : "model weights",
                static_cast<long long>(facts.control.step()), facts.state_digest.c_str(),
                facts.numerics.c_str());
  }
  return OkStatus();
}

// Whether a run of this experiment may go on from a checkpoint.
Status CheckContinuation(const std::string& path, const CheckpointFacts& facts,
                         const Experiment& experiment) {
  if (facts.contents != Contents::kState) {
    return UserError(path + ": holds model weights; expected a training state");
  }
  ELASTOR_ASSIGN_OR_RETURN(const Experiment stored, ParseExperiment(facts.experiment, path));
  ELASTOR_ASSIGN_OR_RETURN(const Experiment trained, CompleteStored(stored));
  const std::string difference = NumericDifference(experiment, trained);
  if (!difference.empty()) {
    return UserError(difference + ", as in the checkpoint " + path +
                     ": a field that changes results must stay as it was");
  }
  ELASTOR_ASSIGN_OR_RETURN(const std::unique_ptr<Dataset> dataset,
                           Dataset::Open(experiment.data().path()));
  if (dataset->fingerprint() != facts.data) {
    return UserError("data.path: " + experiment.data().path() + " has the fingerprint " +
                     dataset->fingerprint() + "; expected " + facts.data +
                     ", the data set of the checkpoint " + path);
  }
  return OkStatus();
}

// Where a run goes on.
struct Continuation {
  std::string checkpoint;  // empty: at its beginning
  int64_t step = 0;
};

// This rank only.
StatusOr<Continuation> FindContinuation(const TrainerOptions& options) {
  Continuation found;
  ELASTOR_ASSIGN_OR_RETURN(found.checkpoint,
                           LastCheckpoint(RunCheckpoints::Directory(options.output_dir)));
  if (found.checkpoint.empty()) return found;
  ELASTOR_ASSIGN_OR_RETURN(const CheckpointFacts facts, ReadCheckpointFacts(found.checkpoint));
  ELASTOR_RETURN_IF_ERROR(CheckContinuation(found.checkpoint, facts, options.experiment));
  if (facts.numerics != options.numerics) {
    LOG(WARNING) << found.checkpoint << ": trained under the numerics '" << facts.numerics
                 << "'; here they are '" << options.numerics << "': bits may differ";
  }
  found.step = facts.control.step();
  return found;
}

// What rank 0 finds, on every rank: a thousand readers would ask a file system for one file.
StatusOr<Continuation> AgreeOnContinuation(const TrainerOptions& options,
                                           Communicator& communicator) {
  StatusOr<Continuation> found = Continuation();
  if (communicator.rank() == 0) found = FindContinuation(options);
  ELASTOR_RETURN_IF_ERROR(AgreeOnStatus(communicator, found.status()));
  ELASTOR_RETURN_IF_ERROR(BroadcastText(communicator, Phase::kSetup, 0, &found->checkpoint));
  ELASTOR_RETURN_IF_ERROR(
      communicator.Broadcast(Phase::kSetup, &found->step, sizeof(found->step), 0));
  return found;
}

Status Train(const TrainerOptions& options, Communicator& communicator) {
  RunParts::Options parts_options = {.experiment = options.experiment,
                                     .output_dir = options.output_dir,
                                     .device = options.device,
                                     .numerics = options.numerics};
  Continuation continuation;
  if (options.resume) {
    ELASTOR_ASSIGN_OR_RETURN(continuation, AgreeOnContinuation(options, communicator));
    parts_options.continue_from = continuation.step;
  }
  ELASTOR_ASSIGN_OR_RETURN(const std::unique_ptr<RunParts> parts,
                           RunParts::Open(parts_options, &communicator));
  if (options.resume && continuation.checkpoint.empty()) {
    parts->log->ShowLine("--resume: no checkpoint in " +
                         RunCheckpoints::Directory(options.output_dir) +
                         "; starting from the beginning");
  }
  TrainingRun run({.output_dir = options.output_dir,
                   .split = options.split,
                   .checkpoint = continuation.checkpoint},
                  parts.get());
  return run.Train();
}

}  // namespace

Status RunTrainer(const TrainerOptions& options, Communicator& communicator) {
  if (options.mode == "describe") return PrintDescription(options, communicator);
  if (options.mode == "verify") return PrintVerification(options.model_dir, communicator);
  if (options.mode == "train") return Train(options, communicator);
  return RunInference({.experiment = options.experiment,
                       .model_dir = options.model_dir,
                       .output_dir = options.output_dir,
                       .split = options.split,
                       .predict = options.mode == "predict",
                       .device = options.device,
                       .numerics = options.numerics,
                       .spectra = options.mode == "spectra"},
                      communicator);
}

}  // namespace elastor
