#include "trainer/prepare/rows/chunk_times.h"

#include <algorithm>
#include <map>
#include <mutex>

namespace elastor {

Status ChunkTimes::ForEachChunk(const std::function<bool(const Range&)>& is_asked,
                                const Visit& visit) const {
  std::mutex mutex;
  Status failure;
  pool_->ParallelFor(static_cast<int64_t>(chunks_.size()), 1, [&](int, int64_t begin, int64_t end) {
    UnpackedChunk chunk(plan_);
    std::vector<uint32_t> rows;
    for (int64_t i = begin; i < end; ++i) {
      if (!is_asked(ranges_[i])) continue;
      const Status status = chunk.Read(rows_, chunks_[i]);
      if (!status.ok()) {
        const std::lock_guard<std::mutex> lock(mutex);
        failure = status;
        return;
      }
      choose_(i, chunk, &rows);
      visit(i, chunk, rows);
    }
  });
  return failure;
}

Status ChunkTimes::Read() {
  ranges_.resize(chunks_.size());
  ELASTOR_RETURN_IF_ERROR(ForEachChunk(
      [](const Range&) { return true; },
      [&](int64_t number, const UnpackedChunk& chunk, const std::vector<uint32_t>& rows) {
        Range& range = ranges_[number];
        for (const uint32_t row : rows) {
          range.first = std::min(range.first, chunk.time(row));
          range.last = std::max(range.last, chunk.time(row));
        }
      }));
  for (const Range& range : ranges_) {
    range_.first = std::min(range_.first, range.first);
    range_.last = std::max(range_.last, range.last);
  }
  return OkStatus();
}

// Counts the rows in parts of the range of times, then second by second in the parts that matter.
StatusOr<std::vector<ChunkTimes::RankedTime>> ChunkTimes::TimesOfRanks(
    const std::vector<int64_t>& ranks) const {
  constexpr int64_t kParts = 1 << 20;
  const int64_t width = (range_.last - range_.first) / kParts + 1;
  std::mutex mutex;
  std::vector<int64_t> rows_of_part(kParts, 0);
  ELASTOR_RETURN_IF_ERROR(
      ForEachChunk([](const Range&) { return true; },
                   [&](int64_t, const UnpackedChunk& chunk, const std::vector<uint32_t>& rows) {
                     const std::lock_guard<std::mutex> lock(mutex);
                     for (const uint32_t row : rows) {
                       ++rows_of_part[(chunk.time(row) - range_.first) / width];
                     }
                   }));
  std::map<int64_t, std::vector<int64_t>> seconds_of;  // of the parts that hold a rank
  std::vector<RankedTime> found;
  int64_t part = 0, earlier = 0;
  for (const int64_t rank : ranks) {
    while (rank >= earlier + rows_of_part[part]) earlier += rows_of_part[part++];
    found.push_back({part, earlier});
    seconds_of[part].resize(width, 0);
  }
  const auto part_of = [&](int64_t time) { return seconds_of.find((time - range_.first) / width); };
  ELASTOR_RETURN_IF_ERROR(ForEachChunk(
      [&](const Range& range) {
        if (range.first > range.last) return false;
        const auto first = seconds_of.lower_bound((range.first - range_.first) / width);
        return first != seconds_of.end() && first->first <= (range.last - range_.first) / width;
      },
      [&](int64_t, const UnpackedChunk& chunk, const std::vector<uint32_t>& rows) {
        const std::lock_guard<std::mutex> lock(mutex);
        for (const uint32_t row : rows) {
          const auto seconds = part_of(chunk.time(row));
          if (seconds == seconds_of.end()) continue;
          ++seconds->second[(chunk.time(row) - range_.first) % width];
        }
      }));
  for (size_t i = 0; i < ranks.size(); ++i) {
    const std::vector<int64_t>& seconds = seconds_of.at(found[i].time);
    const int64_t begin = range_.first + found[i].time * width;
    int64_t second = 0;
    while (ranks[i] >= found[i].earlier + seconds[second]) found[i].earlier += seconds[second++];
    found[i].time = begin + second;
  }
  return found;
}

}  // namespace elastor
