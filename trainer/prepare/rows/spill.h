#ifndef ELASTOR_TRAINER_PREPARE_ROWS_SPILL_H_
#define ELASTOR_TRAINER_PREPARE_ROWS_SPILL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "trainer/data/work_file.h"
#include "trainer/prepare/plan.h"
#include "trainer/prepare/rows/packed_column.h"
#include "trainer/prepare/rows/parsed_chunk.h"

namespace elastor {

// Where the rows of one chunk of text lie in the working file, and where they come from.
struct SpilledChunk {
  uint32_t input = 0;    // of all inputs
  uint32_t segment = 0;  // whose vocabularies number the values
  uint32_t number = 0;   // in its input
  uint32_t rows = 0;
  uint32_t lines = 0;
  uint32_t bad_rows = 0;
  uint32_t split_rows[3] = {0, 0, 0};  // by Split, when splits go by hash or time
  int64_t text_at = 0;                 // in the (unpacked) input
  int64_t text_bytes = 0;
  int64_t at = 0;  // in the working file
  int64_t bytes = 0;
  uint64_t checksum = 0;  // XXH3-64
};

// Numbers of the values of one chunk: by column of PreparePlan::ids, a row or a bag's value each;
// none of keyed columns.
using ValueNumbers = std::vector<std::vector<uint32_t>>;

// What ParsedChunk::bags has of one column, row after row.
std::vector<uint64_t> BagValues(const PreparePlan& plan, const PreparePlan::IdColumn& column,
                                const ParsedChunk& chunk);

// The packed columns of a chunk. Keys stand there in the place of numbers.
std::string PackChunk(const PreparePlan& plan, const ParsedChunk& chunk,
                      const ValueNumbers& numbers);

// A packed chunk in memory, every row of every column at once.
class UnpackedChunk {
 public:
  explicit UnpackedChunk(const PreparePlan& plan) : plan_(plan) {}
  // Machine error when the bytes are not those that were written.
  Status Read(const WorkFile& file, const SpilledChunk& chunk);

  int64_t rows() const { return rows_; }
  // NaN = missing.
  float label(int64_t row, int64_t label) const;
  float weight(int64_t row) const { return static_cast<float>(weights_.Numeric(row)); }
  uint64_t group(int64_t row) const { return groups_.Integer(row); }
  int64_t time(int64_t row) const { return static_cast<int64_t>(times_.Integer(row)); }
  uint8_t split(int64_t row) const { return static_cast<uint8_t>(splits_.Integer(row)); }
  const PackedColumn& numeric(int64_t field) const { return numeric_[field]; }
  // By column of PreparePlan::ids, keys of a keyed one; of a bag column the values of bag `row` are
  // [ends[row - 1], ends[row]).
  const PackedColumn& numbers(int64_t column) const { return numbers_[column]; }
  const std::vector<uint32_t>& ends(int64_t column) const { return ends_[column]; }

 private:
  const PreparePlan& plan_;
  std::string bytes_;
  int64_t rows_ = 0;
  std::vector<PackedColumn> labels_;
  PackedColumn weights_, groups_, times_, splits_;
  std::vector<PackedColumn> numeric_;
  std::vector<PackedColumn> numbers_;
  std::vector<std::vector<uint32_t>> ends_;
};

}  // namespace elastor

#endif  // ELASTOR_TRAINER_PREPARE_ROWS_SPILL_H_
