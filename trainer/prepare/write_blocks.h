#ifndef ELASTOR_TRAINER_PREPARE_WRITE_BLOCKS_H_
#define ELASTOR_TRAINER_PREPARE_WRITE_BLOCKS_H_

#include <cstdint>
#include <vector>

#include "core/base/status.h"
#include "core/base/thread_pool.h"
#include "trainer/data/dataset_writer.h"
#include "trainer/data/work_file.h"
#include "trainer/prepare/plan.h"
#include "trainer/prepare/prepare_options.h"
#include "trainer/prepare/rows/row_places.h"
#include "trainer/prepare/text_pass.h"

namespace elastor {

// The rows' final values: numeric (x - mean) / stddev, and the id of every number of every segment.
struct Encoding {
  std::vector<NumericScale> scales;          // by numeric field
  std::vector<std::vector<int64_t>> ids_at;  // by segment, then column: in the file of ids
  int id_bytes = 4;
};

// Writes the blocks of all splits that the writer does not have yet. `ids` is mapped.
Status WriteBlocks(const PrepareOptions& options, const PreparePlan& plan,
                   const TextPassResult& text, const SplitPlaces& places, const Encoding& encoding,
                   const WorkFile& rows, const WorkFile& ids, ThreadPool* pool,
                   DatasetWriter* writer);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_PREPARE_WRITE_BLOCKS_H_
