#include "trainer/prepare/rows/time_splits.h"

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <mutex>
#include <string>
#include <utility>

#include "core/base/text.h"
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
      : plan_(plan), rows_(rows), pool_(pool), chunks_(*chunks) {}

  StatusOr<TimeSplits> Split();

 private:
  struct Times {
    int64_t first = kNever, last = std::numeric_limits<int64_t>::min();
  };
  // Calls visit(number, chunk) for all chunks that `is_asked`, on all threads.
  Status ForEachChunk(const std::function<bool(const Times&)>& is_asked,
                      const std::function<void(size_t number, const UnpackedChunk&)>& visit) const;
  Status FindRanges();
  StatusOr<int64_t> TimeOfRow(int64_t row) const;
  StatusOr<TimeSplits> Boundaries() const;
  Status Count(const TimeSplits& splits);
  Status CheckRows(const TimeSplits& splits) const;

  const PreparePlan& plan_;
  const WorkFile& rows_;
  ThreadPool* const pool_;
  std::vector<SpilledChunk>& chunks_;
  std::vector<Times> times_;  // by chunk
  Times all_;
};

Status TimeSplitter::ForEachChunk(
    const std::function<bool(const Times&)>& is_asked,
    const std::function<void(size_t number, const UnpackedChunk&)>& visit) const {
  std::mutex mutex;
  Status failure;
  pool_->ParallelFor(static_cast<int64_t>(chunks_.size()), 1, [&](int, int64_t begin, int64_t end) {
    UnpackedChunk chunk(plan_);
    for (int64_t i = begin; i < end; ++i) {
      if (!is_asked(times_[i])) continue;
      const Status status = chunk.Read(rows_, chunks_[i]);
      if (status.ok()) {
        visit(i, chunk);
        continue;
      }
      const std::lock_guard<std::mutex> lock(mutex);
      failure = status;
      return;
    }
  });
  return failure;
}

Status TimeSplitter::FindRanges() {
  times_.resize(chunks_.size());
  ELASTOR_RETURN_IF_ERROR(ForEachChunk([](const Times&) { return true; },
                                       [&](size_t number, const UnpackedChunk& chunk) {
                                         Times& times = times_[number];
                                         for (int64_t row = 0; row < chunk.rows(); ++row) {
                                           times.first = std::min(times.first, chunk.time(row));
                                           times.last = std::max(times.last, chunk.time(row));
                                         }
                                       }));
  for (const Times& times : times_) {
    all_.first = std::min(all_.first, times.first);
    all_.last = std::max(all_.last, times.last);
  }
  return OkStatus();
}

// Returns the time of a row in order of time, from 0: cuts the range that it is in into parts and
// goes on in one of them, until it is one second.
StatusOr<int64_t> TimeSplitter::TimeOfRow(int64_t row) const {
  constexpr int64_t kParts = 1 << 16;
  int64_t first = all_.first, last = all_.last;
  while (first < last) {
    const int64_t width = (last - first) / kParts + 1;
    std::mutex mutex;
    std::vector<int64_t> rows(kParts, 0);
    ELASTOR_RETURN_IF_ERROR(
        ForEachChunk([&](const Times& times) { return times.first <= last && times.last >= first; },
                     [&](size_t, const UnpackedChunk& chunk) {
                       const std::lock_guard<std::mutex> lock(mutex);
                       for (int64_t i = 0; i < chunk.rows(); ++i) {
                         const int64_t time = chunk.time(i);
                         if (time >= first && time <= last) ++rows[(time - first) / width];
                       }
                     }));
    int64_t part = 0;
    while (row >= rows[part]) row -= rows[part++];
    first += part * width;
    last = std::min(last, first + width - 1);
  }
  return first;
}

StatusOr<TimeSplits> TimeSplitter::Boundaries() const {
  const SplitPlan& plan = plan_.schema.split();
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
  int64_t rows = 0;
  for (const SpilledChunk& chunk : chunks_) rows += chunk.rows;
  const std::array<Range, 3> ranges = SplitRanges(plan, rows);
  for (const auto& [row, time] :
       {std::pair(ranges[2].begin, &splits.test), std::pair(ranges[1].begin, &splits.validation)}) {
    if (row < rows) {
      ELASTOR_ASSIGN_OR_RETURN(*time, TimeOfRow(row));
      const int64_t of_day = (*time % kDaySeconds + kDaySeconds) % kDaySeconds;
      if (plan.whole_days()) *time -= of_day;
    }
  }
  splits.validation = std::min(splits.validation, splits.test);
  return splits;
}

Status TimeSplitter::Count(const TimeSplits& splits) {
  const auto one_split = [&](const Times& times) {
    return splits.SplitOf(times.first) == splits.SplitOf(times.last);
  };
  for (size_t i = 0; i < chunks_.size(); ++i) {
    std::ranges::fill(chunks_[i].split_rows, 0);
    if (one_split(times_[i])) {
      chunks_[i].split_rows[splits.SplitOf(times_[i].first)] = chunks_[i].rows;
    }
  }
  return ForEachChunk([&](const Times& times) { return !one_split(times); },
                      [&](size_t number, const UnpackedChunk& chunk) {
                        for (int64_t row = 0; row < chunk.rows(); ++row) {
                          ++chunks_[number].split_rows[splits.SplitOf(chunk.time(row))];
                        }
                      });
}

Status TimeSplitter::CheckRows(const TimeSplits& splits) const {
  const SplitPlan& plan = plan_.schema.split();
  const bool shares = plan.validation_from().empty() && plan.test_from().empty();
  const bool asked[] = {true, shares ? plan.validation() > 0 : !plan.validation_from().empty(),
                        shares ? plan.test() > 0 : !plan.test_from().empty()};
  constexpr const char* kNames[] = {"training", "validation", "test"};
  for (int split = 0; split < 3; ++split) {
    int64_t rows = 0;
    for (const SpilledChunk& chunk : chunks_) rows += chunk.split_rows[split];
    if (rows > 0 || !asked[split]) continue;
    std::string from;
    if (splits.validation < splits.test) {
      StrAppend(&from, ", validation from ", TimeText(splits.validation));
    }
    if (splits.test < kNever) StrAppend(&from, ", test from ", TimeText(splits.test));
    return UserError(StrCat("split: no ", kNames[split], " rows: the rows are of ",
                            TimeText(all_.first), " to ", TimeText(all_.last), from,
                            "; expected times within them"));
  }
  return OkStatus();
}

StatusOr<TimeSplits> TimeSplitter::Split() {
  ELASTOR_RETURN_IF_ERROR(FindRanges());
  ELASTOR_ASSIGN_OR_RETURN(const TimeSplits splits, Boundaries());
  ELASTOR_RETURN_IF_ERROR(Count(splits));
  ELASTOR_RETURN_IF_ERROR(CheckRows(splits));
  return splits;
}

}  // namespace

StatusOr<TimeSplits> SplitByTime(const PreparePlan& plan, const WorkFile& rows, ThreadPool* pool,
                                 std::vector<SpilledChunk>* chunks) {
  return TimeSplitter(plan, rows, pool, chunks).Split();
}

}  // namespace elastor
