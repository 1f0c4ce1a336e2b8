#include "collective/wait_board.h"

#include <algorithm>

namespace elastor {
namespace {

std::string DescribeConflict(int a, const Call& call_of_a, int b, const Call& call_of_b) {
  const std::string of_a = DescribeCall(call_of_a);
  const std::string of_b = DescribeCall(call_of_b);
  const std::string line =
      "rank " + std::to_string(a) + " makes " + of_a + ", rank " + std::to_string(b) + " ";
  return line + (of_a == of_b ? "the same, after other calls" : of_b);
}

}  // namespace

void WaitBoard::Add(int rank, const WaitReport& report, Clock::time_point now) {
  entries_[rank] = {report, now};
  if (!conflict_.empty()) return;
  for (int other = 0; other < static_cast<int>(entries_.size()); ++other) {
    const WaitReport& theirs = entries_[other].report;
    if (theirs.call.number != report.call.number || theirs.history == report.history) continue;
    const int low = std::min(rank, other);
    const int high = std::max(rank, other);
    conflict_ = DescribeConflict(low, entries_[low].report.call, high, entries_[high].report.call);
    return;
  }
}

std::vector<int> WaitBoard::SilentSince(Clock::time_point since) const {
  std::vector<int> silent;
  for (int rank = 0; rank < static_cast<int>(entries_.size()); ++rank) {
    const Entry& entry = entries_[rank];
    if (entry.report.call.number == 0 || entry.came < since) silent.push_back(rank);
  }
  return silent;
}

}  // namespace elastor
