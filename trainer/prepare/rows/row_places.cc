#include "trainer/prepare/rows/row_places.h"

#include <algorithm>

#include "trainer/prepare/split_ranges.h"

namespace elastor {
namespace {

// The rows of each split when whole inputs, in the order of the splits, belong to it.
std::array<Range, 3> RangesOfInputs(const std::vector<SpilledChunk>& chunks,
                                    const std::vector<int>& input_splits) {
  int64_t ends[3] = {0, 0, 0};
  for (const SpilledChunk& chunk : chunks) {
    for (int split = input_splits[chunk.input]; split < 3; ++split) ends[split] += chunk.rows;
  }
  return {Range{0, ends[0]}, Range{ends[0], ends[1]}, Range{ends[1], ends[2]}};
}

}  // namespace

SplitPlaces::SplitPlaces(const PreparePlan& plan, const std::vector<SpilledChunk>& chunks,
                         const std::vector<int>& input_splits,
                         const std::optional<TimeSplits>& times)
    : by_row_((plan.stores_splits && input_splits.empty()) || times), times_(times) {
  int64_t rows = 0;
  for (const SpilledChunk& chunk : chunks) rows += chunk.rows;
  const std::array<Range, 3> ranges = input_splits.empty() ? SplitRanges(plan.schema.split(), rows)
                                                           : RangesOfInputs(chunks, input_splits);
  for (int split = 0; split < 3; ++split) {
    firsts_[split].push_back(0);
    int64_t row = 0;  // of all
    for (const SpilledChunk& chunk : chunks) {
      const int64_t end = row + chunk.rows;
      const int64_t first = std::clamp(ranges[split].begin, row, end);
      const int64_t last = std::clamp(ranges[split].end, row, end);
      const int64_t count = by_row_ ? chunk.split_rows[split] : last - first;
      begins_[split].push_back(static_cast<uint32_t>(first - row));
      firsts_[split].push_back(firsts_[split].back() + count);
      row = end;
    }
  }
}

int64_t SplitPlaces::ChunkOfRow(int split, int64_t row) const {
  const std::vector<int64_t>& firsts = firsts_[split];
  return std::upper_bound(firsts.begin(), firsts.end(), row) - firsts.begin() - 1;
}

void SplitPlaces::Select(const UnpackedChunk& unpacked, int split, int64_t chunk, const Range& rows,
                         std::vector<uint32_t>* places) const {
  places->clear();
  if (!by_row_) {
    for (int64_t row = rows.begin; row < rows.end; ++row) {
      places->push_back(begins_[split][chunk] + static_cast<uint32_t>(row));
    }
    return;
  }
  int64_t number = 0;
  for (int64_t row = 0; row < unpacked.rows() && number < rows.end; ++row) {
    if ((times_ ? times_->SplitOf(unpacked.time(row)) : unpacked.split(row)) != split) continue;
    if (number >= rows.begin) places->push_back(static_cast<uint32_t>(row));
    ++number;
  }
}

}  // namespace elastor
