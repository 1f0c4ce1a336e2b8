#ifndef ELASTOR_TRAINER_RUN_RUN_PUBLICATIONS_H_
#define ELASTOR_TRAINER_RUN_RUN_PUBLICATIONS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "configs/proto/control.pb.h"
#include "core/base/clock.h"
#include "core/base/status.h"
#include "core/kernels/small_rows.h"
#include "core/process/claimed_folder.h"
#include "trainer/checkpoint/publication.h"
#include "trainer/data/batch_source.h"
#include "trainer/run/run_context.h"

namespace elastor {

// Publishes the model of a training run in publish.path every publish.every_steps steps, every
// publish.every_minutes, and at the end of a complete run. The chain in the folder never forks: a
// run that goes on from a step before its last publication computes up to that one and compares
// digests. Does nothing without a path. Collective: every rank makes the same calls, and all return
// the same status.
class RunPublications {
 public:
  static constexpr int64_t kMostBatchesReadAgain = 10000;
  using MakeBatches = std::function<std::unique_ptr<BatchSource>(int64_t first_step)>;

  // output_dir: the run's own folder. context outlives the object.
  RunPublications(const std::string& output_dir, RunContext* context);

  // Looks for what is published already. The run goes on from `control`, and its state is in
  // memory. Marks the rows that steps since the last publication updated, by reading the ids of
  // their batches again; beyond kMostBatchesReadAgain the next publication is a base. So it is with
  // keyed tables when the keys that the last publication has cannot be read. User error
  // when the folder is a run's, has another run's publications and this run did not begin from
  // another run's weights, or when another run has followed this one there.
  Status Begin(const ControlRecord& control, const MakeBatches& make_batches);
  // Returns whether a publication is due by this rank's clock. Rank 0's clock decides.
  bool DueByTime() const { return DueAfter(config_.every_minutes(), due_since_); }
  // Publishes, or compares, what is due after a step. by_time: DueByTime of rank 0.
  Status AfterStep(const ControlRecord& control, bool by_time);
  // Does so at the end of a complete run.
  Status AtEnd(const ControlRecord& control);
  // Does so, with a base, once the end of a complete run has put the best weights back.
  Status AtBest(const ControlRecord& control);
  // Returns whether Finish would not wait for this rank.
  bool Written() const { return !writer_.active() || writer_.done(); }
  // Waits until the publication under way is whole.
  Status Finish();

 private:
  // The last publication in the folder.
  struct Last {
    int64_t number = 0;  // 0: none
    int64_t step = 0;
    bool has_base = false;
    bool is_best = false;  // AtBest's
    RowFormat rows = RowFormat::kFloat32;
    std::string run, origin, follows, result, digest;
  };

  bool enabled() const { return !config_.path().empty(); }
  bool goes_on() const { return last_.number > 0 && last_.run == run_; }
  // Of the rank that looks and writes:
  Status CheckFolder() const;
  StatusOr<Last> FindLast() const;
  StatusOr<Last> ClaimAndFindLast();
  Status CheckNotFollowed(const Last& last) const;
  Status NoteFollowed() const;
  Status CheckRows(const Last& last) const;

  Status MarkSteps(int64_t begin, int64_t end, const MakeBatches& make_batches);
  Status Compare(const ControlRecord& control);
  Status Publish(const ControlRecord& control, bool is_best = false);
  // Writes `next`, whose result is made here.
  Status Start(const Last& next, const PublicationWriter::Parts& parts,
               const ControlRecord& control);

  const PublishConfig config_;
  const RowFormat rows_;
  const std::string output_dir_;
  RunContext& context_;
  PublicationWriter writer_;
  std::optional<ClaimedFolder> claimed_;  // on rank 0
  std::string run_;
  Last last_;
  bool marks_are_lost_ = false;                 // of rows that a delta would have
  Clock::time_point due_since_ = Clock::now();  // when this process, or its last publication, began
  Clock::time_point begun_;  // when training began to wait for the publication under way
};

}  // namespace elastor

#endif  // ELASTOR_TRAINER_RUN_RUN_PUBLICATIONS_H_
