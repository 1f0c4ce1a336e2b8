// Ranks of MPI. Every collective is made of nonblocking messages between two ranks that are polled
// against a deadline, because no MPI call returns an error when a peer dies: a blocking one would
// wait for ever.
//
// The tag of a call's messages is a hash of all the calls that the rank has made, this one
// included: ranks whose calls differ never exchange data, but wait. Who has waited for a while
// tells the two lowest ranks which call it is in (wait_board.h); these end the job when the calls
// differ, and at the deadline, or before when a watchdog is asked for, say who is late.
//
// A rank that computes or reads is in no call and cannot tell anything. Its watchdog's thread does,
// by MPI, too: MPI_THREAD_SERIALIZED allows calls of any thread, one at a time, so whoever makes a
// collective holds a mutex from its first message to its last, and the watchdog only ever tries it.
//
// A rank posts all its receives, then all its sends, to the peers rank+1, rank+2, ... (mod N), so
// that at any moment the N ranks send to N different ones. At N = 1,024 an all-to-all is up to
// 1,023 messages out and 1,023 in per rank (none for empty blocks), and as many connections; the
// broadcast is 10 steps with at most 10 messages from one rank.
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

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
#include "collective/call_messages.h"
#include "collective/communicator.h"
#include "collective/mpi_loader.h"
#include "collective/mpi_part.h"
#include "collective/pause.h"
#include "collective/wait_board.h"
#include "core/base/clock.h"
#include "core/base/exhausted.h"
#include "core/base/log.h"

namespace elastor {
namespace {

using Seconds = std::chrono::duration<double>;

constexpr int kMachineExitCode = static_cast<int>(StatusCode::kMachine);
constexpr char kIsItThisProgram[] = "; is every rank of the job this program?";

// A message travels in pieces of so many bytes, or of a 64th of it. Open MPI sends no more than 64
// KiB at once over TCP. It announces what is longer, and waits for the receiver's answer, which
// stands behind what the receiver sends itself: of two long messages between two ranks the second
// would follow the first. Pieces that are not announced are copied, so they are few.
constexpr int64_t kPieceBytes = 63 * 1024;
constexpr int64_t kMostPieces = 64;

// How often a waiting rank looks at more than its messages, and the pause between two looks from
// which on it was this rank that stood still (stopped, swapped out): no peer is blamed for that.
constexpr auto kLookInterval = std::chrono::milliseconds(50);
constexpr auto kStandstill = std::chrono::milliseconds(1000);

// Waits longer than this are reported, and again every sixteenth of the deadline; a report counts
// for two and a half such intervals.
constexpr double kFirstReportSeconds = 1;
constexpr double kReportsOfADeadline = 16;
constexpr double kReportCounts = 2.5;
// With a watchdog, so many reports come in its time at least, and its thread looks so often before
// the first of them.
constexpr double kReportsOfAWatchdog = 4;
constexpr double kLooksOfTheWatchdog = 4;
// How much longer rank 1 waits, which speaks when rank 0 is silent.
constexpr double kSecondObserverPatience = 1.25;

// The ranks that are told, and the tag of what they are told. Calls have the tags above.
constexpr int kObservers = 2;
constexpr int kReportTag = 0;

// How long a rank that is being ended waits for its peers before it says so.
constexpr double kTerminatedSeconds = 0.3;

// Every rank may see what ends a job. The lowest one says so at once; the others leave it time, and
// stay silent when they notice meanwhile that somebody `spoke`, or are being ended (mpirun's
// SIGTERM comes a second after the end of the first rank).
constexpr int kMostPatient = 4;
void LetLowerRanksSpeak(int rank, const std::function<bool()>& spoke) {
  const Clock::time_point end =
      Clock::now() + std::chrono::milliseconds(1500) * std::min(rank, kMostPatient);
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
      : thread_(StartThread(1, 1, "the deadline of MPI_Init and MPI_Finalize", [=, this] {
          std::unique_lock lock(mutex_);
          if (done_changed_.wait_for(lock, Seconds(seconds), [this] { return done_; })) return;
          const bool before = terminated();
          LetLowerRanksSpeak(rank, [&] { return !before && terminated(); });
          std::fprintf(stderr, "elastor: rank %d: %s did not complete within %g s%s\n", rank, call,
                       seconds, hint);
          std::_Exit(kMachineExitCode);
        })) {}
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

// Messages under way between this rank and others, numbered as they start. Calls that return an int
// return MPI's error.
class MpiMessages {
 public:
  explicit MpiMessages(const MpiPart& mpi) : mpi_(mpi) {}

  int Send(const void* data, int bytes, int rank, int tag) {
    return mpi_.send(data, bytes, rank, tag, Add());
  }

  int Receive(void* data, int bytes, int rank, int tag) {
    return mpi_.receive(data, bytes, rank, tag, Add());
  }

  // Sets *done to whether all messages are; there may be none.
  int Test(bool* done) {
    error_ = mpi_.test(count_, requests_.data(), done, statuses_.data());
    return error_;
  }

  // Returns the message's own error, after Test has returned one.
  int ErrorOf(size_t i) const { return mpi_.error_of(error_, &statuses_[i * mpi_.status_bytes]); }
  // Returns the bytes that were received, once Test has said that all messages are done.
  int BytesOf(size_t i) const { return mpi_.bytes_of(&statuses_[i * mpi_.status_bytes]); }
  bool IsDone(size_t i) { return mpi_.is_done(&requests_[i * mpi_.request_bytes]); }

  void Clear() { count_ = 0; }

 private:
  void* Add() {
    ++count_;
    requests_.resize(count_ * mpi_.request_bytes);
    statuses_.resize(count_ * mpi_.status_bytes);
    return &requests_[(count_ - 1) * mpi_.request_bytes];
  }

  const MpiPart& mpi_;
  int count_ = 0;
  std::vector<char> requests_;
  std::vector<char> statuses_;
  int error_ = 0;  // of the last Test
};

class MpiCommunicator final : public Communicator {
 public:
  MpiCommunicator(const MpiPart& mpi, const CommunicatorOptions& options)
      : Communicator(mpi.rank(), mpi.size()),
        mpi_(mpi),
        options_(options),
        highest_tag_(mpi.highest_tag()),
        messages_(mpi),
        reports_under_way_(kObservers, MpiMessages(mpi)),
        board_(size(), /*busy_ranks_speak=*/options.watchdog_seconds > 0) {
    CHECK_GE(options.max_message_bytes, 1);
    CHECK_LE(options.max_message_bytes, INT_MAX);
    // Peers may be other programs that happen to use MPI.
    deadline_seconds_ = options.start_seconds;
    const char* const named = std::getenv("ELASTOR_HOST");
    std::snprintf(host_, sizeof host_, "%s", named == nullptr ? mpi_.host() : named);
    {
      const CallScope scope(this,
                            Numbered({CallKind::kStart, Phase::kSetup, SentInBarrier(size())}));
      Meet();
      SendReports(/*hello=*/true);
      if (rank() < kObservers) board_.Add(rank(), MakeReport(/*hello=*/true), Clock::now());
    }
    deadline_seconds_ = options.deadline_seconds;
    if (options.watchdog_seconds > 0) {
      watchdog_ =
          StartThread(1, 1, "the watchdog (parallel.watchdog_seconds)", [this] { Watch(); });
    }
  }

  // Meets the other ranks first, against the deadline: MPI_Finalize itself would wait for ever.
  ~MpiCommunicator() override {
    StopWatching();
    const CallScope scope(this,
                          Numbered({CallKind::kFinalize, Phase::kSetup, SentInBarrier(size())}));
    Meet();
    ReadReports(Clock::now());
    const BlockingCallWatch watch("MPI_Finalize", "", deadline_seconds_, rank(),
                                  options_.terminated);
    mpi_.finalize();
  }

  std::string host() const override { return host_; }

  void Abandon() override {
    StopWatching();
    Tell();
  }

 private:
  // Lets the others know that this rank has told why the job ends.
  void Tell() {
    told_ = MakeReport(/*hello=*/false);
    told_.told = true;
    MpiMessages messages(mpi_);
    for (int r = 0; r < size(); ++r) {
      if (r != rank()) messages.Send(&told_, sizeof told_, r, kReportTag);
    }
    // Messages of this size leave at once unless the network, or a stopped rank, is in the way.
    const Clock::time_point end = Clock::now() + kLookInterval;
    bool sent = false;
    while (!sent && Clock::now() < end) messages.Test(&sent);
  }

  static constexpr int kNoPeer = -1;

  // A message under way.
  struct Pending {
    int peer;   // the rank it is to come from; kNoPeer: it is sent
    int bytes;  // of what is to come
  };

  Status DoBarrier(const Call& call) override {
    const CallScope scope(this, call);
    Meet();
    return OkStatus();
  }

  // Dissemination: after step i every rank has heard of the 2^i ranks before it.
  void Meet() {
    for (int distance = 1; distance < size(); distance *= 2) {
      ReceivePiece(nullptr, 0, (rank() - distance + size()) % size(), tag_);
      SendPiece(nullptr, 0, (rank() + distance) % size(), tag_);
      ++sent_;
      WaitAll();
    }
  }

  Status DoAllToAllV(const Call& call, const char* send, std::span<const int64_t> send_bytes,
                     char* receive, std::span<const int64_t> receive_bytes) override {
    const CallScope scope(this, call);
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
    const CallScope scope(this, call);
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
    const CallScope scope(this, call);
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
    const CallScope scope(this, call);
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

  // A call from its first message to its last, during which its thread has MPI to itself.
  class CallScope {
   public:
    CallScope(MpiCommunicator* communicator, const Call& call)
        : communicator_(*communicator), lock_(communicator->mutex_) {
      communicator_.Start(call);
    }
    ~CallScope() { communicator_.Ended(); }

   private:
    MpiCommunicator& communicator_;
    const std::lock_guard<std::mutex> lock_;
  };

  void Start(const Call& call) {
    call_ = call;
    in_call_ = true;
    sent_ = 0;
    history_ = HistoryWith(history_, call);
    tag_ = Tag(history_);
    start_ = Clock::now();
    next_look_ = start_ + kLookInterval;
    if (WaitsForFiles()) return;
    ++counted_calls_;
    Progressed(start_);
  }

  void Ended() {
    in_call_ = false;
    CHECK_EQ(sent_, call_.messages_sent) << DescribeCall(call_);  // as recorded (call_messages.h)
    if (WaitsForFiles()) return;
    ++counted_calls_;
    if (stalled_since_) SayGoesOn();
  }

  // Ranks that wait for files meet all the while: these calls are no progress.
  bool WaitsForFiles() const {
    return activity() >= Activity::kCheckpointWrite && activity() <= Activity::kCheckpointPeers;
  }

  std::pair<uint64_t, int64_t> Progress() const { return {activity_count(), counted_calls_}; }

  void Progressed(Clock::time_point now) {
    progress_ = Progress();
    since_ = now;
    next_report_ = now + std::chrono::duration_cast<Clock::duration>(FirstReport());
    has_read_old_ = false;
  }

  // The messages of one call between two ranks are matched in the order in which they are posted.
  void Receive(char* data, int64_t bytes, int peer) {
    const int64_t piece = PieceBytes(bytes);
    const int tag = TagOf(bytes);
    for (int64_t begin = 0; begin < bytes; begin += piece) {
      ReceivePiece(data + begin, static_cast<int>(std::min(piece, bytes - begin)), peer, tag);
    }
  }

  void Send(const char* data, int64_t bytes, int peer) {
    if (bytes > 0) ++sent_;
    const int64_t piece = PieceBytes(bytes);
    const int tag = TagOf(bytes);
    for (int64_t begin = 0; begin < bytes; begin += piece) {
      SendPiece(data + begin, static_cast<int>(std::min(piece, bytes - begin)), peer, tag);
    }
  }

  int64_t PieceBytes(int64_t bytes) const {
    return std::min(options_.max_message_bytes,
                    std::max(kPieceBytes, (bytes + kMostPieces - 1) / kMostPieces));
  }

  // Returns the tag of a message's pieces. Those of a message that its receiver expects with
  // another length would perhaps fit one by one, so they have another tag, and the receiver waits.
  int TagOf(int64_t bytes) const {
    if (bytes <= PieceBytes(bytes)) return tag_;
    constexpr uint64_t kMix = 0x9E3779B97F4A7C15;
    return Tag(history_ ^ (static_cast<uint64_t>(bytes) * kMix));
  }
  int Tag(uint64_t hash) const {
    return 1 + static_cast<int>(hash % static_cast<uint64_t>(highest_tag_));
  }

  void ReceivePiece(char* data, int bytes, int peer, int tag) {
    pending_.push_back({peer, bytes});
    CheckMpi(messages_.Receive(data, bytes, peer, tag));
  }

  void SendPiece(const char* data, int bytes, int peer, int tag) {
    pending_.push_back({kNoPeer, 0});
    CheckMpi(messages_.Send(data, bytes, peer, tag));
  }

  static void CopyOwn(const char* from, int64_t bytes, char* to) {
    if (bytes > 0 && to != from) std::memcpy(to, from, static_cast<size_t>(bytes));
  }

  void SetOffsets(std::span<const int64_t> bytes) {
    offsets_.assign(1, 0);
    for (const int64_t length : bytes) offsets_.push_back(offsets_.back() + length);
  }

  // Returns when all messages are done; ends the job at the deadline.
  void WaitAll() {
    const Clock::time_point begin = Clock::now();
    while (true) {
      bool done = false;
      if (const int error = messages_.Test(&done); error != 0) EndOnMessages(error);
      if (done) break;
      const Clock::time_point now = Clock::now();
      if (now >= next_look_) LookAround(now);
      PauseAfterWaiting(now - begin);
    }
    for (size_t i = 0; i < pending_.size(); ++i) {
      if (pending_[i].peer == kNoPeer) continue;
      const int bytes = messages_.BytesOf(i);
      if (bytes != pending_[i].bytes) EndOnLength(pending_[i], std::to_string(bytes) + " bytes");
      if (rank() < kObservers) board_.Heard(pending_[i].peer, call_);
    }
    messages_.Clear();
    pending_.clear();
  }

  // What a rank that waits does besides: says where it is, hears where the others are, and ends the
  // job when that cannot go well.
  void LookAround(Clock::time_point now) {
    if (now - next_look_ > kStandstill) {
      start_ += now - next_look_;
      CountAnew(now);
    }
    next_look_ = now + kLookInterval;
    if (!terminated_at_ && options_.terminated()) {
      terminated_at_ = now;
      next_report_ = now;
    }
    Talk(now);
    if (terminated_at_) SayTerminated(now);
    if (Seconds(now - start_).count() > deadline_seconds_) {
      const Clock::time_point since = Counted(now);
      const std::string who = rank() < kObservers ? "; " + board_.Describe(since, now) : "";
      End(DescribeDeadline(call_, deadline_seconds_, LateRanks(since)) + who +
          (call_.kind == CallKind::kStart ? kIsItThisProgram : ""));
    }
  }

  // This rank stood still itself until now.
  void CountAnew(Clock::time_point now) {
    since_ = now;
    counts_from_ = now;
  }

  // Sends and prints reports once this rank has made no progress for a while, inside a call or
  // between two calls.
  void Talk(Clock::time_point now) {
    if (Progress() != progress_) Progressed(now);
    // Reports that came before this wait began belong to an older wait, unless the job is being
    // ended.
    const bool has_read_old = std::exchange(has_read_old_, true);
    if (!has_read_old && !options_.terminated()) ReadReports(Clock::time_point());
    if (now >= next_report_) {
      SendReports(/*hello=*/false);
      next_report_ = now + std::chrono::duration_cast<Clock::duration>(ReportInterval());
    }
    if (rank() < kObservers) board_.Add(rank(), MakeReport(/*hello=*/false), now);
    ReadReports(now);
    if (!board_.conflict().empty()) End(board_.conflict() + kIsItThisProgram);
    if (options_.watchdog_seconds > 0 && rank() < kObservers) SayStalled(now);
  }

  // The watchdog's thread. While another one is in a call it is that one that talks.
  void Watch() {
    const auto interval =
        std::chrono::duration_cast<Clock::duration>(FirstReport() / kLooksOfTheWatchdog);
    Clock::time_point looked = Clock::now();
    std::unique_lock lock(watching_mutex_);
    while (!watching_ended_.wait_for(lock, interval, [this] { return !watching_; })) {
      const Clock::time_point now = Clock::now();
      const bool stood_still = now - looked > interval + kStandstill;
      looked = now;
      const std::unique_lock alone(mutex_, std::try_to_lock);
      if (!alone) continue;
      if (stood_still) CountAnew(now);
      if (Progress() != progress_) Progressed(now);
      if (Seconds(now - since_) >= FirstReport()) Talk(now);
    }
  }

  void StopWatching() {
    if (!watchdog_.joinable()) return;
    {
      const std::lock_guard lock(watching_mutex_);
      watching_ = false;
    }
    watching_ended_.notify_one();
    watchdog_.join();
  }

  // A line for the job, by rank 0, or by rank 1 when that one is silent.
  void SayStalled(Clock::time_point now) {
    if (stalled_since_ || options_.terminated()) return;
    // When a wait has just begun, the reports may still belong to the previous wait.
    const Clock::time_point since = Counted(now);
    if (since < since_) return;
    if (rank() == 1 && board_.HasSpokenSince(0, since)) return;
    const double seconds =
        std::min(board_.LongestWait(since, now), Seconds(now - counts_from_).count());
    if (seconds < options_.watchdog_seconds * (rank() == 0 ? 1 : kSecondObserverPatience)) return;
    stalled_since_ = now - std::chrono::duration_cast<Clock::duration>(Seconds(seconds));
    Print("no progress for " + InSeconds(seconds) + ": " + board_.Describe(since, now));
  }

  void SayGoesOn() {
    Print("the job goes on after " + InSeconds(Seconds(Clock::now() - *stalled_since_).count()));
    stalled_since_.reset();
  }

  static std::string InSeconds(double seconds) {
    char text[32];
    std::snprintf(text, sizeof text, "%.1f s", seconds);
    return text;
  }

  Seconds FirstReport() const {
    const double soon = std::min(kFirstReportSeconds, deadline_seconds_ / 4);
    const double watchdog = options_.watchdog_seconds;
    return Seconds(watchdog > 0 ? std::min(soon, watchdog / kReportsOfAWatchdog) : soon);
  }

  Seconds ReportInterval() const {
    const double rare = deadline_seconds_ / kReportsOfADeadline;
    const double watchdog = options_.watchdog_seconds;
    return std::max(FirstReport(),
                    Seconds(watchdog > 0 ? std::min(rare, watchdog / kReportsOfAWatchdog) : rare));
  }

  // From when on reports count.
  Clock::time_point Counted(Clock::time_point now) const {
    return now - std::chrono::duration_cast<Clock::duration>(kReportCounts * ReportInterval());
  }

  // Who is late: as far as this rank is told, who has not said since then that it waits; else who
  // it waits for itself.
  std::vector<int> LateRanks(Clock::time_point since) {
    std::vector<int> late;
    if (rank() < kObservers) late = board_.LateSince(since);
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

  WaitReport MakeReport(bool hello) const {
    WaitReport report;
    report.call = call_;
    report.history = history_;
    report.activity = activity();
    // Ranks that wait for files meet every second; a meeting that itself lasts is a wait.
    const bool lasts = SecondsSince(start_) >= FirstReport().count() || options_.terminated();
    report.waits = in_call_ && (!WaitsForFiles() || lasts);
    if (report.activity == Activity::kCheckpointPeers) report.waits = true;
    report.seconds = SecondsSince(since_);
    report.hello = hello;
    std::memcpy(report.host, host_, sizeof host_);
    return report;
  }

  // A report that is still under way is not followed by another.
  void SendReports(bool hello) {
    for (int observer = 0; observer < std::min(kObservers, size()); ++observer) {
      MpiMessages& under_way = reports_under_way_[observer];
      bool sent = false;
      under_way.Test(&sent);
      if (!sent || observer == rank()) continue;
      under_way.Clear();
      reports_[observer] = MakeReport(hello);
      under_way.Send(&reports_[observer], sizeof(WaitReport), observer, kReportTag);
    }
  }

  // Ends the process when another rank has told why the job ends. came: when the reports are said
  // to have come.
  void ReadReports(Clock::time_point came) {
    while (true) {
      bool there = false;
      int source = 0;
      int bytes = 0;
      CheckMpi(mpi_.probe(kReportTag, &there, &source, &bytes));
      if (!there) return;
      WaitReport report;
      if (bytes == sizeof report) {
        CheckMpi(mpi_.take(&report, sizeof report, source, kReportTag));
      }
      if (bytes != sizeof report || report.mark != WaitReport::kMark) {
        End("rank " + std::to_string(rank()) + ": a message of rank " + std::to_string(source) +
            " is not this program's" + kIsItThisProgram);
      }
      if (report.told) std::_Exit(kMachineExitCode);
      board_.Add(source, report, came);
    }
  }

  std::vector<int> MissingRanks() {
    std::vector<int> missing;
    for (size_t i = 0; i < pending_.size(); ++i) {
      if (pending_[i].peer == kNoPeer || messages_.IsDone(i)) continue;
      missing.push_back(pending_[i].peer);
    }
    std::sort(missing.begin(), missing.end());
    missing.erase(std::unique(missing.begin(), missing.end()), missing.end());
    return missing;
  }

  void CheckMpi(int error) {
    if (error != 0) EndOnMpi(error);
  }

  [[noreturn]] void EndOnMpi(int error) {
    End(Describe(call_) + " failed: " + mpi_.error_text(error));
  }

  // `error` is that of all messages together.
  [[noreturn]] void EndOnMessages(int error) {
    for (size_t i = 0; i < pending_.size(); ++i) {
      const int own = messages_.ErrorOf(i);
      if (own == 0) continue;
      if (mpi_.is_truncation(own)) EndOnLength(pending_[i], "more");
      EndOnMpi(own);
    }
    EndOnMpi(error);
  }

  [[noreturn]] void EndOnLength(const Pending& pending, const std::string& found) {
    End(Describe(call_) + " failed: expected " + std::to_string(pending.bytes) +
        " bytes from rank " + std::to_string(pending.peer) + ", found " + found);
  }

  static void Print(const std::string& line) {
    std::fprintf(stderr, "elastor: %s\n", line.c_str());
    LetLauncherRead();
  }

  // What a launcher has not read from a rank's pipe when the job ends, it may drop.
  static void LetLauncherRead() {
    constexpr int kMostMilliseconds = 1000;
    struct stat error_stream;
    if (fstat(STDERR_FILENO, &error_stream) != 0 || !S_ISFIFO(error_stream.st_mode)) return;
    int unread = 0;
    for (int i = 0; i < kMostMilliseconds; ++i) {
      if (ioctl(STDERR_FILENO, FIONREAD, &unread) != 0 || unread == 0) return;
      usleep(1000);
    }
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
    Tell();
    mpi_.abort(kMachineExitCode);
    std::_Exit(kMachineExitCode);
  }

  const MpiPart& mpi_;
  const CommunicatorOptions options_;
  const int highest_tag_;
  double deadline_seconds_ = 0;
  char host_[sizeof WaitReport::host] = "";

  // Whose holder makes calls of MPI. It guards all that follows but the watchdog's own.
  std::mutex mutex_;

  // The call in progress, or the last one.
  Call call_;
  bool in_call_ = false;
  int64_t sent_ = 0;      // messages of the call
  uint64_t history_ = 0;  // of all calls, this one included
  int tag_ = 0;
  Clock::time_point start_;
  MpiMessages messages_;
  std::vector<Pending> pending_;  // what the messages are
  std::vector<int64_t> offsets_;
  std::vector<int64_t> received_;  // a peer's values of an all-reduce

  // What a wait that takes long needs.
  std::pair<uint64_t, int64_t> progress_;         // as it was seen last
  int64_t counted_calls_ = 0;                     // begun and ended
  Clock::time_point since_ = Clock::now();        // when that was
  Clock::time_point counts_from_ = Clock::now();  // this rank has not stood still since then
  Clock::time_point next_look_;
  Clock::time_point next_report_;
  bool has_read_old_ = false;                       // what came before the present wait
  std::optional<Clock::time_point> stalled_since_;  // this rank has said so
  WaitReport reports_[kObservers];                  // on their way, as is told_
  WaitReport told_;
  std::vector<MpiMessages> reports_under_way_;  // to each observer
  WaitBoard board_;                             // of an observer
  std::optional<Clock::time_point> terminated_at_;
  bool said_terminated_ = false;
  bool ending_ = false;

  std::thread watchdog_;
  std::mutex watching_mutex_;
  std::condition_variable watching_ended_;
  bool watching_ = true;  // guarded by watching_mutex_
};

// Under another MPI's launcher every rank would be alone and do the whole work.
Status CheckSize(const LoadedMpi& mpi) {
  if (mpi.part->size() > 1) return OkStatus();
  for (const char* name : {"PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS"}) {
    const char* const started = std::getenv(name);
    if (started == nullptr) continue;
    if (std::atoi(started) <= 1) break;
    return UserError(std::string("environment: ") + name + ": the launcher started " + started +
                     " ranks, but " + mpi.name +
                     " finds 1; expected launcher and library of one MPI (ELASTOR_MPI=openmpi or "
                     "mpich chooses the library)");
  }
  return OkStatus();
}

StatusOr<std::unique_ptr<Communicator>> MakeMpiCommunicator(const CommunicatorOptions& options) {
  ELASTOR_ASSIGN_OR_RETURN(const LoadedMpi mpi, LoadMpi());
  bool serialized = false;
  const int error = [&] {
    const BlockingCallWatch watch("MPI_Init", kIsItThisProgram, options.start_seconds,
                                  LaunchersRank(), options.terminated);
    return mpi.part->init(&serialized);
  }();
  if (error != 0) return MachineError("MPI_Init_thread failed");
  Status status = CheckSize(mpi);
  if (!serialized) status = MachineError(std::string(mpi.name) + ": has no MPI_THREAD_SERIALIZED");
  if (!status.ok()) {
    mpi.part->finalize();
    return status;
  }
  return std::unique_ptr<Communicator>(std::make_unique<MpiCommunicator>(*mpi.part, options));
}

}  // namespace

StatusOr<std::unique_ptr<Communicator>> MakeWorldCommunicator(const CommunicatorOptions& options) {
  if (IsStartedByMpi()) {
    auto made = MakeMpiCommunicator(options);
    // Most often all ranks meet the same: then the first one's line is enough.
    if (!made.ok() && LaunchersRank() > 0) LetLowerRanksSpeak(kMostPatient, options.terminated);
    return made;
  }
  const char* tasks = std::getenv("SLURM_STEP_NUM_TASKS");
  if (tasks != nullptr && std::atoi(tasks) > 1) {
    return UserError(std::string("environment: SLURM_STEP_NUM_TASKS: expected PMIx variables "
                                 "beside it (srun --mpi=pmix, or mpirun), found ") +
                     tasks + " tasks without them");
  }
  return MakeSelfCommunicator();
}

}  // namespace elastor
