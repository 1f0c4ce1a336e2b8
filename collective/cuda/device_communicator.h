#ifndef ELASTOR_COLLECTIVE_CUDA_DEVICE_COMMUNICATOR_H_
#define ELASTOR_COLLECTIVE_CUDA_DEVICE_COMMUNICATOR_H_

#include <cstdint>
#include <memory>
#include <span>

#include "collective/communicator.h"
#include "core/cuda/runtime.h"

namespace elastor::cuda {

// Moves bytes between the devices of a job's ranks, in stream order: calls enqueue, and every rank
// makes the same calls in the same order, from one thread, never while a graph is captured. Lengths
// are known on the host (exchanged before by the host's Communicator). A peer that is lost or late
// ends the job: machine error, exit code 3, within the deadline.
class DeviceCommunicator {
 public:
  // host: the job's communicator, which outlives the object.
  explicit DeviceCommunicator(Communicator* host) : host_(host) {}
  virtual ~DeviceCommunicator() = default;
  DeviceCommunicator(const DeviceCommunicator&) = delete;
  DeviceCommunicator& operator=(const DeviceCommunicator&) = delete;

  int rank() const { return host_->rank(); }
  int size() const { return host_->size(); }
  Communicator* host() const { return host_; }

  // Works as the Communicator's call of the same name, on device memory. A rank's own block is
  // copied.
  virtual Status AllToAllV(Phase phase, Stream& stream, const void* send,
                           std::span<const int64_t> send_bytes, void* receive,
                           std::span<const int64_t> receive_bytes) = 0;
  virtual Status AllGatherV(Phase phase, Stream& stream, const void* send, void* receive,
                            std::span<const int64_t> bytes) = 0;
  // Adds the ranks' arrays of integers element by element; every rank's array becomes the sum.
  virtual Status AllReduceSum(Phase phase, Stream& stream, int64_t* values, int64_t count) = 0;
  // Sums floats, in an order that the library chooses. Only the fast mode uses it.
  virtual Status AllReduceSum(Phase phase, Stream& stream, float* values, int64_t count) = 0;

  // The host waits until the event is done, watching the peers: machine error when one is lost or
  // the deadline passes. The message names `what` as the thing waited for.
  virtual Status Wait(const Event& event, const char* what) = 0;

  // Returns the bytes that this object itself sent and received, which host()'s records leave out,
  // and its calls' seconds on the device, waiting for peers included. Unfinished calls do not
  // count. All fields are 0 if everything goes through host().
  virtual PhaseRecord record(Phase phase, Work work) = 0;

  // Returns "nccl 2.28.9", "host" or "self" (one rank). The run's summary shows it.
  virtual const char* name() const = 0;

 private:
  Communicator* host_;
};

// Makes a communicator that goes through the host's memory and its Communicator. It serves where
// NCCL is missing or refuses (several ranks on one device), and in tests. A call waits for the
// stream, except with one rank, which only copies. Every rank adds all ranks' floats in the order
// of ranks.
std::unique_ptr<DeviceCommunicator> MakeHostDeviceCommunicator(Communicator* host);

// Makes a communicator that goes through NCCL, whose unique id is sent over `host`. Collective.
// Machine error, the same on all ranks, when NCCL cannot start; user error in a build without it.
// With one rank it copies, without NCCL. deadline_seconds: the longest time from a call to its end
// on the device.
StatusOr<std::unique_ptr<DeviceCommunicator>> MakeNcclCommunicator(Communicator* host,
                                                                   double deadline_seconds);

// Chooses between the two: takes NCCL if every rank has a device of its own, else the host, with a
// warning from rank 0. Ranks of different NCCL_HOSTID count as on different hosts, as they do for
// NCCL, so those may share a device. Collective.
StatusOr<std::unique_ptr<DeviceCommunicator>> MakeDeviceCommunicator(Communicator* host,
                                                                     double deadline_seconds);

}  // namespace elastor::cuda

#endif  // ELASTOR_COLLECTIVE_CUDA_DEVICE_COMMUNICATOR_H_
