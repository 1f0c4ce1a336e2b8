#ifndef ELASTOR_TRAINER_PREPARE_ROWS_CHUNK_TIMES_H_
#define ELASTOR_TRAINER_PREPARE_ROWS_CHUNK_TIMES_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "core/base/thread_pool.h"
#include "trainer/data/work_file.h"
#include "trainer/prepare/plan.h"
#include "trainer/prepare/rows/spill.h"

namespace elastor {

// The times of many rows, of which it keeps the range of each chunk. What the ranges do not tell is
// read again, so memory does not grow with the rows.
class ChunkTimes {
 public:
  struct Range {
    int64_t first = std::numeric_limits<int64_t>::max();  // of the rows that count
    int64_t last = std::numeric_limits<int64_t>::min();
  };
  struct RankedTime {
    int64_t time;
    int64_t earlier;  // rows of earlier times
  };
  // Replaces *rows by the rows of a chunk that count.
  using Choose =
      std::function<void(int64_t number, const UnpackedChunk& chunk, std::vector<uint32_t>* rows)>;
  using Visit = std::function<void(int64_t number, const UnpackedChunk& chunk,
                                   const std::vector<uint32_t>& rows)>;

  // All must outlive this.
  ChunkTimes(const PreparePlan& plan, const WorkFile& rows, const std::vector<SpilledChunk>& chunks,
             ThreadPool* pool, Choose choose)
      : plan_(plan), rows_(rows), chunks_(chunks), pool_(pool), choose_(std::move(choose)) {}

  // Reads every chunk once. Machine error when one cannot be read, as in all that follows.
  Status Read();
  // Of all rows. REQUIRES: Read; there are rows.
  const Range& range() const { return range_; }
  const Range& range(int64_t number) const { return ranges_[number]; }

  // Calls `visit` for every chunk that `is_asked`, on all threads.
  Status ForEachChunk(const std::function<bool(const Range&)>& is_asked, const Visit& visit) const;
  // Returns the time of each of these rows in order of time, counted from 0. REQUIRES: Read; the
  // ranks ascend.
  StatusOr<std::vector<RankedTime>> TimesOfRanks(const std::vector<int64_t>& ranks) const;

 private:
  const PreparePlan& plan_;
  const WorkFile& rows_;
  const std::vector<SpilledChunk>& chunks_;
  ThreadPool* const pool_;
  const Choose choose_;
  std::vector<Range> ranges_;  // by chunk
  Range range_;
};

}  // namespace elastor

#endif  // ELASTOR_TRAINER_PREPARE_ROWS_CHUNK_TIMES_H_
