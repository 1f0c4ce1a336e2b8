#ifndef ELASTOR_COLLECTIVE_WAIT_BOARD_H_
#define ELASTOR_COLLECTIVE_WAIT_BOARD_H_

#include <cstdint>
#include <string>
#include <vector>

#include "collective/call.h"
#include "core/base/clock.h"

namespace elastor {

// What a rank that waits tells: the call it is in, and all its calls so far as one hash.
struct WaitReport {
  static constexpr uint64_t kMark = 0x726f7473616c6521;  // tells reports from foreign messages

  uint64_t mark = kMark;
  Call call;
  uint64_t history = 0;
  bool told = false;  // the rank has told why the job ends, and ends itself
};

// The last report of every rank, as the lowest ranks keep them to say who is late and who makes
// other calls than the rest.
class WaitBoard {
 public:
  explicit WaitBoard(int ranks) : entries_(ranks) {}

  // `now`: when the report came.
  void Add(int rank, const WaitReport& report, Clock::time_point now);

  // The ranks without a report since then.
  std::vector<int> SilentSince(Clock::time_point since) const;
  // "rank 0 makes AllToAllV (...), rank 2 AllReduceSum (...)": two ranks whose calls of the same
  // number differ, or followed different ones; empty as long as there are none.
  const std::string& conflict() const { return conflict_; }

 private:
  struct Entry {
    WaitReport report;  // call.number 0: none yet
    Clock::time_point came;
  };

  std::vector<Entry> entries_;  // by rank
  std::string conflict_;
};

}  // namespace elastor

#endif  // ELASTOR_COLLECTIVE_WAIT_BOARD_H_
