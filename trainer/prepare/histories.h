#ifndef ELASTOR_TRAINER_PREPARE_HISTORIES_H_
#define ELASTOR_TRAINER_PREPARE_HISTORIES_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/base/thread_pool.h"
#include "trainer/data/work_file.h"
#include "trainer/prepare/log_pass.h"
#include "trainer/prepare/prepare_options.h"
#include "trainer/prepare/rows/parsed_chunk.h"

namespace elastor {

// The histories of all rows. The values of a user lie one after another in a working file, in order
// of time, and those of equal time in the order of the inputs. A row's history is a part of them
// that ends before the first one of the row's own time.
class RowHistories {
 public:
  // Reads all inputs once, and makes working files whose names begin with `path`. Rows without
  // labels are in no history. User error on an unreadable input or on more than max_bad_rows bad
  // rows.
  static StatusOr<std::unique_ptr<RowHistories>> Make(const PrepareOptions& options,
                                                      const LogSource& source,
                                                      const std::string& path, ThreadPool* pool);
  ~RowHistories();  // removes the working files

  // Sets chunk->histories to those of chunk `number` of an input. Thread-safe. Machine error when a
  // working file cannot be read, or is damaged.
  Status Read(uint32_t input, uint32_t number, ParsedChunk* chunk) const;

 private:
  // Working files of one history of the schema.
  struct Files {
    int values = 1;                   // of one row
    std::unique_ptr<WorkFile> texts;  // of all users
    int64_t text_bytes = 0;
    std::unique_ptr<WorkFile> parts;  // by record
  };

  explicit RowHistories(std::string path) : path_(std::move(path)) {}
  std::string PathOf(size_t history, const char* what) const;
  // Sets `parts` and `texts` to those of the records of a chunk.
  Status ReadParts(const Files& files, int64_t first_record, int64_t records,
                   std::vector<std::pair<size_t, size_t>>* parts, std::string* texts) const;
  Status Damaged() const;

  const std::string path_;
  std::vector<Files> files_;  // by history
  // By input and chunk: how many records are before it. Every input has one place more.
  std::vector<std::vector<int64_t>> first_records_;
};

}  // namespace elastor

#endif  // ELASTOR_TRAINER_PREPARE_HISTORIES_H_
