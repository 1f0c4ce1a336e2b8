#ifndef ELASTOR_TRAINER_DATA_BATCH_SOURCE_H_
#define ELASTOR_TRAINER_DATA_BATCH_SOURCE_H_

#include <cstdint>
#include <deque>
#include <vector>

#include "core/base/status.h"
#include "embedding/table.h"
#include "trainer/data/batch.h"
#include "trainer/data/dataset.h"
#include "trainer/data/prefetch.h"

namespace elastor {

// Delivers this rank's rows of the training batches, epoch after epoch in the given order. Reads
// them ahead, lays them out and stages them on threads of its own. The last batch of an epoch is
// short when batch_rows does not divide the rows.
class BatchSource {
 public:
  struct Options {
    int64_t batch_rows = 0;
    int64_t leaves = 0;
    int64_t epochs = 0;
    int64_t first_step = 0;  // steps done by earlier processes
    int rank = 0;
    int ranks = 1;
    int readers = 1;                            // number of threads that read ahead
    std::vector<SequenceShape> sequences = {};  // the sequences that the model reads
    IdStaging stage = nullptr;                  // null: ids are not staged
  };
  // dataset outlives the object.
  BatchSource(const Dataset* dataset, const RowOrder& order, const Options& options);

  int64_t steps_per_epoch() const { return steps_per_epoch_; }
  int64_t total_steps() const { return steps_per_epoch_ * options_.epochs; }

  // Replaces *batch by the next one and reuses its memory. On error, which is Dataset::Read's or
  // LayOutSequences' and this rank's alone, *batch is unchanged. REQUIRES: first_step plus the
  // number of calls is at most total_steps().
  Status Next(LocalBatch* batch);

 private:
  void RequestOne();
  // Makes *batch of `rows`, this rank's part of a batch of `size` rows that begins at epoch index
  // `begin`.
  Status MakeBatch(int64_t begin, int64_t size, Rows* rows, LocalBatch* batch) const;

  const Dataset* dataset_;
  Options options_;
  int64_t rows_;
  int64_t steps_per_epoch_;
  int64_t requested_;               // steps whose rows were asked for
  int64_t delivered_;               // steps whose rows were given
  std::deque<LocalBatch> batches_;  // requested, oldest first; elements stay in place
  std::vector<LocalBatch> spare_;   // memory to reuse
  Prefetcher prefetcher_;           // last: its threads use everything above
};

}  // namespace elastor

#endif  // ELASTOR_TRAINER_DATA_BATCH_SOURCE_H_
