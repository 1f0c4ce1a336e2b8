#include "trainer/prepare/rows/time_splits.h"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <string>

#include "core/base/text.h"
#include "trainer/prepare/rows/chunk_times.h"
#include "trainer/prepare/rows/time_text.h"
#include "trainer/prepare/split_ranges.h"

namespace elastor {
namespace {

constexpr int64_t kDaySeconds = 86400;
constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

class TimeSplitter {
 public:
  TimeSplitter(const PreparePlan& plan, const WorkFile& rows, ThreadPool* pool,
               std::vector<SpilledChunk>* chunks)
      : plan_(plan),
        chunks_(*chunks),
        times_(plan, rows, *chunks, pool,
               [](int64_t, const UnpackedChunk& chunk, std::vector<uint32_t>* all) {
                 all->resize(chunk.rows());
                 std::iota(all->begin(), all->end(), 0);
               }) {}

  StatusOr<TimeSplits> Split();

 private:
  StatusOr<TimeSplits> Boundaries() const;
  Status Count(const TimeSplits& splits);

  const PreparePlan& plan_;
  std::vector<SpilledChunk>& chunks_;
  ChunkTimes times_;
};

StatusOr<TimeSplits> TimeSplitter::Boundaries() const {
  int64_t rows = 0;
  for (const SpilledChunk& chunk : chunks_) rows += chunk.rows;
  const auto times_of_ranks =
      [this](const std::vector<int64_t>& ranks) -> StatusOr<std::vector<int64_t>> {
    ELASTOR_ASSIGN_OR_RETURN(const std::vector<ChunkTimes::RankedTime> ranked,
                             times_.TimesOfRanks(ranks));
    std::vector<int64_t> times;
    for (const ChunkTimes::RankedTime& time : ranked) times.push_back(time.time);
    return times;
  };
  return TimeSplitsOf(plan_.schema.split(), rows, times_of_ranks);
}

Status TimeSplitter::Count(const TimeSplits& splits) {
  const auto one_split = [&](const ChunkTimes::Range& range) {
    return splits.SplitOf(range.first) == splits.SplitOf(range.last);
  };
  for (size_t i = 0; i < chunks_.size(); ++i) {
    const ChunkTimes::Range& range = times_.range(static_cast<int64_t>(i));
    std::ranges::fill(chunks_[i].split_rows, 0);
    if (one_split(range)) chunks_[i].split_rows[splits.SplitOf(range.first)] = chunks_[i].rows;
  }
  return times_.ForEachChunk(
      [&](const ChunkTimes::Range& range) { return !one_split(range); },
      [&](int64_t number, const UnpackedChunk& chunk, const std::vector<uint32_t>& rows) {
        for (const uint32_t row : rows) {
          ++chunks_[number].split_rows[splits.SplitOf(chunk.time(row))];
        }
      });
}

StatusOr<TimeSplits> TimeSplitter::Split() {
  ELASTOR_RETURN_IF_ERROR(times_.Read());
  ELASTOR_ASSIGN_OR_RETURN(const TimeSplits splits, Boundaries());
  ELASTOR_RETURN_IF_ERROR(Count(splits));
  std::array<int64_t, 3> rows = {};
  for (const SpilledChunk& chunk : chunks_) {
    for (int split = 0; split < 3; ++split) rows[split] += chunk.split_rows[split];
  }
  ELASTOR_RETURN_IF_ERROR(CheckSplitRows(plan_.schema.split(), splits, rows, times_.range().first,
                                         times_.range().last));
  return splits;
}

}  // namespace

StatusOr<TimeSplits> TimeSplitsOf(
    const SplitPlan& plan, int64_t rows,
    const std::function<StatusOr<std::vector<int64_t>>(const std::vector<int64_t>& ranks)>&
        times_of_ranks) {
  TimeSplits splits = {kNever, kNever};
  if (!plan.validation_from().empty() || !plan.test_from().empty()) {
    if (!plan.test_from().empty()) {
      ParseTime(plan.test_from(), Field::YYYY_MM_DD_HH_MM_SS, &splits.test);
    }
    splits.validation = splits.test;
    if (!plan.validation_from().empty()) {
      ParseTime(plan.validation_from(), Field::YYYY_MM_DD_HH_MM_SS, &splits.validation);
    }
    return splits;
  }
  const std::array<Range, 3> ranges = SplitRanges(plan, rows);
  std::vector<int64_t> ranks;
  for (const int split : {1, 2}) {
    if (ranges[split].begin < rows) ranks.push_back(ranges[split].begin);
  }
  ELASTOR_ASSIGN_OR_RETURN(const std::vector<int64_t> times, times_of_ranks(ranks));
  for (size_t i = 0; i < times.size(); ++i) {
    const int64_t of_day = (times[i] % kDaySeconds + kDaySeconds) % kDaySeconds;
    (i == 0 ? splits.validation : splits.test) = times[i] - (plan.whole_days() ? of_day : 0);
  }
  splits.validation = std::min(splits.validation, splits.test);
  return splits;
}

Status CheckSplitRows(const SplitPlan& plan, const TimeSplits& splits,
                      const std::array<int64_t, 3>& rows, int64_t first, int64_t last) {
  const bool shares = plan.validation_from().empty() && plan.test_from().empty();
  const bool asked[] = {true, shares ? plan.validation() > 0 : !plan.validation_from().empty(),
                        shares ? plan.test() > 0 : !plan.test_from().empty()};
  constexpr const char* kNames[] = {"training", "validation", "test"};
  for (int split = 0; split < 3; ++split) {
    if (rows[split] > 0 || !asked[split]) continue;
    std::string from;
    if (splits.validation < splits.test) {
      StrAppend(&from, ", validation from ", TimeText(splits.validation));
    }
    if (splits.test < kNever) StrAppend(&from, ", test from ", TimeText(splits.test));
    return UserError(StrCat("split: no ", kNames[split], " rows: the rows are of ", TimeText(first),
                            " to ", TimeText(last), from, "; expected times within them"));
  }
  return OkStatus();
}

StatusOr<TimeSplits> SplitByTime(const PreparePlan& plan, const WorkFile& rows, ThreadPool* pool,
                                 std::vector<SpilledChunk>* chunks) {
  return TimeSplitter(plan, rows, pool, chunks).Split();
}

}  // namespace elastor
