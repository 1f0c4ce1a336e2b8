#include "trainer/run_checkpoints.h"

#include "core/base/file.h"

namespace elastor {

RunCheckpoints::RunCheckpoints(const std::string& output_dir, RunParts* parts)
    : config_(parts->experiment.checkpoint()),
      directory_(Directory(output_dir)),
      parts_(*parts),
      writer_(parts->State(), config_.staging_bytes(), parts->communicator),
      due_since_(Clock::now()) {
  last_.control.set_step(-1);
}

bool RunCheckpoints::DueByTime() const {
  constexpr double kSecondsPerMinute = 60;
  return config_.every_minutes() > 0 &&
         SecondsSince(due_since_) >= config_.every_minutes() * kSecondsPerMinute;
}

std::string RunCheckpoints::BestPath(const ControlRecord& control) const {
  return directory_ + "/" + BestName(control.best_step());
}

Status RunCheckpoints::Start(const ControlRecord& control) {
  due_since_ = Clock::now();
  return StartWriting(Contents::kState, control, directory_ + "/" + CheckpointName(control.step()));
}

Status RunCheckpoints::StartBest(const ControlRecord& control) {
  return StartWriting(Contents::kWeights, control, BestPath(control));
}

Status RunCheckpoints::StartWriting(Contents contents, const ControlRecord& control,
                                    const std::string& path) {
  ELASTOR_RETURN_IF_ERROR(Finish());
  const Clock::time_point start = Clock::now();
  const bool first_rank = parts_.communicator->rank() == 0;
  ELASTOR_RETURN_IF_ERROR(
      AgreeOnStatus(*parts_.communicator, first_rank ? MakeDirectory(directory_) : OkStatus()));
  path_ = path;
  facts_ = parts_.MakeFacts(contents, control);
  ELASTOR_RETURN_IF_ERROR(writer_.Start(path, facts_));
  blocked_seconds_ = SecondsSince(start);
  started_ = Clock::now();
  return OkStatus();
}

Status RunCheckpoints::Finish() {
  if (!writer_.active()) return OkStatus();
  const Clock::time_point start = Clock::now();
  ELASTOR_ASSIGN_OR_RETURN(facts_, writer_.Finish());
  Status done;
  if (facts_.contents == Contents::kState) {
    last_ = facts_;
    done = parts_.log->Append(
        CheckpointRecord{.step = facts_.control.step(),
                         .digest = facts_.state_digest,
                         .path = path_,
                         .blocked_seconds = blocked_seconds_ + SecondsSince(start),
                         .write_seconds = SecondsSince(started_)});
  }
  if (done.ok() && parts_.communicator->rank() == 0) {
    done = RemoveOldCheckpoints(directory_, config_.keep(), facts_.control.best_step());
  }
  return AgreeOnStatus(*parts_.communicator, done);
}

Status RunCheckpoints::CheckBest(const ControlRecord& control) const {
  const bool reads = control.has_best() && parts_.communicator->rank() == 0;
  return AgreeOnStatus(*parts_.communicator,
                       reads ? ReadCheckpointFacts(BestPath(control)).status() : OkStatus());
}

Status RunCheckpoints::RestoreBest(const ControlRecord& control) {
  ELASTOR_RETURN_IF_ERROR(Finish());
  ELASTOR_RETURN_IF_ERROR(LoadCheckpoint(BestPath(control), Contents::kWeights, parts_.Identity(),
                                         parts_.State(), *parts_.communicator)
                              .status());
  parts_.step().WeightsChanged();
  return OkStatus();
}

}  // namespace elastor
