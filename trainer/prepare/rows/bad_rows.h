#ifndef ELASTOR_TRAINER_PREPARE_ROWS_BAD_ROWS_H_
#define ELASTOR_TRAINER_PREPARE_ROWS_BAD_ROWS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "trainer/prepare/rows/parsed_chunk.h"

namespace elastor {

// Counts and locates bad rows in the order of the inputs, whatever order their chunks arrive in.
// Not thread-safe.
class BadRowLedger {
 public:
  struct Chunk {
    int64_t lines = 0;  // with those before its rows
    int64_t bad_rows = 0;
    std::vector<BadRow> bad;  // line: within the chunk's rows
    int64_t lines_taken = 0;  // before its rows
  };

  BadRowLedger(std::vector<std::string> paths, int64_t max_bad_rows,
               std::function<void(const std::string&)> warn);

  // User error once it is certain, in file order, that there are too many.
  Status Add(uint32_t input, uint32_t number, Chunk chunk);
  Status EndInput(uint32_t input, uint32_t chunks);
  int64_t bad_rows() const { return bad_rows_; }

 private:
  Status Drain();
  Status Count(const Chunk& chunk);

  const std::vector<std::string> paths_;
  const int64_t max_bad_rows_;
  const std::function<void(const std::string&)> warn_;
  std::map<std::pair<uint32_t, uint32_t>, Chunk> waiting_;
  std::vector<int64_t> chunks_;  // by input; -1: not known yet
  uint32_t input_ = 0;           // the chunk that comes next
  uint32_t number_ = 0;
  int64_t lines_ = 0;  // of this input before it
  int64_t bad_rows_ = 0;
  Status failure_;
};

}  // namespace elastor

#endif  // ELASTOR_TRAINER_PREPARE_ROWS_BAD_ROWS_H_
