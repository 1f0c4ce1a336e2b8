#include "launcher/local_scheduler.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <functional>
#include <map>
#include <system_error>
#include <utility>
#include <vector>

#include "core/base/clock.h"
#include "core/base/file.h"
#include "launcher/sweep_status.h"
#include "launcher/time_estimate.h"
#include "trainer/run/standard_streams.h"

namespace elastor {
namespace {

// A run's folder is locked by its trainer. That of a launcher that was killed may be a moment late.
constexpr double kMostSecondsLocked = 30;
constexpr timespec kPatience = {.tv_sec = 0, .tv_nsec = 200'000'000};
constexpr size_t kMostLineBytes = 300;

// The signals that this process waits for instead of being interrupted.
sigset_t WaitedSignals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGCHLD, SIGINT, SIGTERM, SIGHUP}) sigaddset(&set, signal);
  return set;
}

bool IsLocked(const std::string& directory) {
  const int descriptor = open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return false;
  const bool locked = flock(descriptor, LOCK_EX | LOCK_NB) != 0;
  close(descriptor);
  return locked;
}

bool HoldsSomething(const std::string& directory) {
  std::error_code none;
  return !std::filesystem::is_empty(directory, none) && !none;
}

// Of what was appended to a log since `begin`.
std::string LastLine(const std::string& path, uintmax_t begin) {
  const StatusOr<std::string> text = ReadFile(path);
  if (!text.ok() || text->size() <= begin) return "";
  const size_t end = text->find_last_not_of("\n\r ");
  if (end == text->npos || end < begin) return "";
  const size_t line = text->rfind('\n', end);
  const size_t first = line == text->npos ? 0 : line + 1;
  return text->substr(first, std::min(end + 1 - first, kMostLineBytes));
}

uintmax_t SizeOf(const std::string& path) {
  std::error_code none;
  const uintmax_t size = std::filesystem::file_size(path, none);
  return none ? 0 : size;
}

void Say(const std::string& line) {
  std::array<char, 16> now;
  const std::time_t time = std::time(nullptr);
  std::tm local;
  std::strftime(now.data(), now.size(), "%H:%M:%S", localtime_r(&time, &local));
  // A full disk behind stdout is no reason to stop: the files say all of it.
  (void)WriteToStdout(std::string(now.data()) + " " + line + "\n");
}

// In the child: becomes the command, bound to its cores, in a process group of its own. It dies
// when the launcher does.
[[noreturn]] void Become(const std::vector<std::string>& command, const std::vector<int>& cores,
                         const std::string& log, pid_t launcher) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != launcher) _exit(128 + SIGKILL);  // it died before
  setpgid(0, 0);
  const sigset_t waited = WaitedSignals();
  sigprocmask(SIG_UNBLOCK, &waited, nullptr);
  signal(SIGPIPE, SIG_DFL);
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int core : cores) CPU_SET(core, &set);
  sched_setaffinity(0, sizeof(set), &set);
  const int file = open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (file < 0 || dup2(nothing, 0) < 0 || dup2(file, 1) < 0 || dup2(file, 2) < 0) _exit(3);
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  execvp(words[0], words.data());
  std::fprintf(stderr, "launcher: %s: %s\n", words[0], std::strerror(errno));
  _exit(2);
}

class Scheduler {
 public:
  Scheduler(const Plan& plan, const SweepFiles& files, const Machine& machine,
            const std::string& trainer)
      : plan_(plan),
        files_(files),
        trainer_(trainer),
        cores_(static_cast<int>(machine.cores.size())),
        estimate_(EstimateFrom(plan, files, machine)),
        free_(machine) {}

  Status Run() {
    ReadStates();
    Announce();
    while (!waiting_.empty() || !running_.empty()) {
      if (stops_ == 0) ELASTOR_RETURN_IF_ERROR(StartWhatFits());
      if (running_.empty() && (stops_ > 0 || waiting_.empty())) break;
      WaitForSignal();
      ELASTOR_RETURN_IF_ERROR(Reap());
    }
    if (stops_ == 0) return OkStatus();
    return StoppedBySignal("stopped by a signal with " + std::to_string(done_) + " of " +
                           std::to_string(plan_.runs.size()) +
                           " runs done; start the same command again to go on");
  }

 private:
  struct Running {
    const PlannedRun* run;
    std::vector<int> cores;
    Clock::time_point start;
    uintmax_t log_begin;
  };

  void ReadStates() {
    for (const PlannedRun& run : plan_.runs) {
      const RunState state = ReadStatus(run, files_).state;
      done_ += state == RunState::kDone;
      failed_ += state == RunState::kFailed;
      if (state == RunState::kWaiting || state == RunState::kCutOff) waiting_.push_back(&run);
    }
    std::ranges::stable_sort(waiting_, std::greater<>(),
                             [](const auto* run) { return run->cost(); });
  }

  void Announce() const {
    Say("sweep " + plan_.name + ": " + std::to_string(plan_.runs.size()) + " runs, " +
        std::to_string(done_) + " done, " + std::to_string(failed_) + " failed, " +
        std::to_string(waiting_.size()) + " to do");
  }

  Status StartWhatFits() {
    for (size_t i = 0; i < waiting_.size();) {
      const PlannedRun& run = *waiting_[i];
      if (IsLocked(files_.Run(run.folder)) && SecondsSince(start_) < kMostSecondsLocked) {
        ++i;
        continue;
      }
      const auto cores = free_.Take(run.cores(), run.bytes());
      if (!cores) {
        ++i;
        continue;
      }
      waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(i));
      ELASTOR_RETURN_IF_ERROR(Start(run, *cores));
    }
    return OkStatus();
  }

  Status Start(const PlannedRun& run, const std::vector<int>& cores) {
    ELASTOR_RETURN_IF_ERROR(WriteFileAtomically(files_.Experiment(run.folder), run.experiment));
    const bool resume = HoldsSomething(files_.Run(run.folder));
    const std::vector<std::string> command = Command(run, files_, trainer_, resume);
    const std::string log = files_.Log(run.folder);
    const uintmax_t log_begin = SizeOf(log);
    const pid_t launcher = getpid();
    const pid_t child = fork();
    if (child < 0) return MachineError(std::string("fork: ") + std::strerror(errno));
    if (child == 0) Become(command, cores, log, launcher);
    setpgid(child, child);  // whoever is first
    running_[child] = {&run, cores, Clock::now(), log_begin};
    ELASTOR_RETURN_IF_ERROR(AppendStart(files_.Attempts(run.folder), child, cores));
    std::string where;
    for (const int core : cores) where += (where.empty() ? "" : ",") + std::to_string(core);
    Say((resume ? "resume " : "start  ") + run.folder + "  cores " + where);
    return OkStatus();
  }

  void WaitForSignal() {
    const sigset_t waited = WaitedSignals();
    const int signal = sigtimedwait(&waited, nullptr, &kPatience);
    if (signal < 0 || signal == SIGCHLD) return;
    ++stops_;
    Say(stops_ == 1 ? "stopping: the runs write their checkpoints; the same signal again kills them"
                    : "killing the runs");
    for (const auto& [child, running] : running_) {
      // mpirun hands SIGUSR1 to its ranks. Of a group that is killed none is left.
      if (stops_ == 1) kill(child, SIGUSR1);
      if (stops_ > 1) kill(-child, SIGKILL);
    }
  }

  Status Reap() {
    int status = 0;
    for (pid_t child; (child = waitpid(-1, &status, WNOHANG)) > 0;) {
      const auto found = running_.find(child);
      if (found == running_.end()) continue;
      const Running running = found->second;
      running_.erase(found);
      free_.Return(running.cores, running.run->bytes());
      ELASTOR_RETURN_IF_ERROR(
          Ended(running, WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status)));
    }
    return OkStatus();
  }

  Status Ended(const Running& running, int exit_code) {
    const PlannedRun& run = *running.run;
    const double seconds = SecondsSince(running.start);
    const std::string last_line = LastLine(files_.Log(run.folder), running.log_begin);
    ELASTOR_RETURN_IF_ERROR(
        AppendEnd(files_.Attempts(run.folder), exit_code, stops_ > 0, seconds, last_line));
    const RunStatus status = ReadStatus(run, files_);
    if (status.state == RunState::kDone) {
      ++done_;
      estimate_.Add(run, *status.result);
      const std::optional<double>& auc = status.result->auc;
      const std::optional<double>& logloss = status.result->logloss;
      std::array<char, 64> metrics;
      std::snprintf(metrics.data(), metrics.size(), "auc %.4f  logloss %.4f", auc.value_or(NAN),
                    logloss.value_or(NAN));
      Say("done   " + run.folder + "  " + metrics.data() + "  " + Duration(seconds) + "  " +
          Remaining());
    } else if (stops_ > 0) {
      Say("stopped " + run.folder);
    } else if (status.state == RunState::kCutOff) {
      Say("again  " + run.folder + "  " + CauseOf(exit_code) + ": " + last_line);
      waiting_.push_back(&run);
    } else {
      ++failed_;
      Say("failed " + run.folder + "  " + CauseOf(exit_code) + ": " + last_line);
    }
    return OkStatus();
  }

  // "7/20 done, about 12 min left", with what may follow these runs.
  std::string Remaining() const {
    const std::string count =
        std::to_string(done_) + "/" + std::to_string(plan_.runs.size()) + " done";
    std::vector<Work> running, waiting;
    for (const auto& [child, each] : running_) {
      const double seconds = estimate_.Seconds(*each.run).value_or(0) - SecondsSince(each.start);
      running.push_back({std::max(0.0, seconds), each.run->cores()});
    }
    const auto add = [&](const PlannedRun& run) {
      waiting.push_back({estimate_.Seconds(run).value_or(0), run.cores()});
    };
    for (const PlannedRun* run : waiting_) add(*run);
    for (const LaterRuns& later : plan_.later) {
      for (int64_t i = 0; i < later.count; ++i) add(later.each);
    }
    if (running.empty() && waiting.empty()) return count;
    const bool bound = !plan_.later.empty();
    return count + (bound ? ", at most about " : ", about ") +
           Duration(SecondsOnCores(running, std::move(waiting), cores_)) + " left";
  }

  const Plan& plan_;
  const SweepFiles& files_;
  const std::string trainer_;
  const int cores_;  // of the machine
  TimeEstimate estimate_;
  const Clock::time_point start_ = Clock::now();
  FreeResources free_;
  std::vector<const PlannedRun*> waiting_;  // the most expensive first
  std::map<pid_t, Running> running_;
  int stops_ = 0;  // signals that came
  int done_ = 0, failed_ = 0;
};

}  // namespace

Status RunLocally(const Plan& plan, const SweepFiles& files, const Machine& machine,
                  const std::string& trainer) {
  const sigset_t waited = WaitedSignals();
  sigprocmask(SIG_BLOCK, &waited, nullptr);
  return Scheduler(plan, files, machine, trainer).Run();
}

}  // namespace elastor
