// Self and Thread. Thread is the specification of the collectives: every rank shows the others
// where its arguments lie, everybody copies what it needs, and nobody leaves before all have
// copied.
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <numeric>

#include "collective/communicator.h"
#include "core/base/log.h"

namespace elastor {
namespace {

int64_t OffsetOf(int block, std::span<const int64_t> bytes) {
  return std::accumulate(bytes.begin(), bytes.begin() + block, int64_t{0});
}

void CopyBlock(const char* from, int64_t bytes, char* to) {
  if (bytes > 0 && to != from) std::memcpy(to, from, static_cast<size_t>(bytes));
}

class SelfCommunicator final : public Communicator {
 public:
  SelfCommunicator() : Communicator(0, 1) {}

 private:
  Status DoBarrier(const Call&) override { return OkStatus(); }
  Status DoAllToAllV(const Call&, const char* send, std::span<const int64_t> send_bytes,
                     char* receive, std::span<const int64_t>) override {
    CopyBlock(send, send_bytes[0], receive);
    return OkStatus();
  }
  Status DoAllGatherV(const Call&, const char* send, char* receive,
                      std::span<const int64_t> bytes) override {
    CopyBlock(send, bytes[0], receive);
    return OkStatus();
  }
  Status DoBroadcast(const Call&, char*, int64_t, int) override { return OkStatus(); }
  Status DoAllReduce(const Call&, Reduction, std::span<int64_t>) override { return OkStatus(); }
};

// What one rank shows the others during a call.
struct Shown {
  Call call = {};
  const char* data = nullptr;            // bytes to send
  std::span<const int64_t> bytes = {};   // of the blocks of `data`
  std::span<const int64_t> values = {};  // of an all-reduce
};

// Where the ranks meet, twice a call. Thread-safe.
class MeetingPlace {
 public:
  MeetingPlace(int ranks, double deadline_seconds)
      : deadline_seconds_(deadline_seconds), shown_(ranks), present_(ranks, false) {}

  double deadline_seconds() const { return deadline_seconds_; }

  // Shows `mine` and waits until every rank has shown its own. False when one did not come before
  // the deadline: *missing then names the absent ranks (empty on a rank that came too late), and
  // every later Arrive fails too.
  bool Arrive(int rank, const Shown& mine, std::vector<int>* missing) {
    std::unique_lock lock(mutex_);
    if (broken_) return false;
    shown_[rank] = mine;
    present_[rank] = true;
    const int64_t meeting = meetings_;
    if (++arrived_ == ranks()) {
      CheckSameCall();
      arrived_ = 0;
      std::fill(present_.begin(), present_.end(), false);
      NextMeeting();
      return true;
    }
    changed_.wait_for(lock, std::chrono::duration<double>(deadline_seconds_),
                      [&] { return meetings_ != meeting || broken_; });
    if (meetings_ != meeting) return true;
    broken_ = true;
    changed_.notify_all();
    for (int r = 0; r < ranks(); ++r) {
      if (!present_[r]) missing->push_back(r);
    }
    return false;
  }

  // Waits until every rank has copied. Without a deadline: all have arrived and only copy.
  void Leave() {
    std::unique_lock lock(mutex_);
    const int64_t meeting = meetings_;
    if (++leaving_ == ranks()) {
      leaving_ = 0;
      NextMeeting();
      return;
    }
    changed_.wait(lock, [&] { return meetings_ != meeting; });
  }

  // Between Arrive and Leave: what a rank shows.
  const Shown& shown(int rank) const { return shown_[rank]; }

 private:
  int ranks() const { return static_cast<int>(shown_.size()); }

  void NextMeeting() {
    ++meetings_;
    changed_.notify_all();
  }

  void CheckSameCall() const {
    for (int r = 1; r < ranks(); ++r) {
      const Call& call = shown_[r].call;
      const Call& expected = shown_[0].call;
      CHECK(call.number == expected.number && HistoryWith(0, call) == HistoryWith(0, expected))
          << "rank " << r << " makes another call: " << DescribeCall(call) << ", rank 0 "
          << DescribeCall(expected);
    }
  }

  const double deadline_seconds_;

  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_; shown_ is read without it between Arrive and Leave, when nobody writes it.
  std::vector<Shown> shown_;
  std::vector<bool> present_;
  int arrived_ = 0;
  int leaving_ = 0;
  int64_t meetings_ = 0;
  bool broken_ = false;
};

class ThreadCommunicator final : public Communicator {
 public:
  ThreadCommunicator(int rank, int size, std::shared_ptr<MeetingPlace> place)
      : Communicator(rank, size), place_(std::move(place)) {}

 private:
  Status DoBarrier(const Call& call) override {
    return Meet(call, {}, [] {});
  }

  Status DoAllToAllV(const Call& call, const char* send, std::span<const int64_t> send_bytes,
                     char* receive, std::span<const int64_t> receive_bytes) override {
    return Meet(call, {.data = send, .bytes = send_bytes}, [&] {
      for (int r = 0; r < size(); ++r) {
        const Shown& peer = place_->shown(r);
        CHECK_EQ(receive_bytes[r], peer.bytes[rank()]) << "from rank " << r;
        CopyBlock(peer.data + OffsetOf(rank(), peer.bytes), receive_bytes[r], receive);
        receive += receive_bytes[r];
      }
    });
  }

  Status DoAllGatherV(const Call& call, const char* send, char* receive,
                      std::span<const int64_t> bytes) override {
    return Meet(call, {.data = send, .bytes = bytes}, [&] {
      for (int r = 0; r < size(); ++r) {
        const Shown& peer = place_->shown(r);
        CHECK_EQ(bytes[r], peer.bytes[r]) << "from rank " << r;
        CopyBlock(peer.data, bytes[r], receive);
        receive += bytes[r];
      }
    });
  }

  Status DoBroadcast(const Call& call, char* data, int64_t bytes, int root) override {
    return Meet(call, {.data = data}, [&] { CopyBlock(place_->shown(root).data, bytes, data); });
  }

  Status DoAllReduce(const Call& call, Reduction reduction, std::span<int64_t> values) override {
    reduced_.assign(values.begin(), values.end());
    ELASTOR_RETURN_IF_ERROR(Meet(call, {.values = values}, [&] {
      for (int r = 0; r < size(); ++r) {
        if (r == rank()) continue;
        const std::span<const int64_t> theirs = place_->shown(r).values;
        for (size_t i = 0; i < reduced_.size(); ++i) {
          reduced_[i] = Reduce(reduction, reduced_[i], theirs[i]);
        }
      }
    }));
    std::copy(reduced_.begin(), reduced_.end(), values.begin());
    return OkStatus();
  }

  static int64_t Reduce(Reduction reduction, int64_t a, int64_t b) {
    if (reduction == Reduction::kMax) return std::max(a, b);
    return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  }

  template <typename Copy>
  Status Meet(const Call& call, Shown mine, Copy copy) {
    mine.call = call;
    std::vector<int> missing;
    if (!place_->Arrive(rank(), mine, &missing)) {
      return MachineError(DescribeDeadline(call, place_->deadline_seconds(), missing));
    }
    copy();
    place_->Leave();
    return OkStatus();
  }

  std::shared_ptr<MeetingPlace> place_;
  std::vector<int64_t> reduced_;
};

}  // namespace

std::unique_ptr<Communicator> MakeSelfCommunicator() {
  return std::make_unique<SelfCommunicator>();
}

std::vector<std::unique_ptr<Communicator>> MakeThreadCommunicators(
    int ranks, const CommunicatorOptions& options) {
  auto place = std::make_shared<MeetingPlace>(ranks, options.deadline_seconds);
  std::vector<std::unique_ptr<Communicator>> communicators;
  for (int r = 0; r < ranks; ++r) {
    communicators.push_back(std::make_unique<ThreadCommunicator>(r, ranks, place));
  }
  return communicators;
}

}  // namespace elastor
