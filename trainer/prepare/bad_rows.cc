#include "trainer/prepare/bad_rows.h"

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
    return path + ":" + std::to_string(lines_ + chunk.header_lines + bad.line + 1) + ": " +
           bad.what;
  };
  const bool too_many = bad_rows_ + chunk.bad_rows > max_bad_rows_;
  int64_t number = bad_rows_;
  for (const BadRow& bad : chunk.bad) {
    const bool in_error = too_many && &bad == &chunk.bad.front();
    if (number++ < kWarnings && warn_ && !in_error) warn_("bad row: " + place(bad));
  }
  bad_rows_ += chunk.bad_rows;
  if (too_many) {
    const std::string example = chunk.bad.empty() ? path : place(chunk.bad.front());
    return UserError(example + "; " + std::to_string(bad_rows_) +
                     " bad rows so far, max_bad_rows is " + std::to_string(max_bad_rows_));
  }
  lines_ += chunk.lines;
  return OkStatus();
}

}  // namespace elastor
