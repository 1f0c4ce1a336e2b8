#include "trainer/run/run_checkpoints.h"

#include <filesystem>
#include <tuple>
#include <utility>

#include "core/base/file.h"
#include "core/base/log.h"
#include "core/base/numerics.h"
#include "core/base/text.h"
#include "core/process/claimed_folder.h"
#include "trainer/experiment/config.h"
#include "trainer/experiment/make_options.h"

namespace elastor {
namespace {

// Returns the experiment without the fields that a run which goes on from another run's state may
// have otherwise: how long it trains, at which rates, and when it stops.
Experiment WithoutSteering(Experiment experiment) {
  TrainingConfig* training = experiment.mutable_training();
  training->clear_epochs();
  training->clear_eval_every_steps();
  training->clear_schedule();
  training->mutable_monitor()->clear_min_improvement();
  training->mutable_monitor()->clear_early_stop_patience();
  training->clear_continued_from();
  OptimizerConfig kinds;
  kinds.set_dense(experiment.optimizer().dense());
  kinds.set_sparse(experiment.optimizer().sparse());
  *experiment.mutable_optimizer() = kinds;
  return experiment;
}

// Checks that `experiment` differs from the checkpoint's in nothing that must stay.
Status CheckSameRun(const std::string& path, const Experiment& experiment,
                    const Experiment& trained) {
  const std::string difference = NumericDifference(experiment, trained);
  if (difference.empty()) return OkStatus();
  const bool steered =
      NumericDifference(WithoutSteering(experiment), WithoutSteering(trained)).empty();
  return UserError(difference + ", as in the checkpoint " + path +
                   ": a field that changes results must stay as it was" +
                   (steered ? "; a new run with another value goes on by --continue=RUN" : ""));
}

// Checks that a new run of `experiment` may go on from the state that a run of `trained` left.
Status CheckNewRun(const std::string& path, const CheckpointMetadata& metadata,
                   const Experiment& experiment, const Experiment& trained) {
  const std::string& digest = experiment.training().continued_from().state_digest();
  if (metadata.state_digest != digest) {
    return UserError("training.continued_from: " + path + " has the state " +
                     metadata.state_digest + "; expected " + digest);
  }
  const std::string difference =
      NumericDifference(WithoutSteering(experiment), WithoutSteering(trained));
  if (!difference.empty()) {
    return UserError(difference + ", as in the run before, " + path +
                     ": a run that goes on may change epochs, rates, evaluations and patience");
  }
  const ScheduleConfig& schedule = experiment.training().schedule();
  if (schedule.decay() == ScheduleConfig::COSINE && schedule.decay_steps() == 0) {
    return UserError(
        "training.schedule.decay_steps: 0 means all epochs, and steps that are done had other "
        "rates; expected --set=training.schedule.decay_steps=N, or decay=CONSTANT");
  }
  const int64_t patience = experiment.training().monitor().early_stop_patience();
  const int64_t waited = metadata.control.evaluations_without_improvement();
  if (patience > 0 && waited >= patience) {
    return UserError(StrCat("training.monitor.early_stop_patience: ", patience,
                            "; the run before had ", waited,
                            " evaluations without improvement, expected more or 0"));
  }
  return OkStatus();
}

// Whether a run of this experiment may go on from a checkpoint, its own or another run's.
enum class Whose { kOwn, kOther };
Status CheckContinuation(const std::string& path, const CheckpointMetadata& metadata, Whose whose,
                         const Experiment& experiment) {
  if (metadata.contents != Contents::kState) {
    return UserError(path + ": holds model weights; expected a training state");
  }
  ELASTOR_ASSIGN_OR_RETURN(const Experiment stored, ParseExperiment(metadata.experiment, path));
  ELASTOR_ASSIGN_OR_RETURN(const Experiment trained, CompleteStored(stored));
  ELASTOR_RETURN_IF_ERROR(whose == Whose::kOwn ? CheckSameRun(path, experiment, trained)
                                               : CheckNewRun(path, metadata, experiment, trained));
  ELASTOR_ASSIGN_OR_RETURN(const std::unique_ptr<Dataset> dataset,
                           Dataset::Open(experiment.data().path()));
  ELASTOR_RETURN_IF_ERROR(CheckEncoding(path, metadata, {experiment, dataset->info()}));
  if (dataset->fingerprint() != metadata.data) {
    return UserError("data.path: " + experiment.data().path() + " has the fingerprint " +
                     dataset->fingerprint() + "; expected " + metadata.data +
                     ", the data set of the checkpoint " + path);
  }
  return OkStatus();
}

// Returns the steps of the state in `path`, from which the run may go on.
StatusOr<int64_t> CheckedSteps(const std::string& path, Whose whose, const RunOptions& options) {
  ELASTOR_ASSIGN_OR_RETURN(const CheckpointMetadata metadata, ReadCheckpointMetadata(path));
  ELASTOR_RETURN_IF_ERROR(CheckContinuation(path, metadata, whose, options.experiment));
  if (WithoutMachine(metadata.numerics) != WithoutMachine(options.numerics)) {
    LOG(WARNING) << path << ": trained under the numerics '" << metadata.numerics
                 << "'; here they are '" << options.numerics << "': bits may differ";
  }
  return metadata.control.step();
}

StatusOr<Continuation> FindOnThisRank(const RunOptions& options) {
  Continuation found;
  ELASTOR_ASSIGN_OR_RETURN(found.checkpoint,
                           LastCheckpoint(RunCheckpoints::Directory(options.output_dir)));
  if (found.checkpoint.empty()) return found;
  ELASTOR_ASSIGN_OR_RETURN(found.step, CheckedSteps(found.checkpoint, Whose::kOwn, options));
  return found;
}

// A file that is missing or refused in mid-run is no mistake of the command that began the run.
Status InMidRun(const Status& status) {
  if (status.code() != StatusCode::kUser) return status;
  Status failed = MachineError(status.message());
  if (status.agreed()) failed.set_agreed();
  return failed;
}

}  // namespace

StatusOr<Continuation> FindContinuation(const RunOptions& options, Communicator& communicator) {
  StatusOr<Continuation> found = Continuation();
  if (communicator.rank() == 0) found = FindOnThisRank(options);
  ELASTOR_RETURN_IF_ERROR(AgreeOnStatus(communicator, found.status()));
  ELASTOR_RETURN_IF_ERROR(BroadcastText(communicator, Phase::kSetup, 0, &found->checkpoint));
  ELASTOR_RETURN_IF_ERROR(
      communicator.Broadcast(Phase::kSetup, &found->step, sizeof(found->step), 0));
  return found;
}

Status CheckContinuedFrom(const RunOptions& options, Communicator& communicator) {
  const std::string& path = options.experiment.training().continued_from().path();
  if (path.empty()) return OkStatus();
  return AgreeOnStatus(communicator, communicator.rank() == 0
                                         ? CheckedSteps(path, Whose::kOther, options).status()
                                         : OkStatus());
}

RunCheckpoints::RunCheckpoints(const std::string& output_dir, std::function<Status()> before_naming,
                               RunContext* context)
    : config_(context->experiment.checkpoint()),
      directory_(Directory(output_dir)),
      before_naming_(std::move(before_naming)),
      context_(*context),
      writer_(context->State(), StagingBytes(context->experiment), context->communicator),
      due_since_(Clock::now()),
      delta_due_since_(due_since_) {
  last_.control.set_step(-1);
}

void RunCheckpoints::ContinueFrom(const std::string& checkpoint,
                                  const CheckpointMetadata& metadata) {
  last_ = metadata;
  writer_.ContinueFrom(checkpoint, metadata);
}

bool RunCheckpoints::Holds(const ControlRecord& control) const {
  const auto state = [](const ControlRecord& at) {
    return std::tuple(at.step(), at.evaluation_pending(), at.spectrum_pending());
  };
  return state(last_.control) == state(control);
}

bool RunCheckpoints::DueByTime() const { return DueAfter(config_.every_minutes(), due_since_); }

bool RunCheckpoints::DeltaDueByTime() const {
  return DueAfter(config_.delta_every_minutes(), delta_due_since_);
}

std::string RunCheckpoints::BestPath(const ControlRecord& control) const {
  return directory_ + "/" + BestName(control.best_step());
}

Status RunCheckpoints::Start(const ControlRecord& control) {
  due_since_ = delta_due_since_ = Clock::now();
  return StartWriting(Kind::kState, control, directory_ + "/" + CheckpointName(control.step()));
}

Status RunCheckpoints::StartDelta(const ControlRecord& control) {
  delta_due_since_ = Clock::now();
  return StartWriting(Kind::kDelta, control, directory_ + "/" + CheckpointName(control.step()));
}

Status RunCheckpoints::StartBest(const ControlRecord& control) {
  return StartWriting(Kind::kWeights, control, BestPath(control));
}

Status RunCheckpoints::StartWriting(Kind kind, const ControlRecord& control,
                                    const std::string& path) {
  ELASTOR_RETURN_IF_ERROR(Finish());
  const Clock::time_point start = Clock::now();
  Status made = context_.log->CheckInPlace();
  if (made.ok() && context_.communicator->rank() == 0) made = MakeWithin(directory_);
  ELASTOR_RETURN_IF_ERROR(AgreeOnStatus(*context_.communicator, InMidRun(made)));
  path_ = path;
  metadata_ = context_.MakeMetadata(kind == Kind::kWeights ? Contents::kWeights : Contents::kState,
                                    control);
  ELASTOR_RETURN_IF_ERROR(InMidRun(kind == Kind::kDelta ? writer_.StartDelta(path, metadata_)
                                                        : writer_.Start(path, metadata_)));
  blocked_seconds_ = SecondsSince(start);
  started_ = Clock::now();
  return OkStatus();
}

Status RunCheckpoints::Finish() {
  if (!writer_.active()) return OkStatus();
  const Clock::time_point start = Clock::now();
  ELASTOR_RETURN_IF_ERROR(AgreeOnStatus(*context_.communicator, context_.log->CheckInPlace()));
  ELASTOR_RETURN_IF_ERROR(before_naming_());
  const StatusOr<CheckpointMetadata> written = writer_.Finish();
  ELASTOR_RETURN_IF_ERROR(InMidRun(written.status()));
  metadata_ = written.value();
  Status done;
  if (metadata_.contents == Contents::kState) {
    last_ = metadata_;
    done = context_.log->Append(
        CheckpointRecord{.step = metadata_.control.step(),
                         .digest = metadata_.state_digest,
                         .path = path_,
                         .base = metadata_.base ? metadata_.base->name : "",
                         .blocked_seconds = blocked_seconds_ + SecondsSince(start),
                         .write_seconds = SecondsSince(started_)});
  }
  if (done.ok() && context_.communicator->rank() == 0) {
    done = RemoveOldCheckpoints(directory_, config_.keep(), metadata_.control.best_step());
  }
  return AgreeOnStatus(*context_.communicator, done);
}

Status RunCheckpoints::CheckBest(const ControlRecord& control) const {
  const bool reads = control.has_best() && context_.communicator->rank() == 0;
  return AgreeOnStatus(*context_.communicator,
                       reads ? ReadCheckpointMetadata(BestPath(control)).status() : OkStatus());
}

Status RunCheckpoints::TakeBest(const std::string& path, const ControlRecord& control) {
  const std::string best =
      std::filesystem::path(path).parent_path() / BestName(control.best_step());
  ELASTOR_ASSIGN_OR_RETURN(const CheckpointMetadata metadata,
                           LoadCheckpoint(best, Contents::kWeights, context_.Identity(),
                                          context_.State(), *context_.communicator));
  context_.step().WeightsChanged();
  ELASTOR_RETURN_IF_ERROR(StartBest(metadata.control));
  return Finish();
}

Status RunCheckpoints::RestoreBest(const ControlRecord& control) {
  ELASTOR_RETURN_IF_ERROR(Finish());
  ELASTOR_RETURN_IF_ERROR(LoadCheckpoint(BestPath(control), Contents::kWeights, context_.Identity(),
                                         context_.State(), *context_.communicator)
                              .status());
  context_.step().WeightsChanged();
  return OkStatus();
}

}  // namespace elastor
