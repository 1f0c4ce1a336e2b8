#ifndef ELASTOR_TRAINER_PREPARE_NEGATIVES_H_
#define ELASTOR_TRAINER_PREPARE_NEGATIVES_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/base/thread_pool.h"
#include "trainer/data/work_file.h"
#include "trainer/prepare/log_pass.h"
#include "trainer/prepare/plan.h"
#include "trainer/prepare/prepare_options.h"
#include "trainer/prepare/rows/drawn_items.h"
#include "trainer/prepare/rows/parsed_chunk.h"

namespace elastor {

// The negatives of all positive rows of a log. The items of positive training rows are candidates;
// a row's are those that its user has in no positive row of the same split or an earlier one. They
// are drawn without replacement, with random numbers that depend on the seed, the split, the user,
// the time, the item and what stands beside it, not on the row's place in the files; alike rows of
// a split are numbered. So rows of later splits change none.
class DrawnNegatives {
 public:
  // Reads all inputs once, and makes working files whose names begin with `path`. User error on an
  // unreadable input, on more than max_bad_rows bad rows, without a positive training row, on more
  // items than half of the memory holds or more rows of a user than a quarter, or when a split by
  // time has no rows.
  static StatusOr<std::unique_ptr<DrawnNegatives>> Make(const PrepareOptions& options,
                                                        const PreparePlan& plan,
                                                        const LogSource& source,
                                                        const std::string& path, ThreadPool* pool);
  ~DrawnNegatives();  // removes the working files

  // Gives a chunk what is drawn for its records. Thread-safe. Machine error when the working file
  // cannot be read, or is damaged.
  Status Read(uint32_t input, uint32_t number, ParsedChunk* chunk) const;
  int64_t bytes() const { return items_.bytes(); }  // of memory

 private:
  DrawnNegatives(const Schema& schema, std::string path);

  const std::string path_;
  const uint32_t most_;  // of a row
  DrawnItems items_;
  std::unique_ptr<WorkFile> draws_;  // by record
  // By input and chunk: how many records are before it. Every input has one place more.
  std::vector<std::vector<int64_t>> first_records_;
};

}  // namespace elastor

#endif  // ELASTOR_TRAINER_PREPARE_NEGATIVES_H_
