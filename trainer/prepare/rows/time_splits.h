#ifndef ELASTOR_TRAINER_PREPARE_ROWS_TIME_SPLITS_H_
#define ELASTOR_TRAINER_PREPARE_ROWS_TIME_SPLITS_H_

#include <cstdint>
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

// Finds where the splits of a schema begin that splits by TIME, and sets split_rows of all chunks.
// Reads the chunks once, for shares up to twice more, and those around a boundary once more, so
// memory does not grow with the rows. User error when a split that the schema asks for has no rows.
// Machine error when a chunk cannot be read.
StatusOr<TimeSplits> SplitByTime(const PreparePlan& plan, const WorkFile& rows, ThreadPool* pool,
                                 std::vector<SpilledChunk>* chunks);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_PREPARE_ROWS_TIME_SPLITS_H_
