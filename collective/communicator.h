#ifndef ELASTOR_COLLECTIVE_COMMUNICATOR_H_
#define ELASTOR_COLLECTIVE_COMMUNICATOR_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "collective/call.h"
#include "collective/call_messages.h"
#include "core/base/status.h"

namespace elastor {

struct PhaseRecord {
  int64_t calls = 0;
  int64_t messages_sent = 0;   // to other ranks
  int64_t bytes_sent = 0;      // to other ranks
  int64_t bytes_received = 0;  // from other ranks
  double seconds = 0;          // inside the calls, waiting included
  // Of what was sent, to ranks of other hosts (Communicator::NoteHosts).
  int64_t messages_between_hosts = 0;
  int64_t bytes_between_hosts = 0;

  PhaseRecord& operator+=(const PhaseRecord& other) {
    calls += other.calls;
    messages_sent += other.messages_sent;
    bytes_sent += other.bytes_sent;
    bytes_received += other.bytes_received;
    seconds += other.seconds;
    messages_between_hosts += other.messages_between_hosts;
    bytes_between_hosts += other.bytes_between_hosts;
    return *this;
  }
};

// Moves bytes between the ranks of a job and sums integers; never adds floating-point numbers
// (docs/inside/design.md: no floating-point reduction inside MPI or NCCL). Every rank makes the
// same calls in the same order, one thread at a time; calls that differ never exchange data (Mpi:
// the job ends with exit code 3 and a line naming both, about a second later; Thread: a program
// error). Every collective has a deadline: when a peer does not arrive in time the job ends with
// exit code 3 and a line naming rank, call, phase and bytes (Mpi: aborts the job; Thread: every
// rank's call returns a machine error). Counts are 64-bit: messages beyond 2^31 bytes are cut into
// pieces.
//
// Steps and bytes on the wire: README.md. Bytes are recorded as the Mpi algorithms send them,
// whatever the communicator, so a test on threads shows what a cluster would send.
class Communicator {
 public:
  virtual ~Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  // From now on the record tells what goes to other hosts. host_of: by rank, the number of its
  // host.
  void NoteHosts(std::vector<int> host_of) { host_of_ = std::move(host_of); }
  // Returns the name of this rank's host; empty between threads of one process.
  virtual std::string host() const { return {}; }
  int rank() const { return rank_; }
  int size() const { return size_; }

  Status Barrier(Phase phase);
  // Exchanges blocks between all ranks. send and receive: size() blocks of block_bytes; block r
  // goes to / comes from rank r.
  Status AllToAll(Phase phase, const void* send, void* receive, size_t block_bytes);
  // Block r of send (send_bytes[r] long, blocks back to back in rank order) goes to rank r.
  // REQUIRES: receive_bytes[r] is what rank r sends here (exchanged before with AllToAll).
  Status AllToAllV(Phase phase, const void* send, std::span<const int64_t> send_bytes,
                   void* receive, std::span<const int64_t> receive_bytes);
  // Every rank gets every rank's block, back to back in rank order; bytes[r] is rank r's length,
  // alike on all ranks. send may be this rank's block of receive (in place).
  Status AllGatherV(Phase phase, const void* send, void* receive, std::span<const int64_t> bytes);
  Status Broadcast(Phase phase, void* data, size_t bytes, int root);
  // Sums the ranks' values element by element, in place. Sums wrap modulo 2^64.
  Status AllReduceSum(Phase phase, std::span<int64_t> values);
  Status AllReduceMax(Phase phase, std::span<int64_t> values);

  // Called when this rank has printed why the job ends and will exit without another call. Tells
  // the other ranks: those that wait, now or later, exit too and print nothing.
  virtual void Abandon() {}

  // Records what this rank's main thread does from now on, for the watchdog to print
  // (CommunicatorOptions::watchdog_seconds). Only that thread may call it. Costs one store.
  void Enter(Activity activity) {
    const uint64_t now = activity_.load(std::memory_order_relaxed);
    if (static_cast<Activity>(now & kActivityMask) == activity) return;
    activity_.store((now | kActivityMask) + 1 + static_cast<uint64_t>(activity),
                    std::memory_order_relaxed);
  }

  // Returns the work that the main thread makes calls for.
  Work work() const { return WorkOf(activity()); }
  const PhaseRecord& record(Phase phase, Work work) const {
    return records_[static_cast<size_t>(work)][static_cast<size_t>(phase)];
  }
  PhaseRecord record(Phase phase) const;  // of all work

 protected:
  Communicator(int rank, int size);

  // Returns `call` with the number of this rank's next call.
  Call Numbered(Call call);
  // Returns "rank 3: Barrier (setup, 0 bytes, call 7)".
  std::string Describe(const Call& call) const;
  // Returns "; waiting for rank 1, 2 and 5 more"; empty if there are no ranks.
  static std::string DescribeWaiting(std::span<const int> missing_ranks);
  // Returns Describe + " did not complete within 300 s" + DescribeWaiting.
  std::string DescribeDeadline(const Call& call, double deadline_seconds,
                               std::span<const int> missing_ranks) const;

  Activity activity() const {
    return static_cast<Activity>(activity_.load(std::memory_order_relaxed) & kActivityMask);
  }
  // Changes its value whenever the activity changes.
  uint64_t activity_count() const { return activity_.load(std::memory_order_relaxed); }

  enum class Reduction { kSum, kMax };

 private:
  static constexpr uint64_t kActivityMask = 0xff;

  // The collectives themselves. Arguments are checked; blocks of zero bytes are common.
  virtual Status DoBarrier(const Call& call) = 0;
  virtual Status DoAllToAllV(const Call& call, const char* send,
                             std::span<const int64_t> send_bytes, char* receive,
                             std::span<const int64_t> receive_bytes) = 0;
  virtual Status DoAllGatherV(const Call& call, const char* send, char* receive,
                              std::span<const int64_t> bytes) = 0;
  virtual Status DoBroadcast(const Call& call, char* data, int64_t bytes, int root) = 0;
  virtual Status DoAllReduce(const Call& call, Reduction reduction, std::span<int64_t> values) = 0;

  Status AllReduce(CallKind kind, Phase phase, Reduction reduction, std::span<int64_t> values);
  // Runs the collective as the next call and keeps its record.
  template <typename Collective>
  Status Record(const Call& call, const Sent& between_hosts, Collective collective);
  // Returns whether a rank is on another host, as far as hosts are known.
  auto OnOtherHost() const {
    return [this](int rank) { return !host_of_.empty() && host_of_[rank] != host_of_[rank_]; };
  }

  const int rank_;
  const int size_;
  int64_t calls_ = 0;
  std::atomic<uint64_t> activity_ = 0;  // low byte: the activity; above it: the number of changes
  PhaseRecord records_[static_cast<size_t>(Work::kCount)][static_cast<size_t>(Phase::kCount)];
  std::vector<int64_t> block_bytes_;  // lengths of the blocks of an AllToAll
  std::vector<int> host_of_;          // by rank; empty: not known
};

struct CommunicatorOptions {
  // Longest time the ranks of an MPI job may take to find each other: MPI_Init and the first
  // message each. On a thousand ranks tens of seconds.
  double start_seconds = 60;
  // Longest time one call may take. Raising it delays the end of a job that lost a rank; lowering
  // it below the longest pause of one rank (a checkpoint, an evaluation) ends healthy jobs.
  double deadline_seconds = 300;
  // When a rank of an MPI job has waited this long for others without progress, rank 0 or 1 prints
  // one line: which ranks are late, what they do, and in which call the others wait. It prints
  // another line when the job goes on. A thread that wakes four times a second does this. 0: no
  // lines and no such thread.
  double watchdog_seconds = 0;
  // Longest piece of a message (lowered in tests).
  int64_t max_message_bytes = int64_t{1} << 30;
  // Whether the launcher has begun to end this process (SIGTERM). A rank that then waits for
  // another rank prints so, as the launcher may act because that rank died.
  std::function<bool()> terminated = [] { return false; };
};

// Makes a communicator of one rank without peers.
std::unique_ptr<Communicator> MakeSelfCommunicator();

// Makes `ranks` communicators for threads of this process. They are the specification to read, and
// unit tests use them. Each is used by one thread.
std::vector<std::unique_ptr<Communicator>> MakeThreadCommunicators(
    int ranks, const CommunicatorOptions& options);

// Whether mpirun, or srun with PMIx, started this process (PMIx/PMI variables present).
bool IsStartedByMpi();

// Returns name and version of the MPI library that this process has loaded, in one line.
std::string MpiLibrary();

// Makes the communicator of MPI_COMM_WORLD. Initialises MPI when IsStartedByMpi() and finalises it
// when destroyed, once every rank has reached that point; otherwise returns Self, so that a program
// runs alone without MPI's help. The creating thread owns MPI initially; ownership may move to one
// other thread (MPI_THREAD_SERIALIZED). Once per process. User error when srun started several
// tasks without PMIx: each would run alone.
StatusOr<std::unique_ptr<Communicator>> MakeWorldCommunicator(const CommunicatorOptions& options);

// Copies the root's text, of any length, to every rank.
Status BroadcastText(Communicator& communicator, Phase phase, int root, std::string* text);

// Makes all ranks agree on one status: every rank returns the failing status of the lowest failing
// rank (message broadcast), so that all leave in order with one line printed by rank 0. Every rank
// must call it. If the communicator itself fails, returns `mine` if that is an error, else the
// communicator's error.
Status AgreeOnStatus(Communicator& communicator, const Status& mine);

// Checks that every rank's text equals rank 0's; otherwise returns a user error, the same on all
// ranks, that names a rank, `what` ("the experiment's hash") and both texts.
Status AgreeOnText(Communicator& communicator, const std::string& what, const std::string& mine);

}  // namespace elastor

#endif  // ELASTOR_COLLECTIVE_COMMUNICATOR_H_
