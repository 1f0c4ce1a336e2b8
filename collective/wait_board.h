#ifndef ELASTOR_COLLECTIVE_WAIT_BOARD_H_
#define ELASTOR_COLLECTIVE_WAIT_BOARD_H_

#include <cstdint>
#include <string>
#include <vector>

#include "collective/call.h"
#include "core/base/clock.h"

namespace elastor {

// What a rank tells that waits, or that makes no progress: its last call, in which it may be, all
// its calls so far as one hash, and what it is busy with.
struct WaitReport {
  static constexpr uint64_t kMark = 0x726f7473616c6522;  // tells reports from foreign messages

  uint64_t mark = kMark;
  Call call;
  uint64_t history = 0;
  Activity activity = Activity::kStart;
  bool waits = false;  // for other ranks: in the call, or for their files
  double seconds = 0;  // since anything of this rank's has moved
  bool told = false;   // the rank has told why the job ends, and ends itself
  bool hello = false;  // the first one, of which `host` alone counts
  char host[64] = "";
};

// The last report of every rank, as the lowest ranks keep them to say who is late, and with what,
// and who makes other calls than the rest.
class WaitBoard {
 public:
  // busy_ranks_speak: those that wait for nobody report, too
  // (CommunicatorOptions::watchdog_seconds). Otherwise nothing can be told of a rank that is
  // silent.
  WaitBoard(int ranks, bool busy_ranks_speak)
      : busy_ranks_speak_(busy_ranks_speak), entries_(ranks) {}

  // `came`: when the report came.
  void Add(int rank, const WaitReport& report, Clock::time_point came);
  // A message of that rank has come, in this call.
  void Heard(int rank, const Call& call) { entries_[rank].heard = call; }

  // The ranks that have not said since then that they wait for others.
  std::vector<int> LateSince(Clock::time_point since) const;
  bool HasSpokenSince(int rank, Clock::time_point since) const;
  // The longest wait of those that have, up to now; 0 without any.
  double LongestWait(Clock::time_point since, Clock::time_point now) const;
  // "rank 2 on h: data_read for 2.1 s after AllToAllV (dense_gather, call 991); ranks 0-1,3 wait in
  // AllToAll (row_exchange, call 992)": the late ranks, then those that wait.
  std::string Describe(Clock::time_point since, Clock::time_point now) const;
  // "rank 0 makes AllToAllV (...), rank 2 AllReduceSum (...)": two ranks whose calls of the same
  // number differ, or followed different ones; empty as long as there are none.
  const std::string& conflict() const { return conflict_; }

 private:
  struct Entry {
    WaitReport report;  // call.number 0: none yet
    Clock::time_point came;
    Call heard;  // number 0: nothing yet
    std::string host;
  };

  double Seconds(const Entry& entry, Clock::time_point now) const;

  const bool busy_ranks_speak_;
  std::vector<Entry> entries_;  // by rank
  std::string conflict_;
};

}  // namespace elastor

#endif  // ELASTOR_COLLECTIVE_WAIT_BOARD_H_
