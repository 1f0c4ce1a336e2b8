#ifndef ELASTOR_TRAINER_PREPARE_ROWS_TIME_SPLITS_H_
#define ELASTOR_TRAINER_PREPARE_ROWS_TIME_SPLITS_H_

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "core/base/status.h"
#include "core/base/thread_pool.h"
#include "trainer/data/work_file.h"
#include "trainer/prepare/plan.h"
#include "trainer/prepare/rows/spill.h"

namespace elastor {

// Where splits by time begin: training rows are earlier than `validation`, test rows are those from
// `test` on.
struct TimeSplits {
  int64_t validation = 0;  // seconds since 1970
  int64_t test = 0;

  int SplitOf(int64_t time) const { return time < validation ? 0 : time < test ? 1 : 2; }
};

// Returns where the splits of a plan by TIME begin. `times_of_ranks`, which shares alone ask,
// returns the time of each of these rows in order of time, counted from 0.
StatusOr<TimeSplits> TimeSplitsOf(
    const SplitPlan& plan, int64_t rows,
    const std::function<StatusOr<std::vector<int64_t>>(const std::vector<int64_t>& ranks)>&
        times_of_ranks);

// User error when a split that the plan asks for has no rows. `first`, `last`: times of all rows.
Status CheckSplitRows(const SplitPlan& plan, const TimeSplits& splits,
                      const std::array<int64_t, 3>& rows, int64_t first, int64_t last);

// Finds where the splits of a schema begin that splits by TIME, and sets split_rows of all chunks.
// Reads the chunks once, for shares up to twice more, and those around a boundary once more, so
// memory does not grow with the rows. User error when a split that the schema asks for has no rows.
// Machine error when a chunk cannot be read.
StatusOr<TimeSplits> SplitByTime(const PreparePlan& plan, const WorkFile& rows, ThreadPool* pool,
                                 std::vector<SpilledChunk>* chunks);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_PREPARE_ROWS_TIME_SPLITS_H_
