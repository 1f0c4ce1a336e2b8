#ifndef ELASTOR_TRAINER_PREPARE_ROWS_ROW_PLACES_H_
#define ELASTOR_TRAINER_PREPARE_ROWS_ROW_PLACES_H_

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/base/leaves.h"
#include "trainer/prepare/plan.h"
#include "trainer/prepare/rows/spill.h"
#include "trainer/prepare/rows/time_splits.h"

namespace elastor {

// Which rows of which chunk make each split, in order.
class SplitPlaces {
 public:
  // `input_splits`: the Split of every input, or empty when schema.split decides; `times`: where
  // its splits by time begin, which the chunks' split_rows have counted. `chunks` must outlive
  // this.
  SplitPlaces(const PreparePlan& plan, const std::vector<SpilledChunk>& chunks,
              const std::vector<int>& input_splits, const std::optional<TimeSplits>& times);

  int64_t rows(int split) const { return firsts_[split].back(); }
  // Rows of the split before chunk `chunk`.
  int64_t first(int split, int64_t chunk) const { return firsts_[split][chunk]; }
  int64_t count(int split, int64_t chunk) const {
    return firsts_[split][chunk + 1] - firsts_[split][chunk];
  }
  // The chunk that holds row `row` of the split.
  int64_t ChunkOfRow(int split, int64_t row) const;
  // Places in chunk `chunk` of its rows [rows.begin, rows.end) of the split, counted from
  // first(split, chunk).
  void Select(const UnpackedChunk& unpacked, int split, int64_t chunk, const Range& rows,
              std::vector<uint32_t>* places) const;

 private:
  const bool by_row_;  // the split of each row is its own
  const std::optional<TimeSplits> times_;
  std::array<std::vector<int64_t>, 3> firsts_;   // by chunk, and one more
  std::array<std::vector<uint32_t>, 3> begins_;  // of the rows in the chunk, when not by_row_
};

}  // namespace elastor

#endif  // ELASTOR_TRAINER_PREPARE_ROWS_ROW_PLACES_H_
