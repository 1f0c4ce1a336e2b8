// The only file that sees MPI. Every collective is made of nonblocking operations that are polled
// against a deadline, because no MPI call returns an error when a peer dies: a blocking one would
// wait for ever.
//
// A rank posts all its receives, then all its sends, to the peers rank+1, rank+2, ... (mod N), so
// that at any moment the N ranks send to N different ones. At N = 1,024 an all-to-all is up to
// 1,023 messages out and 1,023 in per rank (none for empty blocks), and as many connections; the
// broadcast is 10 steps with at most 10 messages from one rank.
#include <mpi.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "collective/broadcast_tree.h"
#include "collective/communicator.h"
#include "glog/logging.h"

namespace elastor {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kMachineExitCode = static_cast<int>(StatusCode::kMachine);

// A waiting rank first yields its core between polls, then naps for an eighth of the time waited so
// far: the nap lengthens a wait by an eighth at most, and ranks that share cores leave them to
// those that compute. The longest nap bounds how long a message in flight is left alone.
constexpr auto kYieldTime = std::chrono::microseconds(1000);
constexpr auto kLongestNap = std::chrono::microseconds(200);

void PauseAfterWaiting(Clock::duration waited) {
  if (waited < kYieldTime) {
    sched_yield();
  } else {
    std::this_thread::sleep_for(std::min<Clock::duration>(waited / 8, kLongestNap));
  }
}

class MpiCommunicator final : public Communicator {
 public:
  MpiCommunicator(int rank, int size, const CommunicatorOptions& options)
      : Communicator(rank, size), options_(options) {
    CHECK_GE(options.max_message_bytes, 1);
    CHECK_LE(options.max_message_bytes, INT_MAX);
  }

  // Meets the other ranks first, against the deadline: MPI_Finalize itself would wait for ever.
  ~MpiCommunicator() override {
    const Call call = {"Finalize", Phase::kSetup, 0, 0};
    Start(call);
    MPI_Ibarrier(MPI_COMM_WORLD, AddRequest(kNoPeer));
    WaitAll();
    MPI_Finalize();
  }

 private:
  static constexpr int kNoPeer = -1;

  Status DoBarrier(const Call& call) override {
    Start(call);
    CheckMpi(MPI_Ibarrier(MPI_COMM_WORLD, AddRequest(kNoPeer)));
    WaitAll();
    return OkStatus();
  }

  Status DoAllToAllV(const Call& call, const char* send, std::span<const int64_t> send_bytes,
                     char* receive, std::span<const int64_t> receive_bytes) override {
    Start(call);
    SetOffsets(receive_bytes);
    for (int i = 1; i < size(); ++i) {
      const int peer = (rank() - i + size()) % size();
      Receive(receive + offsets_[peer], receive_bytes[peer], peer);
    }
    char* const own_block = receive + offsets_[rank()];
    SetOffsets(send_bytes);
    for (int i = 1; i < size(); ++i) {
      const int peer = (rank() + i) % size();
      Send(send + offsets_[peer], send_bytes[peer], peer);
    }
    CopyOwn(send + offsets_[rank()], send_bytes[rank()], own_block);
    WaitAll();
    return OkStatus();
  }

  Status DoAllGatherV(const Call& call, const char* send, char* receive,
                      std::span<const int64_t> bytes) override {
    Start(call);
    SetOffsets(bytes);
    for (int i = 1; i < size(); ++i) {
      const int peer = (rank() - i + size()) % size();
      Receive(receive + offsets_[peer], bytes[peer], peer);
    }
    for (int i = 1; i < size(); ++i) Send(send, bytes[rank()], (rank() + i) % size());
    CopyOwn(send, bytes[rank()], receive + offsets_[rank()]);
    WaitAll();
    return OkStatus();
  }

  Status DoBroadcast(const Call& call, char* data, int64_t bytes, int root) override {
    Start(call);
    const BroadcastPlace place = PlaceInBroadcast(rank(), root, size());
    if (rank() != root) Receive(data, bytes, place.parent);
    WaitAll();
    for (const int child : place.children) Send(data, bytes, child);
    WaitAll();
    return OkStatus();
  }

  // On integers the result does not depend on the algorithm the library chooses.
  Status DoAllReduce(const Call& call, Reduction reduction, std::span<int64_t> values) override {
    Start(call);
    const bool sum = reduction == Reduction::kSum;  // unsigned: wraps
    const size_t piece_length = std::max<size_t>(1, options_.max_message_bytes / sizeof(int64_t));
    for (size_t begin = 0; begin < values.size(); begin += piece_length) {
      const std::span<int64_t> piece =
          values.subspan(begin, std::min(piece_length, values.size() - begin));
      CheckMpi(MPI_Iallreduce(MPI_IN_PLACE, piece.data(), static_cast<int>(piece.size()),
                              sum ? MPI_UINT64_T : MPI_INT64_T, sum ? MPI_SUM : MPI_MAX,
                              MPI_COMM_WORLD, AddRequest(kNoPeer)));
      WaitAll();
    }
    return OkStatus();
  }

  void Start(const Call& call) {
    call_ = call;
    start_ = Clock::now();
  }

  // The messages of one call between two ranks are matched in the order in which they are posted;
  // the tag keeps calls of different phases apart.
  void Receive(char* data, int64_t bytes, int peer) {
    for (int64_t begin = 0; begin < bytes; begin += options_.max_message_bytes) {
      CheckMpi(MPI_Irecv(data + begin, PieceBytes(begin, bytes), MPI_BYTE, peer, Tag(),
                         MPI_COMM_WORLD, AddRequest(peer)));
    }
  }

  void Send(const char* data, int64_t bytes, int peer) {
    for (int64_t begin = 0; begin < bytes; begin += options_.max_message_bytes) {
      CheckMpi(MPI_Isend(data + begin, PieceBytes(begin, bytes), MPI_BYTE, peer, Tag(),
                         MPI_COMM_WORLD, AddRequest(kNoPeer)));
    }
  }

  int PieceBytes(int64_t begin, int64_t bytes) const {
    return static_cast<int>(std::min(options_.max_message_bytes, bytes - begin));
  }

  int Tag() const { return static_cast<int>(call_.phase); }

  static void CopyOwn(const char* from, int64_t bytes, char* to) {
    if (bytes > 0 && to != from) std::memcpy(to, from, static_cast<size_t>(bytes));
  }

  void SetOffsets(std::span<const int64_t> bytes) {
    offsets_.assign(1, 0);
    for (const int64_t length : bytes) offsets_.push_back(offsets_.back() + length);
  }

  // A request to be started at once. peer: the rank whose arrival it waits for.
  MPI_Request* AddRequest(int peer) {
    peers_.push_back(peer);
    return &requests_.emplace_back(MPI_REQUEST_NULL);
  }

  // Returns when all requests are complete; ends the job at the deadline.
  void WaitAll() {
    const Clock::time_point begin = Clock::now();
    while (true) {
      int done = 0;
      CheckMpi(MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &done,
                           MPI_STATUSES_IGNORE));
      if (done) break;
      const Clock::time_point now = Clock::now();
      if (std::chrono::duration<double>(now - start_).count() > options_.deadline_seconds) {
        Abort(DescribeDeadline(call_, options_.deadline_seconds, MissingRanks()));
      }
      PauseAfterWaiting(now - begin);
    }
    requests_.clear();
    peers_.clear();
  }

  std::vector<int> MissingRanks() {
    std::vector<int> missing;
    for (size_t i = 0; i < requests_.size(); ++i) {
      int done = 0;
      MPI_Test(&requests_[i], &done, MPI_STATUS_IGNORE);
      if (!done && peers_[i] != kNoPeer) missing.push_back(peers_[i]);
    }
    std::sort(missing.begin(), missing.end());
    missing.erase(std::unique(missing.begin(), missing.end()), missing.end());
    return missing;
  }

  void CheckMpi(int error) const {
    if (error == MPI_SUCCESS) return;
    char text[MPI_MAX_ERROR_STRING];
    int length = 0;
    MPI_Error_string(error, text, &length);
    Abort(Describe(call_) + " failed: " + std::string(text, length));
  }

  [[noreturn]] static void Abort(const std::string& line) {
    std::fprintf(stderr, "elastor: %s\n", line.c_str());
    MPI_Abort(MPI_COMM_WORLD, kMachineExitCode);
    std::_Exit(kMachineExitCode);
  }

  const CommunicatorOptions options_;
  Call call_ = {};  // the call in progress and its start
  Clock::time_point start_;
  std::vector<MPI_Request> requests_;
  std::vector<int> peers_;  // of the requests: the rank a receive waits for, or kNoPeer
  std::vector<int64_t> offsets_;
};

bool StartedByMpiLauncher() {
  constexpr const char* kSigns[] = {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK", "PMI_SIZE"};
  return std::any_of(std::begin(kSigns), std::end(kSigns),
                     [](const char* name) { return std::getenv(name) != nullptr; });
}

}  // namespace

StatusOr<std::unique_ptr<Communicator>> MakeWorldCommunicator(const CommunicatorOptions& options) {
  if (!StartedByMpiLauncher()) {
    const char* tasks = std::getenv("SLURM_STEP_NUM_TASKS");
    if (tasks != nullptr && std::atoi(tasks) > 1) {
      return UserError(std::string("environment: SLURM_STEP_NUM_TASKS: expected PMIx variables "
                                   "beside it (srun --mpi=pmix, or mpirun), found ") +
                       tasks + " tasks without them");
    }
    return MakeSelfCommunicator();
  }
  int provided = MPI_THREAD_SINGLE;
  if (MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided) != MPI_SUCCESS) {
    return MachineError("MPI_Init_thread failed");
  }
  if (provided < MPI_THREAD_SERIALIZED) {
    MPI_Finalize();
    return MachineError("MPI library: expected MPI_THREAD_SERIALIZED, found level " +
                        std::to_string(provided));
  }
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  return std::unique_ptr<Communicator>(std::make_unique<MpiCommunicator>(rank, size, options));
}

}  // namespace elastor
