#ifndef ELASTOR_TRAINER_PREPARE_TEXT_PASS_H_
#define ELASTOR_TRAINER_PREPARE_TEXT_PASS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/base/thread_pool.h"
#include "trainer/data/work_file.h"
#include "trainer/prepare/plan.h"
#include "trainer/prepare/prepare_options.h"
#include "trainer/prepare/rows/segments.h"

namespace elastor {

// What reading all text has given.
struct TextPassResult {
  std::vector<SpilledChunk> chunks;         // in the order of the inputs
  std::vector<std::vector<ValueRun>> runs;  // by segment, then by column of PreparePlan::ids
  std::vector<int64_t> cut_values;          // by column: how many bags had no room for
  std::vector<int64_t> missing_keys;        // by lookup: rows whose key the side table lacks
  int64_t bad_rows = 0;
  int64_t text_bytes = 0;
};

// Where the working files of a text pass are.
struct TextPassFiles {
  std::string journal;
  std::string histories;  // the beginning of names
  std::string negatives;  // likewise
  WorkFile* rows;
  WorkFile* values;
};

// Reads and parses the text of `inputs`. Every worker reads chunks, parses them, numbers the values
// by its own vocabularies and writes the rows; when its vocabularies have used up its share of the
// memory, or after options.segment_bytes of text, it writes them as sorted runs, notes the segment
// in the journal and starts the next. What the journal holds already is not read again, unless
// there are histories or negatives and some text is left, as these are made of all text before.
// User error on an unreadable input or on more than max_bad_rows bad rows.
StatusOr<TextPassResult> RunTextPass(const PrepareOptions& options, const PreparePlan& plan,
                                     const std::vector<std::string>& inputs,
                                     const TextPassFiles& files, ThreadPool* pool);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_PREPARE_TEXT_PASS_H_
