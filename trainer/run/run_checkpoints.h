#ifndef ELASTOR_TRAINER_RUN_RUN_CHECKPOINTS_H_
#define ELASTOR_TRAINER_RUN_RUN_CHECKPOINTS_H_

#include <cstdint>
#include <functional>
#include <string>

#include "configs/proto/control.pb.h"
#include "core/base/clock.h"
#include "core/base/status.h"
#include "trainer/checkpoint/checkpoint.h"
#include "trainer/records/run_files.h"
#include "trainer/run/run_context.h"

namespace elastor {

// Point from which a resumed run continues.
struct Continuation {
  std::string checkpoint;  // empty: at its beginning
  int64_t step = 0;
};
// Returns the last checkpoint of options.output_dir. User error unless a run of options.experiment
// may continue from it. Rank 0 looks for all ranks, so that a thousand ranks do not ask a file
// system for one file. Collective.
StatusOr<Continuation> FindContinuation(const RunOptions& options, Communicator& communicator);

// Checks that a new run of options.experiment may go on from the state of another run that
// training.continued_from names, if it names one. Rank 0 looks. User error in one line. Collective.
Status CheckContinuedFrom(const RunOptions& options, Communicator& communicator);

// Writes the checkpoints of a training run into output_dir/checkpoints while training goes on. They
// are training states, full ones and deltas, every so many steps or minutes, of which the last few
// stay, and the weights of the best evaluation. Collective: every rank makes the same calls, and
// all return the same status.
class RunCheckpoints {
 public:
  // before_naming: called on all ranks before a checkpoint gets its name, which it does not get on
  // error. context outlives the object.
  RunCheckpoints(const std::string& output_dir, std::function<Status()> before_naming,
                 RunContext* context);

  static std::string Directory(const std::string& output_dir) {
    return output_dir + "/" + kCheckpointsFolder;
  }

  // Tells that the run goes on from the training state that was read from `checkpoint`.
  void ContinueFrom(const std::string& checkpoint, const CheckpointMetadata& metadata);

  // Return whether a checkpoint, or a delta, is due by this rank's clock. Rank 0's clock decides.
  bool DueByTime() const;
  bool DeltaDueByTime() const;
  // Returns whether this rank has written its part of the checkpoint under way.
  bool Written() const { return writer_.active() && writer_.done(); }

  // Starts a checkpoint of the training state at `control`. Training may go on at once.
  Status Start(const ControlRecord& control);
  // Starts the checkpoint as a delta if deltas are asked for and one is worth it
  // (CheckpointWriter::StartDelta).
  Status StartDelta(const ControlRecord& control);
  // Publishes the checkpoint under way, waiting for every rank. Does nothing without one.
  Status Finish();
  // Starts to write the weights of the best evaluation so far.
  Status StartBest(const ControlRecord& control);
  // Writes the best weights of another run, `control`'s, whose state is in `path`, as this run's.
  // The weights in memory are then these.
  Status TakeBest(const std::string& path, const ControlRecord& control);
  // Checks that the best evaluation's weights are there, for a run that needs them at its end.
  Status CheckBest(const ControlRecord& control) const;
  // Replaces the current weights by those of `control`'s best evaluation.
  Status RestoreBest(const ControlRecord& control);

  // Returns whether the last whole training state is the one at `control`, and its digest.
  bool Holds(const ControlRecord& control) const;
  const std::string& last_digest() const { return last_.state_digest; }

 private:
  std::string BestPath(const ControlRecord& control) const;
  enum class Kind { kState, kDelta, kWeights };
  Status StartWriting(Kind kind, const ControlRecord& control, const std::string& path);

  const CheckpointConfig config_;
  const std::string directory_;
  const std::function<Status()> before_naming_;
  RunContext& context_;
  CheckpointWriter writer_;
  Clock::time_point due_since_;        // when the last training state was begun
  Clock::time_point delta_due_since_;  // when it was, or a delta
  CheckpointMetadata last_;            // of step -1: none yet

  // The checkpoint under way.
  std::string path_;
  CheckpointMetadata metadata_;
  Clock::time_point started_;
  double blocked_seconds_ = 0;
};

}  // namespace elastor

#endif  // ELASTOR_TRAINER_RUN_RUN_CHECKPOINTS_H_
