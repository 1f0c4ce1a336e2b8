#include "trainer/prepare/rows/bad_rows.h"

#include <algorithm>

#include "core/base/text.h"

namespace elastor {
namespace {

constexpr int64_t kWarnings = 5;

}  // namespace

BadRowLedger::BadRowLedger(std::vector<std::string> paths, int64_t max_bad_rows,
                           std::function<void(const std::string&)> warn)
    : paths_(std::move(paths)),
      max_bad_rows_(max_bad_rows),
      warn_(std::move(warn)),
      chunks_(paths_.size(), -1) {}

Status BadRowLedger::Add(uint32_t input, uint32_t number, Chunk chunk) {
  waiting_[{input, number}] = std::move(chunk);
  return Drain();
}

Status BadRowLedger::EndInput(uint32_t input, uint32_t chunks) {
  chunks_[input] = chunks;
  return Drain();
}

Status BadRowLedger::Drain() {
  while (failure_.ok() && input_ < paths_.size()) {
    if (chunks_[input_] == int64_t{number_}) {
      ++input_;
      number_ = 0;
      lines_ = 0;
      continue;
    }
    const auto next = waiting_.find({input_, number_});
    if (next == waiting_.end()) break;
    failure_ = Count(next->second);
    waiting_.erase(next);
    ++number_;
  }
  return failure_;
}

Status BadRowLedger::Count(const Chunk& chunk) {
  const std::string& path = paths_[input_];
  const auto place = [&](const BadRow& bad) {
    return StrCat(path, ":", lines_ + chunk.lines_taken + bad.line + 1, ": ", bad.what);
  };
  // Those up to the limit are told one by one, the one beyond it ends the run.
  const int64_t allowed = max_bad_rows_ - bad_rows_;
  const bool too_many = chunk.bad_rows > allowed;
  const size_t told = std::min<size_t>(chunk.bad.size(), allowed);
  for (size_t i = 0; i < told; ++i) {
    if (bad_rows_ + static_cast<int64_t>(i) < kWarnings && warn_) {
      warn_("bad row: " + place(chunk.bad[i]));
    }
  }
  if (too_many) {
    // A chunk keeps the first few of many bad rows, and none when an earlier run has read it.
    const bool kept = told < chunk.bad.size();
    const std::string example = chunk.bad.empty() ? path : place(chunk.bad[kept ? told : told - 1]);
    const int64_t so_far = bad_rows_ + (kept ? static_cast<int64_t>(told) + 1 : chunk.bad_rows);
    bad_rows_ += chunk.bad_rows;
    return UserError(
        StrCat(example, "; ", so_far, " bad rows so far, max_bad_rows is ", max_bad_rows_));
  }
  bad_rows_ += chunk.bad_rows;
  lines_ += chunk.lines;
  return OkStatus();
}

}  // namespace elastor
