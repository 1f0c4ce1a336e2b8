// The only file that sees MPI. Every collective is made of nonblocking messages between two ranks
// that are polled against a deadline, because no MPI call returns an error when a peer dies: a
// blocking one would wait for ever.
//
// The tag of a call's messages is a hash of all the calls that the rank has made, this one
// included: ranks whose calls differ never exchange data, but wait. Who has waited for a while
// tells the two lowest ranks which call it is in (wait_board.h); these end the job when the calls
// differ, and at the deadline say who is late.
//
// A rank posts all its receives, then all its sends, to the peers rank+1, rank+2, ... (mod N), so
// that at any moment the N ranks send to N different ones. At N = 1,024 an all-to-all is up to
// 1,023 messages out and 1,023 in per rank (none for empty blocks), and as many connections; the
// broadcast is 10 steps with at most 10 messages from one rank.
#include <mpi.h>
#include <sched.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <climits>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "collective/broadcast_tree.h"
#include "collective/communicator.h"
#include "collective/wait_board.h"
#include "core/base/clock.h"
#include "glog/logging.h"

namespace elastor {
namespace {

using Seconds = std::chrono::duration<double>;

constexpr int kMachineExitCode = static_cast<int>(StatusCode::kMachine);
constexpr char kIsItThisProgram[] = "; is every rank of the job this program?";

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

// How often a waiting rank looks at more than its messages, and the pause between two looks from
// which on it was this rank that stood still (stopped, swapped out): no peer is blamed for that.
constexpr auto kLookInterval = std::chrono::milliseconds(50);
constexpr auto kStandstill = std::chrono::milliseconds(1000);

// Waits longer than this are reported, and again every sixteenth of the deadline; a report counts
// for two and a half such intervals.
constexpr double kFirstReportSeconds = 1;
constexpr double kReportsOfADeadline = 16;
constexpr double kReportCounts = 2.5;

// The ranks that are told, and the tag of what they are told. Calls have the tags above.
constexpr int kObservers = 2;
constexpr int kReportTag = 0;

// How long a rank that is being ended waits for its peers before it says so.
constexpr double kTerminatedSeconds = 0.3;

// Every rank may see what ends a job. The lowest one says so at once; the others leave it time, and
// stay silent when they notice meanwhile that somebody `spoke`, or are being ended (mpirun's
// SIGTERM comes a second after the end of the first rank).
void LetLowerRanksSpeak(int rank, const std::function<bool()>& spoke) {
  const Clock::time_point end = Clock::now() + std::chrono::milliseconds(1500) * std::min(rank, 4);
  while (Clock::now() < end) {
    if (spoke()) std::_Exit(kMachineExitCode);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

// Ends the process with one line when it still lives after `seconds`: for calls of MPI that wait
// without a deadline.
class BlockingCallWatch {
 public:
  BlockingCallWatch(const char* call, const char* hint, double seconds, int rank,
                    std::function<bool()> terminated)
      : thread_([=, this] {
          std::unique_lock lock(mutex_);
          if (done_changed_.wait_for(lock, Seconds(seconds), [this] { return done_; })) return;
          const bool before = terminated();
          LetLowerRanksSpeak(rank, [&] { return !before && terminated(); });
          std::fprintf(stderr, "elastor: rank %d: %s did not complete within %g s%s\n", rank, call,
                       seconds, hint);
          std::_Exit(kMachineExitCode);
        }) {}
  ~BlockingCallWatch() {
    {
      const std::lock_guard lock(mutex_);
      done_ = true;
    }
    done_changed_.notify_one();
    thread_.join();
  }

 private:
  std::mutex mutex_;
  std::condition_variable done_changed_;
  bool done_ = false;  // guarded by mutex_
  std::thread thread_;
};

class MpiCommunicator final : public Communicator {
 public:
  MpiCommunicator(int rank, int size, int highest_tag, const CommunicatorOptions& options)
      : Communicator(rank, size), options_(options), highest_tag_(highest_tag), board_(size) {
    CHECK_GE(options.max_message_bytes, 1);
    CHECK_LE(options.max_message_bytes, INT_MAX);
    // Peers may be other programs that happen to use MPI.
    deadline_seconds_ = options.start_seconds;
    Start(Numbered({CallKind::kStart}));
    Meet();
    deadline_seconds_ = options.deadline_seconds;
  }

  // Meets the other ranks first, against the deadline: MPI_Finalize itself would wait for ever.
  ~MpiCommunicator() override {
    Start(Numbered({CallKind::kFinalize}));
    Meet();
    ReadReports(Clock::now());
    const BlockingCallWatch watch("MPI_Finalize", "", deadline_seconds_, rank(),
                                  options_.terminated);
    MPI_Finalize();
  }

  void Abandon() override {
    told_ = MakeReport();
    told_.told = true;
    std::vector<MPI_Request> requests(size(), MPI_REQUEST_NULL);
    for (int r = 0; r < size(); ++r) {
      if (r == rank()) continue;
      MPI_Isend(&told_, sizeof told_, MPI_BYTE, r, kReportTag, MPI_COMM_WORLD, &requests[r]);
    }
    // Messages of this size leave at once unless the network, or a stopped rank, is in the way.
    const Clock::time_point end = Clock::now() + kLookInterval;
    int sent = 0;
    while (!sent && Clock::now() < end) {
      MPI_Testall(size(), requests.data(), &sent, MPI_STATUSES_IGNORE);
    }
  }

 private:
  static constexpr int kNoPeer = -1;

  // A message under way.
  struct Pending {
    int peer;   // the rank it is to come from; kNoPeer: it is sent
    int bytes;  // of what is to come
  };

  Status DoBarrier(const Call& call) override {
    Start(call);
    Meet();
    return OkStatus();
  }

  // Dissemination: after step i every rank has heard of the 2^i ranks before it.
  void Meet() {
    for (int distance = 1; distance < size(); distance *= 2) {
      ReceivePiece(nullptr, 0, (rank() - distance + size()) % size());
      SendPiece(nullptr, 0, (rank() + distance) % size());
      WaitAll();
    }
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

  // Recursive doubling among the ranks below the largest power of two; each rank beyond it gives
  // its values to one of them first, and has the result from it last.
  Status DoAllReduce(const Call& call, Reduction reduction, std::span<int64_t> values) override {
    Start(call);
    const int power = static_cast<int>(std::bit_floor(static_cast<unsigned>(size())));
    const int partner = rank() < power ? rank() + power : rank() - power;
    if (rank() >= power) {
      SendValues(values, partner);
      WaitAll();
      ReceiveValues(values, partner);
      WaitAll();
      return OkStatus();
    }
    if (partner < size()) {
      ReceiveValues(MakeRoom(values.size()), partner);
      WaitAll();
      Reduce(reduction, values);
    }
    for (int bit = 1; bit < power; bit *= 2) {
      ReceiveValues(MakeRoom(values.size()), rank() ^ bit);
      SendValues(values, rank() ^ bit);
      WaitAll();
      Reduce(reduction, values);
    }
    if (partner < size()) {
      SendValues(values, partner);
      WaitAll();
    }
    return OkStatus();
  }

  std::span<int64_t> MakeRoom(size_t count) {
    if (received_.size() < count) received_.resize(count);
    return {received_.data(), count};
  }

  void SendValues(std::span<const int64_t> values, int peer) {
    Send(reinterpret_cast<const char*>(values.data()), static_cast<int64_t>(values.size_bytes()),
         peer);
  }

  void ReceiveValues(std::span<int64_t> values, int peer) {
    Receive(reinterpret_cast<char*>(values.data()), static_cast<int64_t>(values.size_bytes()),
            peer);
  }

  void Reduce(Reduction reduction, std::span<int64_t> values) const {
    const int64_t* const received = received_.data();
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = reduction == Reduction::kMax
                      ? std::max(values[i], received[i])
                      : static_cast<int64_t>(static_cast<uint64_t>(values[i]) +
                                             static_cast<uint64_t>(received[i]));
    }
  }

  void Start(const Call& call) {
    call_ = call;
    history_ = HistoryWith(history_, call);
    tag_ = 1 + static_cast<int>(history_ % static_cast<uint64_t>(highest_tag_));
    start_ = Clock::now();
    next_look_ = start_ + kLookInterval;
    next_report_ = start_ + std::chrono::duration_cast<Clock::duration>(
                                Seconds(std::min(kFirstReportSeconds, deadline_seconds_ / 4)));
  }

  // The messages of one call between two ranks are matched in the order in which they are posted.
  void Receive(char* data, int64_t bytes, int peer) {
    for (int64_t begin = 0; begin < bytes; begin += options_.max_message_bytes) {
      ReceivePiece(data + begin, PieceBytes(begin, bytes), peer);
    }
  }

  void Send(const char* data, int64_t bytes, int peer) {
    for (int64_t begin = 0; begin < bytes; begin += options_.max_message_bytes) {
      SendPiece(data + begin, PieceBytes(begin, bytes), peer);
    }
  }

  int PieceBytes(int64_t begin, int64_t bytes) const {
    return static_cast<int>(std::min(options_.max_message_bytes, bytes - begin));
  }

  void ReceivePiece(char* data, int bytes, int peer) {
    CheckMpi(
        MPI_Irecv(data, bytes, MPI_BYTE, peer, tag_, MPI_COMM_WORLD, AddRequest({peer, bytes})));
  }

  void SendPiece(const char* data, int bytes, int peer) {
    CheckMpi(
        MPI_Isend(data, bytes, MPI_BYTE, peer, tag_, MPI_COMM_WORLD, AddRequest({kNoPeer, 0})));
  }

  static void CopyOwn(const char* from, int64_t bytes, char* to) {
    if (bytes > 0 && to != from) std::memcpy(to, from, static_cast<size_t>(bytes));
  }

  void SetOffsets(std::span<const int64_t> bytes) {
    offsets_.assign(1, 0);
    for (const int64_t length : bytes) offsets_.push_back(offsets_.back() + length);
  }

  // A request to be started at once.
  MPI_Request* AddRequest(const Pending& pending) {
    pending_.push_back(pending);
    return &requests_.emplace_back(MPI_REQUEST_NULL);
  }

  // Returns when all requests are complete; ends the job at the deadline.
  void WaitAll() {
    statuses_.resize(requests_.size());
    const Clock::time_point begin = Clock::now();
    while (true) {
      int done = 0;
      const int error = MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &done,
                                    statuses_.data());
      if (error != MPI_SUCCESS) EndOnRequests(error);
      if (done) break;
      const Clock::time_point now = Clock::now();
      if (now >= next_look_) LookAround(now);
      PauseAfterWaiting(now - begin);
    }
    for (size_t i = 0; i < requests_.size(); ++i) {
      int bytes = 0;
      if (pending_[i].peer == kNoPeer) continue;
      MPI_Get_count(&statuses_[i], MPI_BYTE, &bytes);
      if (bytes != pending_[i].bytes) EndOnLength(pending_[i], std::to_string(bytes) + " bytes");
    }
    requests_.clear();
    pending_.clear();
  }

  // What a rank that waits does besides: says where it is, hears where the others are, and ends the
  // job when that cannot go well.
  void LookAround(Clock::time_point now) {
    if (now - next_look_ > kStandstill) start_ += now - next_look_;
    next_look_ = now + kLookInterval;
    if (!terminated_at_ && options_.terminated()) {
      terminated_at_ = now;
      next_report_ = now;
    }
    if (now >= next_report_) {
      SendReports();
      if (rank() < kObservers) board_.Add(rank(), MakeReport(), now);
      next_report_ = now + std::chrono::duration_cast<Clock::duration>(ReportInterval());
    }
    ReadReports(now);
    if (!board_.conflict().empty()) End(board_.conflict() + kIsItThisProgram);
    if (terminated_at_) SayTerminated(now);
    if (Seconds(now - start_).count() > deadline_seconds_) {
      const auto counted =
          std::chrono::duration_cast<Clock::duration>(kReportCounts * ReportInterval());
      End(DescribeDeadline(call_, deadline_seconds_, LateRanks(now - counted)) +
          (call_.kind == CallKind::kStart ? kIsItThisProgram : ""));
    }
  }

  Seconds ReportInterval() const {
    return Seconds(std::max(std::min(kFirstReportSeconds, deadline_seconds_ / 4),
                            deadline_seconds_ / kReportsOfADeadline));
  }

  // Who is late: as far as this rank is told, who has not reported since then; else who it waits
  // for itself.
  std::vector<int> LateRanks(Clock::time_point since) {
    std::vector<int> late;
    if (rank() < kObservers) late = board_.SilentSince(since);
    return late.empty() ? MissingRanks() : late;
  }

  // The launcher ends this rank, which waits for another one: perhaps because that one is dead, and
  // then nobody else would say so. Once, by the lowest rank that lives.
  void SayTerminated(Clock::time_point now) {
    const bool due =
        Seconds(now - *terminated_at_).count() > kTerminatedSeconds * (1 + 0.5 * rank());
    if (!due || rank() >= kObservers || said_terminated_) return;
    said_terminated_ = true;
    const std::vector<int> late = LateRanks(*terminated_at_ - kLookInterval * 4);
    if (rank() > 0 && std::find(late.begin(), late.end(), 0) == late.end()) return;
    Print(Describe(call_) + ": SIGTERM came" + DescribeWaiting(late));
  }

  WaitReport MakeReport() const {
    WaitReport report;
    report.call = call_;
    report.history = history_;
    return report;
  }

  // A report that is still under way is not followed by another.
  void SendReports() {
    for (int observer = 0; observer < std::min(kObservers, size()); ++observer) {
      int sent = 0;
      MPI_Test(&report_requests_[observer], &sent, MPI_STATUS_IGNORE);
      if (!sent || observer == rank()) continue;
      reports_[observer] = MakeReport();
      MPI_Isend(&reports_[observer], sizeof(WaitReport), MPI_BYTE, observer, kReportTag,
                MPI_COMM_WORLD, &report_requests_[observer]);
    }
  }

  // Ends the process when another rank has told why the job ends.
  void ReadReports(Clock::time_point now) {
    while (true) {
      int there = 0;
      MPI_Status status;
      CheckMpi(MPI_Iprobe(MPI_ANY_SOURCE, kReportTag, MPI_COMM_WORLD, &there, &status));
      if (!there) return;
      int bytes = 0;
      MPI_Get_count(&status, MPI_BYTE, &bytes);
      WaitReport report;
      if (bytes == sizeof report) {
        CheckMpi(MPI_Recv(&report, sizeof report, MPI_BYTE, status.MPI_SOURCE, kReportTag,
                          MPI_COMM_WORLD, MPI_STATUS_IGNORE));
      }
      if (bytes != sizeof report || report.mark != WaitReport::kMark) {
        End("rank " + std::to_string(rank()) + ": a message of rank " +
            std::to_string(status.MPI_SOURCE) + " is not this program's" + kIsItThisProgram);
      }
      if (report.told) std::_Exit(kMachineExitCode);
      board_.Add(status.MPI_SOURCE, report, now);
    }
  }

  std::vector<int> MissingRanks() {
    std::vector<int> missing;
    for (size_t i = 0; i < requests_.size(); ++i) {
      int done = 0;
      MPI_Request_get_status(requests_[i], &done, MPI_STATUS_IGNORE);
      if (!done && pending_[i].peer != kNoPeer) missing.push_back(pending_[i].peer);
    }
    std::sort(missing.begin(), missing.end());
    missing.erase(std::unique(missing.begin(), missing.end()), missing.end());
    return missing;
  }

  void CheckMpi(int error) {
    if (error != MPI_SUCCESS) EndOnMpi(error);
  }

  [[noreturn]] void EndOnMpi(int error) {
    char text[MPI_MAX_ERROR_STRING];
    int length = 0;
    MPI_Error_string(error, text, &length);
    End(Describe(call_) + " failed: " + std::string(text, length));
  }

  // `error` is that of all requests together.
  [[noreturn]] void EndOnRequests(int error) {
    for (size_t i = 0; error == MPI_ERR_IN_STATUS && i < statuses_.size(); ++i) {
      const int own = statuses_[i].MPI_ERROR;
      if (own == MPI_ERR_TRUNCATE) EndOnLength(pending_[i], "more");
      if (own != MPI_SUCCESS && own != MPI_ERR_PENDING) EndOnMpi(own);
    }
    EndOnMpi(error);
  }

  [[noreturn]] void EndOnLength(const Pending& pending, const std::string& found) {
    End(Describe(call_) + " failed: expected " + std::to_string(pending.bytes) +
        " bytes from rank " + std::to_string(pending.peer) + ", found " + found);
  }

  static void Print(const std::string& line) {
    std::fprintf(stderr, "elastor: %s\n", line.c_str());
  }

  // Ends the job with a line.
  [[noreturn]] void End(const std::string& line) {
    const bool terminated = options_.terminated();
    const bool reads = !std::exchange(ending_, true);  // unless it is reading that failed
    LetLowerRanksSpeak(rank(), [&] {
      if (reads) ReadReports(Clock::now());
      return !terminated && options_.terminated();
    });
    Print(line);
    Abandon();
    MPI_Abort(MPI_COMM_WORLD, kMachineExitCode);
    std::_Exit(kMachineExitCode);
  }

  const CommunicatorOptions options_;
  const int highest_tag_;
  double deadline_seconds_ = 0;

  // The call in progress.
  Call call_;
  uint64_t history_ = 0;  // of all calls, this one included
  int tag_ = 0;
  Clock::time_point start_;
  std::vector<MPI_Request> requests_;
  std::vector<Pending> pending_;  // what the requests are
  std::vector<MPI_Status> statuses_;
  std::vector<int64_t> offsets_;
  std::vector<int64_t> received_;  // a peer's values of an all-reduce

  // What a wait that takes long needs.
  Clock::time_point next_look_;
  Clock::time_point next_report_;
  WaitReport reports_[kObservers];  // on their way, as is told_
  WaitReport told_;
  MPI_Request report_requests_[kObservers] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  WaitBoard board_;  // of an observer
  std::optional<Clock::time_point> terminated_at_;
  bool said_terminated_ = false;
  bool ending_ = false;
};

bool StartedByMpiLauncher() {
  constexpr const char* kSigns[] = {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK", "PMI_SIZE"};
  return std::any_of(std::begin(kSigns), std::end(kSigns),
                     [](const char* name) { return std::getenv(name) != nullptr; });
}

// Known before MPI_Init.
int LaunchersRank() {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"}) {
    if (const char* rank = std::getenv(name)) return std::atoi(rank);
  }
  return 0;
}

int InitMpi(const CommunicatorOptions& options, int* provided) {
  const BlockingCallWatch watch("MPI_Init", kIsItThisProgram, options.start_seconds,
                                LaunchersRank(), options.terminated);
  return MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, provided);
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
  if (InitMpi(options, &provided) != MPI_SUCCESS) return MachineError("MPI_Init_thread failed");
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
  const int* highest_tag = nullptr;
  int known = 0;
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &highest_tag, &known);
  constexpr int kLeastHighestTag = 32767;  // that MPI promises
  return std::unique_ptr<Communicator>(std::make_unique<MpiCommunicator>(
      rank, size, known ? *highest_tag : kLeastHighestTag, options));
}

}  // namespace elastor
