#ifndef ELASTOR_TRAINER_PREPARE_TEXT_PASS_H_
#define ELASTOR_TRAINER_PREPARE_TEXT_PASS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "configs/proto/schema.pb.h"
#include "core/base/status.h"
#include "core/base/thread_pool.h"
#include "trainer/prepare/prepare_options.h"
#include "trainer/prepare/row_parser.h"
#include "trainer/prepare/spill.h"
#include "trainer/prepare/vocabulary.h"

namespace elastor {

// What reading all text has given.
struct TextPassResult {
  std::vector<Vocabulary> single;  // by CATEGORICAL field; empty when not VOCABULARY
  std::vector<Vocabulary> multi;   // by MULTI_HOT field
  std::vector<int64_t> rows_by_file;
  int64_t bad_rows = 0;
  int64_t text_bytes = 0;
};

// Reads and parses all inputs into `spill`, values of VOCABULARY fields as their numbers. Chunks
// are parsed in parallel, then values numbered in parallel over fields, each in file order, so
// nothing depends on the number of threads. User error on an unreadable input or on more than
// max_bad_rows bad rows.
StatusOr<TextPassResult> RunTextPass(const PrepareOptions& options, ThreadPool* pool, Spill* spill);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_PREPARE_TEXT_PASS_H_
