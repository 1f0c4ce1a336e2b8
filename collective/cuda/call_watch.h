#ifndef ELASTOR_COLLECTIVE_CUDA_CALL_WATCH_H_
#define ELASTOR_COLLECTIVE_CUDA_CALL_WATCH_H_

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "collective/communicator.h"
#include "core/base/clock.h"
#include "core/cuda/runtime.h"

namespace elastor::cuda {

// One call of a library that exchanges between devices.
struct DeviceCall {
  const char* name;
  Phase phase;
  int64_t messages_sent;   // to other ranks
  int64_t bytes_sent;      // to other ranks
  int64_t bytes_received;  // from other ranks
  Work work = Work::kOther;
};

// Watches calls that a library enqueues on streams and that wait there for other ranks. Its own
// thread checks the library's error and the oldest call that is not done, whatever the host does
// meanwhile. An error, or a call that takes longer than the deadline, is a failure; Begin and
// failure() return it, and the owner gives up. The host may be waiting for a stream that never
// ends: a process that still has this watch `seconds_to_end` after a failure ends with the
// failure's line and code 3.
//
// Only one thread at a time may call Begin, End, Fail, failure and record.
class CallWatch {
 public:
  struct Options {
    int rank = 0;
    double deadline_seconds = 0;
    double seconds_to_end = 10;  // from a failure to the end of the process
    // The library's error, empty if there is none; called by the watching thread.
    std::function<std::string()> error;
  };
  explicit CallWatch(Options options);
  ~CallWatch();

  // Returns the failure if there is one; otherwise begins the call. stream: where the call is
  // enqueued; null: a call of the host, which is done at End.
  Status Begin(const DeviceCall& call, Stream* stream);
  void End(Stream* stream);
  // Records as the failure, unless there is one already, that the latest call has the library's
  // error `error`.
  void Fail(const std::string& error);
  // Records as the failure, unless there is one already, that the host waited for `what` until the
  // deadline.
  void FailWaiting(const char* what);
  Status failure();
  // Returns the sum over finished calls; the seconds are measured on the device.
  PhaseRecord record(Phase phase, Work work);

 private:
  struct Entry {
    DeviceCall call;
    Clock::time_point begun;
    Event first;  // on the stream, before and after the call
    Event last;
    bool of_host = false;
    bool ended = false;
  };

  void Watch();
  // Moves entries that are done to the records. REQUIRES: mutex_ is held.
  void Collect();
  bool Done(const Entry& entry) const;
  void SetFailure(std::string line);
  std::string Describe(const DeviceCall& call) const;

  const Options options_;

  std::mutex mutex_;
  std::condition_variable stop_changed_;
  // Guarded by mutex_.
  bool stopping_ = false;
  std::deque<std::unique_ptr<Entry>> entries_;  // begun, oldest first
  std::vector<std::unique_ptr<Entry>> free_;
  PhaseRecord records_[static_cast<size_t>(Work::kCount)][static_cast<size_t>(Phase::kCount)];
  std::string failure_;
  Clock::time_point failed_;

  std::thread thread_;
};

}  // namespace elastor::cuda

#endif  // ELASTOR_COLLECTIVE_CUDA_CALL_WATCH_H_
