#ifndef ELASTOR_COLLECTIVE_COMMUNICATOR_H_
#define ELASTOR_COLLECTIVE_COMMUNICATOR_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/status.h"

namespace elastor {

// What a collective call is part of; bytes and time are recorded per phase.
enum class Phase {
  kSetup,
  kIdExchange,        // unique ids to their owners
  kRowExchange,       // rows home
  kGradientExchange,  // embedding gradients to their owners
  kDenseReduce,       // dense gradients to slice owners
  kDenseGather,       // new dense weights to everybody
  kScalars,           // loss, norm, counters
  kMetrics,           // evaluation
  kCount,
};
const char* PhaseName(Phase phase);

struct PhaseRecord {
  int64_t calls = 0;
  int64_t bytes_sent = 0;      // to other ranks
  int64_t bytes_received = 0;  // from other ranks
  double seconds = 0;          // inside the calls, waiting included
};

// Moves bytes between the ranks of a job and sums integers; never adds floating-point numbers
// (docs/design.md: no floating-point reduction inside MPI or NCCL). Every rank makes the same calls
// in the same order from one thread. Every collective has a deadline: when a peer does not arrive
// in time the job ends with exit code 3 and a line naming rank, call, phase and bytes (Mpi: aborts
// the job; Thread: every rank's call returns a machine error). Counts are 64-bit: messages beyond
// 2^31 bytes are cut into pieces.
class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;

  virtual Status Barrier(Phase phase) = 0;
  // send and receive: size() blocks of block_bytes; block r goes to / comes from rank r.
  virtual Status AllToAll(Phase phase, const void* send, void* receive, size_t block_bytes) = 0;
  // Block r of send (send_bytes[r] long, blocks back to back in rank order) goes to rank r.
  // REQUIRES: receive_bytes[r] is what rank r sends here (exchanged before with AllToAll).
  virtual Status AllToAllV(Phase phase, const void* send, std::span<const int64_t> send_bytes,
                           void* receive, std::span<const int64_t> receive_bytes) = 0;
  // Everybody gets everybody's block, back to back in rank order; bytes[r] is rank r's length,
  // alike on all ranks.
  virtual Status AllGatherV(Phase phase, const void* send, void* receive,
                            std::span<const int64_t> bytes) = 0;
  virtual Status Broadcast(Phase phase, void* data, size_t bytes, int root) = 0;
  // In place, element-wise. Sums wrap modulo 2^64.
  virtual Status AllReduceSum(Phase phase, std::span<int64_t> values) = 0;
  virtual Status AllReduceMax(Phase phase, std::span<int64_t> values) = 0;

  const PhaseRecord& record(Phase phase) const { return records_[static_cast<size_t>(phase)]; }

 protected:
  PhaseRecord& mutable_record(Phase phase) { return records_[static_cast<size_t>(phase)]; }

 private:
  PhaseRecord records_[static_cast<size_t>(Phase::kCount)];
};

struct CommunicatorOptions {
  double deadline_seconds = 300;
  // Longest single message; longer ones are cut into pieces of this size (lowered in tests).
  int64_t max_message_bytes = int64_t{1} << 30;
};

// One rank, no peers.
std::unique_ptr<Communicator> MakeSelfCommunicator();

// `ranks` communicators for threads of this process: the specification to read, and what unit tests
// use. Each is used by one thread.
std::vector<std::unique_ptr<Communicator>> MakeThreadCommunicators(
    int ranks, const CommunicatorOptions& options);

// MPI_COMM_WORLD. Initialises MPI when the process was started by mpirun or srun (PMIx/PMI
// variables present) and finalises it when destroyed; otherwise returns Self, so that a program
// runs alone without MPI's help. The creating thread owns MPI initially; ownership may move to
// one other thread (MPI_THREAD_SERIALIZED).
StatusOr<std::unique_ptr<Communicator>> MakeWorldCommunicator(const CommunicatorOptions& options);

// Ranks agree on the worst status: everybody returns the failing status of the lowest failing rank
// (message broadcast), so that all leave in order with one line printed by rank 0.
Status AgreeOnStatus(Communicator& communicator, const Status& mine);

}  // namespace elastor

#endif  // ELASTOR_COLLECTIVE_COMMUNICATOR_H_
