// The device communicator that goes through page-locked memory and the host's Communicator.
#include <numeric>
#include <utility>
#include <vector>

#include "collective/cuda/device_communicator.h"
#include "core/base/log.h"

namespace elastor::cuda {
namespace {

int64_t Sum(std::span<const int64_t> bytes) {
  return std::accumulate(bytes.begin(), bytes.end(), int64_t{0});
}

class HostDeviceCommunicator final : public DeviceCommunicator {
 public:
  explicit HostDeviceCommunicator(Communicator* host) : DeviceCommunicator(host) {}
  ~HostDeviceCommunicator() override { returned_.Synchronize(); }

  // Page-locked memory holds the other ranks' blocks, own ones left out, back to back.
  Status AllToAllV(Phase phase, Stream& stream, const void* send,
                   std::span<const int64_t> send_bytes, void* receive,
                   std::span<const int64_t> receive_bytes) override {
    CHECK_EQ(static_cast<int>(send_bytes.size()), size());
    CHECK_EQ(static_cast<int>(receive_bytes.size()), size());
    CHECK_EQ(send_bytes[rank()], receive_bytes[rank()]);
    const char* const from = static_cast<const char*>(send);
    char* const to = static_cast<char*>(receive);
    const int64_t sent_before = Sum(send_bytes.first(rank()));
    const int64_t received_before = Sum(receive_bytes.first(rank()));
    const int64_t own = send_bytes[rank()];
    Copy(stream, to + received_before, from + sent_before, own);
    if (size() == 1) return OkStatus();

    const int64_t sent = Sum(send_bytes) - own;
    const int64_t received = Sum(receive_bytes) - own;
    Reserve(sent, received);
    Copy(stream, send_.data(), from, sent_before);
    Copy(stream, send_.data() + sent_before, from + sent_before + own, sent - sent_before);
    stream.Synchronize();
    send_lengths_.assign(send_bytes.begin(), send_bytes.end());
    receive_lengths_.assign(receive_bytes.begin(), receive_bytes.end());
    send_lengths_[rank()] = receive_lengths_[rank()] = 0;
    ELASTOR_RETURN_IF_ERROR(
        host()->AllToAllV(phase, send_.data(), send_lengths_, receive_.data(), receive_lengths_));
    Copy(stream, to, receive_.data(), received_before);
    Copy(stream, to + received_before + own, receive_.data() + received_before,
         received - received_before);
    returned_.Record(stream);
    return OkStatus();
  }

  Status AllGatherV(Phase phase, Stream& stream, const void* send, void* receive,
                    std::span<const int64_t> bytes) override {
    CHECK_EQ(static_cast<int>(bytes.size()), size());
    const int64_t before = Sum(bytes.first(rank()));
    const int64_t own = bytes[rank()];
    char* const to = static_cast<char*>(receive);
    if (to + before != send) Copy(stream, to + before, static_cast<const char*>(send), own);
    if (size() == 1) return OkStatus();

    const int64_t total = Sum(bytes);
    Reserve(own, total);
    Copy(stream, send_.data(), static_cast<const char*>(send), own);
    stream.Synchronize();
    ELASTOR_RETURN_IF_ERROR(host()->AllGatherV(phase, send_.data(), receive_.data(), bytes));
    Copy(stream, to, receive_.data(), before);
    Copy(stream, to + before + own, receive_.data() + before + own, total - before - own);
    returned_.Record(stream);
    return OkStatus();
  }

  Status AllReduceSum(Phase phase, Stream& stream, int64_t* values, int64_t count) override {
    if (size() == 1) return OkStatus();
    const int64_t bytes = count * static_cast<int64_t>(sizeof(int64_t));
    Reserve(bytes, 0);
    int64_t* const sums = reinterpret_cast<int64_t*>(send_.data());
    Copy(stream, sums, values, count);
    stream.Synchronize();
    ELASTOR_RETURN_IF_ERROR(
        host()->AllReduceSum(phase, std::span<int64_t>(sums, static_cast<size_t>(count))));
    Copy(stream, values, sums, count);
    returned_.Record(stream);
    return OkStatus();
  }

  // The Communicator never adds floats: their values travel, and are added here.
  Status AllReduceSum(Phase phase, Stream& stream, float* values, int64_t count) override {
    if (size() == 1) return OkStatus();
    const int64_t bytes = count * static_cast<int64_t>(sizeof(float));
    Reserve(bytes, bytes * size());
    float* const sums = reinterpret_cast<float*>(send_.data());
    Copy(stream, sums, values, count);
    stream.Synchronize();
    receive_lengths_.assign(size(), bytes);
    ELASTOR_RETURN_IF_ERROR(host()->AllGatherV(phase, sums, receive_.data(), receive_lengths_));
    const float* const ranks = reinterpret_cast<const float*>(receive_.data());
    for (int64_t i = 0; i < count; ++i) sums[i] = ranks[i];
    for (int r = 1; r < size(); ++r) {
      for (int64_t i = 0; i < count; ++i) sums[i] += ranks[r * count + i];
    }
    Copy(stream, values, sums, count);
    returned_.Record(stream);
    return OkStatus();
  }

  // No work of a stream waits for a peer.
  Status Wait(const Event& event, const char*) override {
    event.Synchronize();
    return OkStatus();
  }

  PhaseRecord record(Phase, Work) override { return {}; }
  const char* name() const override { return size() == 1 ? "self" : "host"; }

 private:
  // The last call's copies to the device may still be under way, on another stream even.
  void Reserve(int64_t send_bytes, int64_t receive_bytes) {
    returned_.Synchronize();
    send_.Resize(send_bytes);
    receive_.Resize(receive_bytes);
  }

  PinnedBuffer<char> send_;
  PinnedBuffer<char> receive_;
  Event returned_;  // the last call's result lies in device memory
  std::vector<int64_t> send_lengths_;
  std::vector<int64_t> receive_lengths_;
};

}  // namespace

std::unique_ptr<DeviceCommunicator> MakeHostDeviceCommunicator(Communicator* host) {
  return std::make_unique<HostDeviceCommunicator>(host);
}

}  // namespace elastor::cuda
