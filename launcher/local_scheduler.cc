#include "launcher/local_scheduler.h"

#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <ctime>
#include <functional>
#include <map>
#include <vector>

#include "core/base/clock.h"
#include "core/base/file.h"
#include "launcher/attempt.h"
#include "launcher/sweep_status.h"

namespace elastor {
namespace {

// A run's folder is locked by its trainer. That of a launcher that was killed may be a moment late.
constexpr double kMostSecondsLocked = 30;
constexpr timespec kPatience = {.tv_sec = 0, .tv_nsec = 200'000'000};

class Scheduler {
 public:
  Scheduler(const Plan& plan, const SweepFiles& files, const Machine& machine,
            const std::string& trainer)
      : plan_(plan), files_(files), trainer_(trainer), free_(machine) {}

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
    Share share;
    Attempt attempt;
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
      const std::optional<Share> share = free_.Take(run.cores(), run.all_gpus(), run.bytes());
      if (!share) {
        ++i;
        continue;
      }
      waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(i));
      ELASTOR_RETURN_IF_ERROR(Start(run, *share));
    }
    return OkStatus();
  }

  Status Start(const PlannedRun& run, const Share& share) {
    ELASTOR_RETURN_IF_ERROR(WriteFileAtomically(files_.Experiment(run.folder), run.experiment));
    ELASTOR_ASSIGN_OR_RETURN(
        Attempt attempt,
        Attempt::Claim(run.folder, files_, {.cores = share.cores, .gpus = share.gpus}));
    ELASTOR_RETURN_IF_ERROR(attempt.Start(LocalCommand(run, files_, trainer_)));
    running_.emplace(attempt.pid(), Running{&run, share, attempt});
    std::string where;
    for (const int core : share.cores) where += (where.empty() ? "" : ",") + std::to_string(core);
    Say((attempt.resumes() ? "resume " : "start  ") + run.folder + "  cores " + where);
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
      if (stops_ == 1) running.attempt.Stop();
      if (stops_ > 1) running.attempt.Kill();
    }
  }

  Status Reap() {
    int status = 0;
    for (pid_t child; (child = waitpid(-1, &status, WNOHANG)) > 0;) {
      const auto found = running_.find(child);
      if (found == running_.end()) continue;
      const Running running = found->second;
      running_.erase(found);
      free_.Return(running.share);
      ELASTOR_RETURN_IF_ERROR(Ended(running, ExitCodeOf(status)));
    }
    return OkStatus();
  }

  Status Ended(const Running& running, int exit_code) {
    const PlannedRun& run = *running.run;
    const std::string last_line = running.attempt.LastLine();
    ELASTOR_RETURN_IF_ERROR(running.attempt.End(exit_code, stops_ > 0));
    const RunStatus status = ReadStatus(run, files_);
    if (status.state == RunState::kDone) {
      ++done_;
      finished_cost_ += run.cost();
      Say("done   " + run.folder + "  " + Metrics(*status.result) + "  " +
          Duration(running.attempt.seconds()) + "  " + Remaining());
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

  // "7/20 done, about 12 min left": what is left takes as long a cost as what was done since the
  // start, half of a run that is under way being done.
  std::string Remaining() const {
    double left = 0, under_way = 0;
    for (const PlannedRun* run : waiting_) left += run->cost();
    for (const auto& [child, running] : running_) under_way += running.run->cost() / 2;
    const double seconds = SecondsSince(start_) * (left + under_way) / (finished_cost_ + under_way);
    const std::string count =
        std::to_string(done_) + "/" + std::to_string(plan_.runs.size()) + " done";
    return left + under_way > 0 ? count + ", about " + Duration(seconds) + " left" : count;
  }

  const Plan& plan_;
  const SweepFiles& files_;
  const std::string trainer_;
  const Clock::time_point start_ = Clock::now();
  FreeResources free_;
  std::vector<const PlannedRun*> waiting_;  // the most expensive first
  std::map<pid_t, Running> running_;
  int stops_ = 0;  // signals that came
  int done_ = 0, failed_ = 0;
  double finished_cost_ = 0;  // since the start
};

}  // namespace

Status RunLocally(const Plan& plan, const SweepFiles& files, const Machine& machine,
                  const std::string& trainer) {
  const sigset_t waited = WaitedSignals();
  sigprocmask(SIG_BLOCK, &waited, nullptr);
  return Scheduler(plan, files, machine, trainer).Run();
}

}  // namespace elastor
