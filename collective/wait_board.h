#ifndef ELASTOR_COLLECTIVE_WAIT_BOARD_H_
#define ELASTOR_COLLECTIVE_WAIT_BOARD_H_

#include <cstdint>
#include <string>
#include <vector>

#include "collective/call.h"
#include "core/base/clock.h"

namespace elastor {

// The report of a rank that waits or makes no progress: its last call, which it may still be in, a
// hash of all its calls so far, and its current activity.
struct WaitReport {
  static constexpr uint64_t kMark = 0x726f7473616c6522;  // tells reports from foreign messages

  uint64_t mark = kMark;
  Call call;
  uint64_t history = 0;
  Activity activity = Activity::kStart;
  bool waits = false;  // waits for other ranks, in the call or for their files
  double seconds = 0;  // time since this rank last made progress
  bool told = false;   // the rank has printed why the job ends, and exits
  bool hello = false;  // the rank's first report, in which only `host` is meaningful
  char host[64] = "";
};

// The last report of every rank. The lowest ranks keep it to print which ranks are late, what they
// do, and which ranks make different calls from the rest.
class WaitBoard {
 public:
  // busy_ranks_speak: ranks that wait for nobody report too
  // (CommunicatorOptions::watchdog_seconds). Otherwise a silent rank's activity is unknown.
  WaitBoard(int ranks, bool busy_ranks_speak)
      : busy_ranks_speak_(busy_ranks_speak), entries_(ranks) {}

  // Stores a rank's report. `came`: the time at which the report arrived.
  void Add(int rank, const WaitReport& report, Clock::time_point came);
  // Notes that a message of that rank has arrived, sent in this call.
  void Heard(int rank, const Call& call) { entries_[rank].heard = call; }

  // Returns the ranks that have not reported since then that they wait for others.
  std::vector<int> LateSince(Clock::time_point since) const;
  bool HasSpokenSince(int rank, Clock::time_point since) const;
  // Returns the longest wait up to now of the ranks that have reported so; 0 if none has.
  double LongestWait(Clock::time_point since, Clock::time_point now) const;
  // "rank 2 on h: data_read for 2.1 s after AllToAllV (dense_gather, call 991); ranks 0-1,3 wait in
  // AllToAll (row_exchange, call 992)": the late ranks, then those that wait.
  std::string Describe(Clock::time_point since, Clock::time_point now) const;
  // Returns "rank 0 makes AllToAllV (...), rank 2 AllReduceSum (...)" for two ranks whose calls of
  // the same number differ, or followed different calls; empty as long as there are none.
  const std::string& conflict() const { return conflict_; }

 private:
  struct Entry {
    WaitReport report;  // call.number is 0 before the first report
    Clock::time_point came;
    Call heard;  // number is 0 before the first message
    std::string host;
  };

  double Seconds(const Entry& entry, Clock::time_point now) const;

  const bool busy_ranks_speak_;
  std::vector<Entry> entries_;  // by rank
  std::string conflict_;
};

}  // namespace elastor

#endif  // ELASTOR_COLLECTIVE_WAIT_BOARD_H_
