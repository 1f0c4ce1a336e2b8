#include "trainer/run/run_checkpoints.h"

#include <tuple>

#include "core/base/file.h"
#include "core/base/log.h"
#include "core/process/claimed_folder.h"
#include "trainer/experiment/config.h"

namespace elastor {
namespace {

// Whether a run of this experiment may go on from a checkpoint.
Status CheckContinuation(const std::string& path, const CheckpointMetadata& metadata,
                         const Experiment& experiment) {
  if (metadata.contents != Contents::kState) {
    return UserError(path + ": holds model weights; expected a training state");
  }
  ELASTOR_ASSIGN_OR_RETURN(const Experiment stored, ParseExperiment(metadata.experiment, path));
  ELASTOR_ASSIGN_OR_RETURN(const Experiment trained, CompleteStored(stored));
  const std::string difference = NumericDifference(experiment, trained);
  if (!difference.empty()) {
    return UserError(difference + ", as in the checkpoint " + path +
                     ": a field that changes results must stay as it was");
  }
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

StatusOr<Continuation> FindOnThisRank(const RunOptions& options) {
  Continuation found;
  ELASTOR_ASSIGN_OR_RETURN(found.checkpoint,
                           LastCheckpoint(RunCheckpoints::Directory(options.output_dir)));
  if (found.checkpoint.empty()) return found;
  ELASTOR_ASSIGN_OR_RETURN(const CheckpointMetadata metadata,
                           ReadCheckpointMetadata(found.checkpoint));
  ELASTOR_RETURN_IF_ERROR(CheckContinuation(found.checkpoint, metadata, options.experiment));
  if (metadata.numerics != options.numerics) {
    LOG(WARNING) << found.checkpoint << ": trained under the numerics '" << metadata.numerics
                 << "'; here they are '" << options.numerics << "': bits may differ";
  }
  found.step = metadata.control.step();
  return found;
}

// A file that is missing or refused in mid-run is no mistake of the command that began the run.
Status InMidRun(const Status& status) {
  if (status.code() != StatusCode::kUser) return status;
  Status failed = MachineError(status.message());
  if (status.agreed()) failed.set_agreed();
  return failed;
}

bool DueAfter(double minutes, Clock::time_point since) {
  constexpr double kSecondsPerMinute = 60;
  return minutes > 0 && SecondsSince(since) >= minutes * kSecondsPerMinute;
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

RunCheckpoints::RunCheckpoints(const std::string& output_dir, RunContext* context)
    : config_(context->experiment.checkpoint()),
      directory_(Directory(output_dir)),
      context_(*context),
      writer_(context->State(), config_.staging_bytes(), context->communicator),
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

Status RunCheckpoints::RestoreBest(const ControlRecord& control) {
  ELASTOR_RETURN_IF_ERROR(Finish());
  ELASTOR_RETURN_IF_ERROR(LoadCheckpoint(BestPath(control), Contents::kWeights, context_.Identity(),
                                         context_.State(), *context_.communicator)
                              .status());
  context_.step().WeightsChanged();
  return OkStatus();
}

}  // namespace elastor
