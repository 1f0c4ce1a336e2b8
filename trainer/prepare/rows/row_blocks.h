#ifndef ELASTOR_TRAINER_PREPARE_ROWS_ROW_BLOCKS_H_
#define ELASTOR_TRAINER_PREPARE_ROWS_ROW_BLOCKS_H_

#include <cstdint>
#include <functional>

#include "core/base/leaves.h"
#include "core/base/status.h"
#include "core/base/thread_pool.h"
#include "trainer/data/dataset.h"
#include "trainer/data/dataset_writer.h"

namespace elastor {

// Writes rows [range.begin, range.end) of a source as the next of a split's rows, block by block on
// all threads. REQUIRES: whole blocks, but for the last rows of a split. append_row(row, rows) adds
// one to *rows, from any thread.
Status WriteRowBlocks(Split split, const Range& range,
                      const std::function<void(int64_t row, Rows* rows)>& append_row,
                      ThreadPool* pool, DatasetWriter* writer);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_PREPARE_ROWS_ROW_BLOCKS_H_
