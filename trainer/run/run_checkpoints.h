#ifndef ELASTOR_TRAINER_RUN_RUN_CHECKPOINTS_H_
#define ELASTOR_TRAINER_RUN_RUN_CHECKPOINTS_H_

#include <cstdint>
#include <string>

#include "configs/proto/control.pb.h"
#include "core/base/clock.h"
#include "core/base/status.h"
#include "trainer/checkpoint/checkpoint.h"
#include "trainer/run/run_context.h"

namespace elastor {

// Where a run that is resumed goes on.
struct Continuation {
  std::string checkpoint;  // empty: at its beginning
  int64_t step = 0;
};
// The last checkpoint of options.output_dir, when a run of options.experiment may go on from it;
// else a user error. What rank 0 finds, on every rank: a thousand readers would ask a file system
// for one file. Collective.
StatusOr<Continuation> FindContinuation(const RunOptions& options, Communicator& communicator);

// The checkpoints of a training run, in output_dir/checkpoints: training states every so many steps
// or minutes, full ones and deltas, of which the last few stay, and the weights of the best
// evaluation. They are written while training goes on. Collective: every rank makes the same calls;
// all return the same status.
class RunCheckpoints {
 public:
  // context outlives the object.
  RunCheckpoints(const std::string& output_dir, RunContext* context);

  static std::string Directory(const std::string& output_dir) {
    return output_dir + "/checkpoints";
  }

  // The training state that the run goes on from, as it was read from `checkpoint`.
  void ContinueFrom(const std::string& checkpoint, const CheckpointMetadata& metadata);

  // Whether this rank's clock says that a checkpoint, or a delta, is due; rank 0's decides.
  bool DueByTime() const;
  bool DeltaDueByTime() const;
  // Whether this rank has nothing left to write of the checkpoint under way.
  bool Written() const { return writer_.active() && writer_.done(); }

  // Training state at `control`, which goes on at once.
  Status Start(const ControlRecord& control);
  // The same, as a delta where deltas are asked for and one is worth it
  // (CheckpointWriter::StartDelta).
  Status StartDelta(const ControlRecord& control);
  // Publishes what is under way, waiting for every rank. Does nothing when there is none.
  Status Finish();
  // The weights of the best evaluation so far.
  Status StartBest(const ControlRecord& control);
  // Whether they are there, for a run that will want them at its end.
  Status CheckBest(const ControlRecord& control) const;
  // Puts the weights of `control`'s best evaluation in place of the present ones.
  Status RestoreBest(const ControlRecord& control);

  // Of the last whole training state; -1: none yet.
  int64_t last_step() const { return last_.control.step(); }
  const std::string& last_digest() const { return last_.state_digest; }

 private:
  std::string BestPath(const ControlRecord& control) const;
  enum class Kind { kState, kDelta, kWeights };
  Status StartWriting(Kind kind, const ControlRecord& control, const std::string& path);

  const CheckpointConfig config_;
  const std::string directory_;
  RunContext& context_;
  CheckpointWriter writer_;
  Clock::time_point due_since_;        // when the last training state was begun
  Clock::time_point delta_due_since_;  // when it was, or a delta
  CheckpointMetadata last_;

  // Of what is under way.
  std::string path_;
  CheckpointMetadata metadata_;
  Clock::time_point started_;
  double blocked_seconds_ = 0;
};

}  // namespace elastor

#endif  // ELASTOR_TRAINER_RUN_RUN_CHECKPOINTS_H_
