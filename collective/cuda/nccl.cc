// The device communicator over NCCL: grouped sends and receives of bytes, and its sums. The library
// is given calls in the blocking way; CallWatch ends a job whose peers are lost.
#include <cuda_runtime_api.h>
#include <nccl.h>
#include <sched.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <mutex>
#include <numeric>
#include <utility>
#include <vector>

#include "collective/call_messages.h"
#include "collective/cuda/call_watch.h"
#include "collective/cuda/nccl_backend.h"
#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/cuda/device_error.h"

namespace elastor::cuda {
namespace {

// A wait on the host asks without pause for so long, as the ends of steps are near, then lets other
// threads of its core run in between.
constexpr double kBusyWaitSeconds = 200e-6;

int64_t Sum(std::span<const int64_t> bytes) {
  return std::accumulate(bytes.begin(), bytes.end(), int64_t{0});
}

std::string Explain(ncclResult_t result, ncclComm_t communicator) {
  std::string text = ncclGetErrorString(result);
  const char* const last = ncclGetLastError(communicator);
  if (last != nullptr && *last != '\0') text += std::string("; ") + last;
  return text;
}

class NcclCommunicator final : public DeviceCommunicator {
 public:
  NcclCommunicator(Communicator* host, double deadline_seconds)
      : DeviceCommunicator(host),
        deadline_seconds_(deadline_seconds),
        watch_(MakeWatchOptions(host->rank(), deadline_seconds)) {
    int version = 0;
    ncclGetVersion(&version);
    name_ = "nccl " + std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) +
            "." + std::to_string(version % 100);
  }

  ~NcclCommunicator() override {
    if (communicator_ == nullptr) return;
    if (watch_.Begin({"ncclCommDestroy", Phase::kSetup, 0, 0, 0}, nullptr).ok()) {
      ncclCommDestroy(ForgetCommunicator());
      watch_.End(nullptr);
    } else {
      Abort();
    }
  }

  // Collective.
  Status Start(const ncclUniqueId& id) {
    return Run({"ncclCommInitRank", Phase::kSetup, 0, 0, 0}, nullptr, [&] {
      ncclComm_t made = nullptr;
      const ncclResult_t result = ncclCommInitRank(&made, size(), id, rank());
      const std::lock_guard lock(mutex_);
      communicator_ = made;
      return result;
    });
  }

  Status AllToAllV(Phase phase, Stream& stream, const void* send,
                   std::span<const int64_t> send_bytes, void* receive,
                   std::span<const int64_t> receive_bytes) override {
    CHECK_EQ(static_cast<int>(send_bytes.size()), size());
    CHECK_EQ(static_cast<int>(receive_bytes.size()), size());
    CHECK_EQ(send_bytes[rank()], receive_bytes[rank()]);
    const char* from = static_cast<const char*>(send);
    char* to = static_cast<char*>(receive);
    blocks_.clear();
    for (int peer = 0; peer < size(); ++peer) {
      blocks_.push_back({from, send_bytes[peer], to, receive_bytes[peer]});
      from += send_bytes[peer];
      to += receive_bytes[peer];
    }
    const Sent sent = SentInAllToAll(rank(), send_bytes);
    const DeviceCall call = {"AllToAllV", phase, sent.messages, sent.bytes,
                             Sum(receive_bytes) - receive_bytes[rank()]};
    return Exchange(call, stream);
  }

  Status AllGatherV(Phase phase, Stream& stream, const void* send, void* receive,
                    std::span<const int64_t> bytes) override {
    CHECK_EQ(static_cast<int>(bytes.size()), size());
    const int64_t own = bytes[rank()];
    const Sent sent = SentInAllGather(rank(), size(), own);
    const DeviceCall call = {"AllGatherV", phase, sent.messages, sent.bytes, Sum(bytes) - own};
    if (std::all_of(bytes.begin(), bytes.end(), [&](int64_t b) { return b == own; })) {
      if (own == 0) return watch_.failure();
      return Run(call, &stream, [&] {
        return ncclAllGather(send, receive, static_cast<size_t>(own), ncclInt8, communicator_,
                             internal::Handle(stream));
      });
    }
    char* to = static_cast<char*>(receive);
    blocks_.clear();
    for (const int64_t length : bytes) {
      blocks_.push_back({static_cast<const char*>(send), own, to, length});
      to += length;
    }
    return Exchange(call, stream);
  }

  // Unsigned: sums wrap.
  Status AllReduceSum(Phase phase, Stream& stream, int64_t* values, int64_t count) override {
    return AllReduce(phase, stream, values, count, ncclUint64, sizeof(int64_t));
  }
  Status AllReduceSum(Phase phase, Stream& stream, float* values, int64_t count) override {
    return AllReduce(phase, stream, values, count, ncclFloat32, sizeof(float));
  }

  Status Wait(const Event& event, const char* what) override {
    const Clock::time_point start = Clock::now();
    while (!event.Done()) {
      const double waited = SecondsSince(start);
      if (waited < kBusyWaitSeconds) continue;
      if (waited > deadline_seconds_) watch_.FailWaiting(what);
      if (Status failure = watch_.failure(); !failure.ok()) {
        Abort();
        return failure;
      }
      sched_yield();
    }
    return OkStatus();
  }

  PhaseRecord record(Phase phase, Work work) override { return watch_.record(phase, work); }
  const char* name() const override { return name_.c_str(); }

 private:
  // What goes to a peer and what comes from it.
  struct Block {
    const char* send;
    int64_t send_bytes;
    char* receive;
    int64_t receive_bytes;
  };

  CallWatch::Options MakeWatchOptions(int rank, double deadline_seconds) {
    CallWatch::Options options;
    options.rank = rank;
    options.deadline_seconds = deadline_seconds;
    options.error = [this] { return AsynchronousError(); };
    return options;
  }

  // Sends to rank + 1, rank + 2, ... and receives from rank - 1, rank - 2, ...: all in one group,
  // so none waits for another.
  Status Exchange(const DeviceCall& call, Stream& stream) {
    const Block& own = blocks_[rank()];
    if (own.receive != own.send) Copy(stream, own.receive, own.send, own.send_bytes);
    if (call.bytes_sent + call.bytes_received == 0) return watch_.failure();
    return Run(call, &stream, [&] {
      ncclResult_t first_error = ncclGroupStart();
      const auto add = [&](ncclResult_t result) {
        if (first_error == ncclSuccess) first_error = result;
      };
      for (int i = 1; i < size(); ++i) {
        const int to = (rank() + i) % size();
        const int from = (rank() - i + size()) % size();
        const Block& out = blocks_[to];
        const Block& in = blocks_[from];
        if (out.send_bytes > 0) {
          add(ncclSend(out.send, static_cast<size_t>(out.send_bytes), ncclInt8, to, communicator_,
                       internal::Handle(stream)));
        }
        if (in.receive_bytes > 0) {
          add(ncclRecv(in.receive, static_cast<size_t>(in.receive_bytes), ncclInt8, from,
                       communicator_, internal::Handle(stream)));
        }
      }
      const ncclResult_t end = ncclGroupEnd();
      return first_error != ncclSuccess ? first_error : end;
    });
  }

  Status AllReduce(Phase phase, Stream& stream, void* values, int64_t count, ncclDataType_t type,
                   int64_t element_bytes) {
    if (count == 0) return watch_.failure();
    // Counted as a ring: every rank sends all but its own N-th of the values, twice.
    const int64_t bytes = 2 * (count * element_bytes * (size() - 1) / size());
    return Run({"AllReduceSum", phase, 2 * (size() - 1), bytes, bytes}, &stream, [&] {
      return ncclAllReduce(values, values, static_cast<size_t>(count), type, ncclSum, communicator_,
                           internal::Handle(stream));
    });
  }

  // stream: null for a call of the host.
  Status Run(DeviceCall call, Stream* stream, const std::function<ncclResult_t()>& enqueue) {
    call.work = host()->work();
    Status status = watch_.Begin(call, stream);
    if (status.ok()) {
      const ncclResult_t result = Finished(enqueue());
      if (result == ncclSuccess) {
        watch_.End(stream);
        return OkStatus();
      }
      watch_.Fail(Explain(result, communicator_));
      status = watch_.failure();
    }
    Abort();
    return status;
  }

  // NCCL_COMM_BLOCKING=0 in the environment makes calls return before they have enqueued.
  ncclResult_t Finished(ncclResult_t result) {
    while (result == ncclInProgress && watch_.failure().ok()) {
      sched_yield();
      if (communicator_ == nullptr) return ncclInternalError;
      const ncclResult_t asked = ncclCommGetAsyncError(communicator_, &result);
      if (asked != ncclSuccess) return asked;
    }
    return result;
  }

  // By the watching thread.
  std::string AsynchronousError() {
    const std::lock_guard lock(mutex_);
    if (communicator_ == nullptr) return "";
    ncclResult_t result = ncclSuccess;
    if (const ncclResult_t asked = ncclCommGetAsyncError(communicator_, &result);
        asked != ncclSuccess) {
      result = asked;
    }
    if (result == ncclSuccess || result == ncclInProgress) return "";
    return Explain(result, communicator_);
  }

  // Ends the library's work on the streams, so that the host need not wait for it for ever.
  void Abort() {
    if (communicator_ != nullptr) ncclCommAbort(ForgetCommunicator());
  }

  ncclComm_t ForgetCommunicator() {
    const std::lock_guard lock(mutex_);
    return std::exchange(communicator_, nullptr);
  }

  const double deadline_seconds_;
  std::string name_;
  std::vector<Block> blocks_;  // of the call at hand, by peer
  std::mutex mutex_;           // the watching thread against the owner's changes of communicator_
  ncclComm_t communicator_ = nullptr;  // null before the start and after the end
  CallWatch watch_;
};

}  // namespace

namespace internal {

bool HaveNccl() { return true; }

std::string DeviceIdentity() {
  UseDevice();
  int device = 0;
  cudaDeviceProp properties;
  Check(cudaGetDevice(&device), "cudaGetDevice");
  Check(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
  std::string text = "GPU-";
  for (const char byte : properties.uuid.bytes) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", static_cast<unsigned char>(byte));
    text += digits;
  }
  return text;
}

StatusOr<std::unique_ptr<DeviceCommunicator>> StartNccl(Communicator* host,
                                                        double deadline_seconds) {
  UseDevice();
  ncclUniqueId id = {};
  Status status;
  if (host->rank() == 0) {
    if (const ncclResult_t result = ncclGetUniqueId(&id); result != ncclSuccess) {
      status = MachineError("ncclGetUniqueId: " + Explain(result, nullptr));
    }
  }
  ELASTOR_RETURN_IF_ERROR(AgreeOnStatus(*host, status));
  ELASTOR_RETURN_IF_ERROR(host->Broadcast(Phase::kSetup, &id, sizeof id, 0));
  auto communicator = std::make_unique<NcclCommunicator>(host, deadline_seconds);
  ELASTOR_RETURN_IF_ERROR(AgreeOnStatus(*host, communicator->Start(id)));
  return std::unique_ptr<DeviceCommunicator>(std::move(communicator));
}

}  // namespace internal
}  // namespace elastor::cuda
