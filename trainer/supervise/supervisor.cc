#include "trainer/supervise/supervisor.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <system_error>

#include "core/base/clock.h"
#include "core/base/file.h"
#include "core/base/text.h"
#include "core/process/job_process.h"
#include "core/process/standard_streams.h"
#include "core/process/stop_signals.h"
#include "trainer/checkpoint/checkpoint.h"
#include "trainer/records/progress_reader.h"
#include "trainer/records/run_files.h"
#include "trainer/supervise/mpirun_report.h"

namespace elastor {
namespace {

// So long a host may take to start a process.
constexpr double kProbeSeconds = 10;
// mpirun loses a signal that comes while it starts, or dies of it: it is held back so long.
constexpr double kSignalAfterSeconds = 2;
// How long after parallel.deadline_seconds a rank that is cut off has ended, and any rank of a run
// that is whole.
constexpr double kLeavingSeconds = 10;
// So long mpirun may live without its ranks, and how often that is looked at. With a link that is
// cut it can wait for a quarter of an hour, for the kernel probes no connection on which it still
// has something to deliver.
constexpr double kMostSecondsAlone = 20;
constexpr double kForEver = 1e9;
constexpr double kLookSeconds = 1;
constexpr double kFirstLooksSeconds = 0.2;  // a job may be that short
constexpr int kNone = -1;
constexpr int kPollMilliseconds = 50;

void Say(const std::string& line) { WriteToStderr("supervise: " + line + "\n"); }

// Returns the step of the last whole checkpoint, or kNone without one.
int64_t CheckpointStep(const std::string& output_dir) {
  const StatusOr<std::string> last = LastCheckpoint(output_dir + "/" + kCheckpointsFolder);
  if (!last.ok() || last->empty()) return kNone;
  return std::atoll(last->c_str() + last->rfind('-') + 1);
}

// One supervisor at a time for a run: D.supervise beside its folder, which must not hold anything
// before the run does. Locked while it lives; the last one removes it.
class SupervisorLock {
 public:
  SupervisorLock() = default;
  SupervisorLock(const SupervisorLock&) = delete;
  SupervisorLock& operator=(const SupervisorLock&) = delete;
  ~SupervisorLock() {
    if (file_ < 0) return;
    unlink(path_.c_str());
    close(file_);
  }

  Status Take(const std::string& output_dir) {
    path_ = output_dir.substr(0, output_dir.find_last_not_of('/') + 1) + ".supervise";
    const std::string parent = std::filesystem::path(path_).parent_path();
    if (!parent.empty()) ELASTOR_RETURN_IF_ERROR(MakeDirectory(parent));
    while (true) {
      ELASTOR_ASSIGN_OR_RETURN(const int file, OpenFile(path_, O_RDWR | O_CREAT));
      if (flock(file, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
        close(file);
        return UserError("--output_dir=" + output_dir + ": another supervisor is at work there");
      }
      struct stat opened, now;
      fstat(file, &opened);
      if (stat(path_.c_str(), &now) == 0 && now.st_ino == opened.st_ino) {
        file_ = file;
        return OkStatus();
      }
      close(file);  // its owner has just removed it
    }
  }

 private:
  std::string path_;
  int file_ = -1;
};

// Whether an attempt has written the run's summary, after which ranks do nothing but end.
class SummaryWatch {
 public:
  explicit SummaryWatch(const std::string& output_dir)
      : path_(output_dir + "/" + kSummaryFile), before_(Time()) {}

  bool IsWritten() const {
    const auto now = Time();
    return now != before_ && now != std::filesystem::file_time_type::min();
  }
  // Since that was seen; 0 before.
  double SecondsWritten() {
    if (!seen_ && SecondsSince(looked_) > kLookSeconds) {
      looked_ = Clock::now();
      if (IsWritten()) seen_ = looked_;
    }
    return seen_ ? SecondsSince(*seen_) : 0;
  }

 private:
  // The least time without one.
  std::filesystem::file_time_type Time() const {
    std::error_code none;
    return std::filesystem::last_write_time(path_, none);
  }

  const std::string path_;
  const std::filesystem::file_time_type before_;
  Clock::time_point looked_ = Clock::now();
  std::optional<Clock::time_point> seen_;
};

// Whether ranks of mpirun's still live, as far as this host and the folder's lock tell.
class RankWatch {
 public:
  // None of them is missed before `seconds` have passed.
  RankWatch(pid_t mpirun, const std::string& output_dir, double seconds)
      : mpirun_(mpirun),
        output_dir_(output_dir),
        last_here_(looked_ + std::chrono::duration_cast<Clock::duration>(
                                 std::chrono::duration<double>(seconds))) {}

  // Since one of them was seen last, or could not be looked for; below 0 while they may yet appear.
  double SecondsGone() {
    if (SecondsSince(looked_) > (seen_ ? kLookSeconds : kFirstLooksSeconds)) {
      looked_ = Clock::now();
      const std::optional<ProgramBelow> below = ThisProgramBelow(mpirun_);
      std::optional<bool> here;
      if (below) here = below == ProgramBelow::kAlive ? true : IsLocked(output_dir_);
      // Killed before they were seen, they may be left to an mpirun that waits for none of them.
      const bool lived = here == true || (below == ProgramBelow::kEnded && !seen_);
      seen_ |= lived;
      if (lived) last_here_ = looked_;
      if (!here) last_here_ = std::max(last_here_, looked_);
    }
    return SecondsSince(last_here_);
  }

 private:
  const pid_t mpirun_;
  const std::string& output_dir_;
  Clock::time_point looked_ = Clock::now();
  bool seen_ = false;
  Clock::time_point last_here_;
};

class Supervisor {
 public:
  explicit Supervisor(const SuperviseOptions& options)
      : options_(options), last_step_(CheckpointStep(options.output_dir)) {}
  ~Supervisor() {
    if (signals_ >= 0) close(signals_);
  }

  StatusOr<int> Run() {
    ELASTOR_RETURN_IF_ERROR(lock_.Take(options_.output_dir));
    ELASTOR_ASSIGN_OR_RETURN(const std::set<std::string> names, NamesIn(options_.output_dir));
    held_something_ = !names.empty();
    const sigset_t waited = WaitedSignals();
    sigprocmask(SIG_BLOCK, &waited, nullptr);
    stops_ = StopSignal() != 0 ? 1 : 0;  // one that came before
    signals_ = signalfd(-1, &waited, SFD_CLOEXEC | SFD_NONBLOCK);
    if (signals_ < 0) return MachineError(std::string("signalfd: ") + std::strerror(errno));
    std::optional<std::vector<Host>> hosts = HostsForAll();
    if (hosts && NeedsHosts() && hosts->empty()) {
      return MachineError("--supervise: none of " + ToText(options_.hosts) + " answers");
    }
    int exit_code = static_cast<int>(StatusCode::kStopped);
    while (hosts) {
      ELASTOR_ASSIGN_OR_RETURN(exit_code, RunJob(*hosts));
      const bool over = exit_code == 0 || EndOf(exit_code) == JobEnd::kFinal;
      if (over || stops_ > 0) return exit_code;
      hosts = HostsOfNextTry(exit_code);
    }
    return exit_code;
  }

 private:
  // Waits until a signal comes, the job's stderr has something, or the time is over.
  void Wait(int error = kNone) {
    std::array<pollfd, 2> files = {{{signals_, POLLIN, 0}, {error, POLLIN, 0}}};
    poll(files.data(), error == kNone ? 1 : 2, kPollMilliseconds);
    signalfd_siginfo info;
    while (read(signals_, &info, sizeof info) == sizeof info) {
      const int signal = static_cast<int>(info.ssi_signo);
      stops_ += signal != SIGCHLD && signal != SIGWINCH;
    }
  }

  bool NeedsHosts() const { return !options_.hosts.empty(); }
  bool NeedsMpirun() const { return NeedsHosts() || options_.ranks > 1; }
  double LeavingSeconds() const { return options_.parallel.deadline_seconds() + kLeavingSeconds; }
  bool IsHeld() const { return IsLocked(options_.output_dir).value_or(false); }

  // Those that answer, with the ranks they get; nothing when a signal came meanwhile. Of a job
  // that needs none: none.
  std::optional<std::vector<Host>> HostsForAll() {
    std::vector<Host> answering = options_.hosts;
    if (options_.hosts.size() > 1) {
      const std::set<std::string> silent = Probe();
      std::erase_if(answering, [&](const Host& host) { return silent.contains(host.name); });
      for (const Host& host : options_.hosts) {
        const bool was = silent_.contains(host.name), is = silent.contains(host.name);
        if (is && !was) Say("host " + host.name + " does not answer and is left out");
        if (was && !is) Say("host " + host.name + " answers again");
      }
      silent_ = silent;
    }
    if (stops_ > 0) return std::nullopt;
    return Fill(answering, options_.ranks);
  }

  // The names of the hosts on which nothing can be started.
  std::set<std::string> Probe() {
    const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    std::map<pid_t, std::string> asked;
    std::set<std::string> silent;
    for (const Host& host : options_.hosts) {
      std::vector<std::string> command = options_.launch;
      for (const std::string& word : {std::string("-np"), std::string("1"), std::string("--host"),
                                      host.name, std::string("true")}) {
        command.push_back(word);
      }
      const StatusOr<pid_t> started =
          StartProcess(command, {.output = nothing, .error = nothing}, nullptr);
      if (started.ok()) asked[*started] = host.name;
      silent.insert(host.name);
    }
    close(nothing);
    const Clock::time_point start = Clock::now();
    while (!asked.empty()) {
      if (SecondsSince(start) > kProbeSeconds || stops_ > 0) {
        for (const auto& [process, name] : asked) kill(-process, SIGKILL);
      }
      int status = 0;
      for (pid_t process; (process = waitpid(-1, &status, WNOHANG)) > 0; asked.erase(process)) {
        if (ExitCodeOf(status) == 0) silent.erase(asked[process]);
      }
      if (!asked.empty()) Wait();
    }
    return silent;
  }

  // After an end that another attempt may not meet: says so, and where it goes on. Nothing when it
  // does not: too many tries in a row, or a signal.
  std::optional<std::vector<Host>> HostsOfNextTry(int exit_code) {
    const int64_t step = CheckpointStep(options_.output_dir);
    if (step > last_step_) tries_ = 0;
    last_step_ = step;
    std::string what = cause_.empty() ? "the job: " + CauseOf(exit_code) : cause_;
    if (const int64_t reached = ProgressReader(options_.output_dir).Read().step; reached > 0) {
      StrAppend(&what, " at step ", reached);
    }
    while (tries_ < options_.max_restarts) {
      ++tries_;
      WaitFor(PauseBeforeTry(tries_));
      const std::optional<std::vector<Host>> hosts = HostsForAll();
      if (!hosts) return std::nullopt;
      if (NeedsHosts() && hosts->empty()) {
        what = "no host answers";
        continue;
      }
      Say(StrCat(what, "; again on ",
                 CountText(NeedsHosts() ? RanksOf(*hosts) : options_.ranks, "rank"),
                 NeedsHosts() ? " of " + ToText(*hosts) : "",
                 step == kNone ? " from the beginning" : StrCat(" from step ", step), ", try ",
                 tries_, " of ", options_.max_restarts));
      return hosts;
    }
    Say(StrCat(what, "; given up after ", tries_, " tries without a later checkpoint"));
    return std::nullopt;
  }

  void WaitFor(std::chrono::seconds pause) {
    const Clock::time_point end = Clock::now() + pause;
    while (stops_ == 0 && Clock::now() < end) Wait();
  }

  std::vector<std::string> Command(const std::vector<Host>& hosts) const {
    std::vector<std::string> trainer = options_.trainer;
    // A run that was there before goes on only where the user says so. Where nothing was written
    // yet, a run that is to go on begins.
    if (attempts_ > 0 && !held_something_) trainer.push_back("--resume");
    if (!NeedsMpirun()) return trainer;
    std::vector<std::string> command = options_.launch;
    command.push_back("-np");
    command.push_back(std::to_string(NeedsHosts() ? RanksOf(hosts) : options_.ranks));
    if (NeedsHosts()) {
      command.push_back("--host");
      command.push_back(ToText(hosts));
    }
    for (const std::string& word : EndingWithItsParent(trainer)) command.push_back(word);
    return command;
  }

  // Runs an attempt to its end; its exit code. Sets cause_.
  StatusOr<int> RunJob(const std::vector<Host>& hosts) {
    const Clock::time_point ended = Clock::now();
    while (attempts_ > 0 && stops_ == 0 && IsHeld() && SecondsSince(ended) < LeavingSeconds()) {
      Wait();
    }
    if (stops_ > 0) return static_cast<int>(StatusCode::kStopped);
    if (attempts_ > 0 && IsHeld()) {
      cause_ = "ranks of an attempt before still hold " + options_.output_dir;
      return static_cast<int>(StatusCode::kMachine);
    }
    std::array<int, 2> error;
    if (pipe2(error.data(), O_CLOEXEC) != 0) {
      return MachineError(std::string("pipe: ") + std::strerror(errno));
    }
    const StatusOr<pid_t> job =
        StartProcess(Command(hosts), {.output = STDOUT_FILENO, .error = error[1]}, nullptr);
    ++attempts_;
    close(error[1]);
    if (!job.ok()) {
      close(error[0]);
      return job.status();
    }
    fcntl(error[0], F_SETFL, O_NONBLOCK);
    const int exit_code = Follow(*job, error[0]);
    close(error[0]);
    return exit_code;
  }

  // Hands on what the job prints, and the signals, until it ends.
  int Follow(pid_t job, int error) {
    const Clock::time_point start = Clock::now();
    SummaryWatch summary(options_.output_dir);
    MpirunReport report;
    // mpirun's to start them, and theirs to find each other. Elsewhere they may never be seen.
    const double seconds_to_appear =
        options_.hosts.empty() ? 2 * options_.parallel.start_seconds() : kForEver;
    RankWatch ranks(job, options_.output_dir, seconds_to_appear);
    int told = 0;  // signals
    int status = 0;
    bool reads = true, left_alone = false;
    for (bool ended = false; !ended;) {
      Wait(reads ? error : kNone);
      ended = waitpid(job, &status, WNOHANG) == job;
      reads = reads && PassOn(error, &report);
      // A rank that is frozen in its last moment, when the others have left, is missed by none.
      const bool stays = NeedsMpirun() && (ranks.SecondsGone() > kMostSecondsAlone ||
                                           summary.SecondsWritten() > LeavingSeconds());
      if (stays && !ended && !left_alone) {
        left_alone = true;
        kill(-job, SIGKILL);
      }
      if (ended || told >= std::min(stops_, 2)) continue;
      if (stops_ > 1) {
        kill(-job, SIGKILL);
        told = 2;
      } else if (SecondsSince(start) > kSignalAfterSeconds) {
        Say("the job writes its checkpoint and ends; another signal kills it");
        kill(job, SIGUSR1);
        told = 1;
      }
    }
    if (const std::string rest = report.Rest(); !rest.empty()) WriteToStderr(rest);
    cause_ = report.cause();
    if (!left_alone || !WIFSIGNALED(status)) return ExitCodeOf(status);
    // The signal was for mpirun alone: the job is judged by what it has left.
    cause_ = StrCat("mpirun did not end within ", static_cast<int>(kMostSecondsAlone),
                    " s of its ranks");
    if (summary.IsWritten()) return 0;
    return told > 0 ? static_cast<int>(StatusCode::kStopped) : ExitCodeOf(status);
  }

  // False at the end of the stream.
  static bool PassOn(int error, MpirunReport* report) {
    std::array<char, 4096> bytes;
    ssize_t count;
    while ((count = read(error, bytes.data(), bytes.size())) > 0) {
      const std::string text = report->Pass({bytes.data(), static_cast<size_t>(count)});
      if (!text.empty()) WriteToStderr(text);
    }
    return count != 0;
  }

  const SuperviseOptions& options_;
  bool held_something_ = false;  // the folder, before the first attempt
  SupervisorLock lock_;
  int signals_ = -1;              // where they are read from
  int stops_ = 0;                 // of these that came
  std::set<std::string> silent_;  // hosts that did not answer last
  int64_t last_step_;             // of the last checkpoint when an attempt ended
  int attempts_ = 0;
  int tries_ = 0;      // attempts since there was a later one
  std::string cause_;  // of the last attempt's end; empty: mpirun told none
};

}  // namespace

StatusOr<int> Supervise(const SuperviseOptions& options) { return Supervisor(options).Run(); }

}  // namespace elastor
