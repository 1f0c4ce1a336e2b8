#include "launcher/local_scheduler.h"

#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <limits>
#include <list>
#include <map>
#include <vector>

#include "core/base/clock.h"
#include "core/base/file.h"
#include "core/base/text.h"
#include "launcher/attempt.h"
#include "launcher/live_table.h"
#include "launcher/rehearsal.h"
#include "launcher/run_command.h"
#include "launcher/run_table.h"
#include "launcher/sweep_status.h"
#include "launcher/time_estimate.h"
#include "trainer/records/progress_reader.h"
#include "trainer/records/run_records.h"

namespace elastor {
namespace {

// A run's folder is locked by its trainer. That of a launcher that was killed may be a moment late.
constexpr double kMostSecondsLocked = 30;
constexpr timespec kPatience = {.tv_sec = 0, .tv_nsec = 200'000'000};
// A rehearsal looks more often: a run that is over cannot be stopped.
constexpr timespec kRehearsalPatience = {.tv_sec = 0, .tv_nsec = 10'000'000};
constexpr double kFrameSeconds = 0.19;  // between two of the table, a little less than a wait

// A screen has no room for hashes. progress: of a run that is not done.
RunRow RowOnScreen(const PlannedRun& run, const RunStatus& status, const std::string& state,
                   const RunProgress& progress) {
  RunRow row = RowOf(run, status, state);
  row.run = LabelsOfFolder(run.folder);
  if (!status.result) row.progress = progress;
  return row;
}

class Scheduler {
 public:
  Scheduler(const Plan& plan, const SweepFiles& files, const Machine& machine,
            const std::string& trainer, bool rehearse)
      : plan_(plan),
        files_(files),
        trainer_(trainer),
        rehearse_(rehearse),
        cores_(static_cast<int>(machine.cores.size())),
        estimate_(EstimateFrom(plan, files, machine)),
        free_(machine) {}

  Status Run() {
    ReadStates();
    Announce();
    while (!waiting_.empty() || !running_.empty()) {
      if (stops_ == 0) ELASTOR_RETURN_IF_ERROR(StartWhatFits());
      if (running_.empty() && (stops_ > 0 || waiting_.empty())) break;
      DrawTable();
      WaitForSignal();
      ELASTOR_RETURN_IF_ERROR(Reap());
      if (rehearse_ && stops_ == 0) ELASTOR_RETURN_IF_ERROR(Rehearse());
    }
    table_.Erase();
    if (rehearse_) TellRehearsal();
    if (stops_ == 0) return OkStatus();
    return StoppedBySignal(StrCat("stopped by a signal with ", done_, " of ", plan_.runs.size(),
                                  " runs done; start the same command again to go on"));
  }

 private:
  // The share of a run's steps.
  static double StepShare(const PlannedRun& run, int64_t step) {
    return run.steps > 0 ? static_cast<double>(step) / static_cast<double>(run.steps) : 0;
  }

  struct Waiting {
    const PlannedRun* run;
    int64_t step;                       // that it has reached
    Clock::time_point not_before = {};  // when it may be tried again
  };

  struct Running {
    const PlannedRun* run;
    Share share;
    Attempt attempt;
    ProgressReader reader;
    int64_t first_step;  // that earlier attempts had reached
    RunProgress progress = {};
    Attempts earlier = {};
    bool rehearsed = false;  // was told to stop

    // A run that goes on begins a little before the step that it had reached.
    int64_t step() const { return std::max(first_step, progress.step); }
  };

  void ReadStates() {
    for (const PlannedRun& run : plan_.runs) {
      const RunState state = ReadStatus(run, files_).state;
      done_ += state == RunState::kDone;
      failed_ += state == RunState::kFailed;
      if (state == RunState::kWaiting) Wait({&run, 0});
      if (state == RunState::kCutOff) {
        Wait({&run, ProgressReader(files_.Run(run.folder)).Read().step});
      }
    }
    waiting_.sort([](const auto& a, const auto& b) { return a.run->cost() > b.run->cost(); });
  }

  void Wait(const Waiting& waiting) {
    waiting_.push_back(waiting);
    least_cores_ = std::min(least_cores_, waiting.run->cores());
  }

  void Announce() {
    table_.Say(StrCat("sweep ", plan_.name, ": ", plan_.runs.size(), " runs, ", done_, " done, ",
                      failed_, " failed, ", waiting_.size(), " to do"));
  }

  Status StartWhatFits() {
    for (auto next = waiting_.begin(); next != waiting_.end() && free_.cores() >= least_cores_;) {
      const Waiting waiting = *next;
      const PlannedRun& run = *waiting.run;
      if (Clock::now() < waiting.not_before) {
        ++next;
        continue;
      }
      const std::optional<Share> share = free_.Take(run.cores(), run.all_gpus(), run.bytes());
      if (!share) {
        ++next;
        continue;
      }
      if (SecondsSince(start_) < kMostSecondsLocked &&
          IsLocked(files_.Run(run.folder)).value_or(false)) {
        free_.Return(*share);
        ++next;
        continue;
      }
      next = waiting_.erase(next);
      ELASTOR_RETURN_IF_ERROR(Start(waiting, *share));
    }
    return OkStatus();
  }

  Status Start(const Waiting& waiting, const Share& share) {
    const PlannedRun& run = *waiting.run;
    const Attempts earlier = ReadAttempts(files_.Attempts(run.folder));
    ELASTOR_ASSIGN_OR_RETURN(
        Attempt attempt,
        Attempt::Claim(run.folder, files_, {.cores = share.cores, .gpus = share.gpus}));
    Status started = WriteFileAtomically(files_.Experiment(run.folder), run.experiment);
    if (started.ok()) started = attempt.Start(LocalCommand(run, files_, trainer_));
    Running running = {.run = &run,
                       .share = share,
                       .attempt = attempt,
                       .reader = ProgressReader(files_.Run(run.folder)),
                       .first_step = waiting.step,
                       .earlier = earlier};
    if (!started.ok()) {
      free_.Return(share);
      return Ended(std::move(running), static_cast<int>(started.code()), started.message());
    }
    running_.emplace(attempt.pid(), std::move(running));
    std::string where;
    for (const int core : share.cores) where += StrCat(where.empty() ? "" : ",", core);
    table_.Say((attempt.resumes() ? "resume " : "start  ") + run.folder + "  cores " + where);
    return OkStatus();
  }

  void WaitForSignal() {
    const sigset_t waited = WaitedSignals();
    const timespec& patience = rehearse_ && stops_ == 0 ? kRehearsalPatience : kPatience;
    const int signal = sigtimedwait(&waited, nullptr, &patience);
    if (signal < 0 || signal == SIGCHLD || signal == SIGWINCH) return;
    ++stops_;
    table_.Say(stops_ == 1
                   ? "stopping: the runs write their checkpoints; the same signal again kills them"
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
      Running running = std::move(found->second);
      running_.erase(found);
      running.progress = running.reader.Read();
      free_.Return(running.share);
      const std::string last_line = running.attempt.LastLine();
      ELASTOR_RETURN_IF_ERROR(Ended(std::move(running), ExitCodeOf(status), last_line));
    }
    return OkStatus();
  }

  Status Ended(Running running, int exit_code, const std::string& last_line) {
    const PlannedRun& run = *running.run;
    ELASTOR_RETURN_IF_ERROR(running.attempt.End(exit_code, stops_ > 0, last_line));
    const RunStatus status = ReadStatus(run, files_);
    if (status.state == RunState::kDone) {
      ++done_;
      estimate_.Add(run, *status.result);
      ReadProgress();
      table_.Say("done   " + run.folder + "  " + Metrics(*status.result) + "  " +
                 Duration(running.attempt.seconds()) + "  " + Count(done_) + " done" + Remaining());
      table_.AddEnded(RowOnScreen(run, status, "done", {}));
    } else if (stops_ > 0) {
      table_.Say("stopped " + run.folder);
    } else if (status.state == RunState::kCutOff) {
      table_.Say(running.rehearsed
                     ? "rehearsed " + run.folder + "  stopped in mid-run, goes on later"
                     : "again  " + run.folder + "  " + CauseOfAttempt(exit_code) + ": " +
                           last_line);
      Wait({&run, running.step(), Clock::now() + PauseBeforeTry(status.attempts.machine)});
    } else {
      ++failed_;
      table_.Say("failed " + run.folder + "  " + CauseOfAttempt(exit_code) + ": " + last_line);
      table_.AddEnded(RowOnScreen(run, status, "failed", running.progress));
    }
    return OkStatus();
  }

  void ReadProgress() {
    for (auto& [child, running] : running_) running.progress = running.reader.Read();
  }

  Status Rehearse() {
    ReadProgress();
    for (auto& [child, running] : running_) {
      const PlannedRun& run = *running.run;
      if (running.rehearsed || !RehearsalDue(run, running.earlier, running.progress)) continue;
      // What is there may be an earlier attempt's: this one's process handles no signal yet.
      if (running.progress.step <= running.first_step) continue;
      ELASTOR_RETURN_IF_ERROR(AppendRehearsal(files_.Attempts(run.folder)));
      running.rehearsed = true;
      kill(child, SIGUSR1);
    }
    return OkStatus();
  }

  void TellRehearsal() {
    int stopped = 0, finished = 0;
    for (const PlannedRun& run : plan_.runs) {
      const RunStatus status = ReadStatus(run, files_);
      finished += status.state == RunState::kDone;
      stopped += status.state == RunState::kDone && status.attempts.rehearsed > 0;
    }
    table_.Say(StrCat("rehearsal: of ", finished, " finished runs ", stopped,
                      " were stopped in mid-run and went on, ", finished - stopped,
                      " ended before they could be"));
  }

  void DrawTable() {
    if (!table_.drawn() || SecondsSince(drawn_) < kFrameSeconds) return;
    drawn_ = Clock::now();
    ReadProgress();
    std::vector<RunRow> rows;
    for (const auto& [child, running] : running_) {
      rows.push_back(
          RowOnScreen(*running.run, {}, stops_ > 0 ? "stops" : "running", running.progress));
    }
    const std::string cores = StrCat(cores_ - free_.cores(), " of ", cores_, " cores in use");
    table_.Draw(rows, {StrCat(Count(done_), " done, ", running_.size(), " running, ", failed_,
                              " failed, ", waiting_.size(), " waiting"),
                       "sweep " + plan_.name + ": " + cores + Remaining()});
  }

  // "7/20"
  std::string Count(int count) const { return StrCat(count, "/", plan_.runs.size()); }

  // ", about 12 min left", with what may follow these runs; empty while no time is known.
  std::string Remaining() const {
    TimeEstimate estimate = estimate_;
    for (const auto& [child, each] : running_) {
      Summary so_far;
      so_far.samples_per_s = each.progress.samples_per_s;
      so_far.wall_s = static_cast<double>(each.run->samples) / so_far.samples_per_s;
      estimate.Add(*each.run, so_far);
    }
    bool known = true;
    const auto work = [&](const PlannedRun& run, int64_t step) {
      const std::optional<double> seconds = estimate.Seconds(run);
      known &= seconds.has_value();
      return Work{seconds.value_or(0) * (1 - StepShare(run, step)), run.cores()};
    };
    std::vector<Work> running, waiting;
    for (const auto& [child, each] : running_) running.push_back(work(*each.run, each.step()));
    for (const Waiting& each : waiting_) waiting.push_back(work(*each.run, each.step));
    for (const LaterRuns& later : plan_.later) {
      waiting.insert(waiting.end(), static_cast<size_t>(later.count), work(later.each, 0));
    }
    if (!known || (running.empty() && waiting.empty())) return "";
    return (plan_.later.empty() ? ", about " : ", at most about ") +
           Duration(SecondsOnCores(running, std::move(waiting), cores_)) + " left";
  }

  const Plan& plan_;
  const SweepFiles& files_;
  const std::string trainer_;
  const bool rehearse_;
  const int cores_;  // that runs may use
  TimeEstimate estimate_;
  const Clock::time_point start_ = Clock::now();
  FreeResources free_;
  LiveTable table_;
  Clock::time_point drawn_;                            // when the table was, last
  std::list<Waiting> waiting_;                         // the most expensive first
  int least_cores_ = std::numeric_limits<int>::max();  // that a run may wait for
  std::map<pid_t, Running> running_;
  int stops_ = 0;  // signals that came
  int done_ = 0, failed_ = 0;
};

}  // namespace

Status RunLocally(const Plan& plan, const SweepFiles& files, const Machine& machine,
                  const std::string& trainer, bool rehearse) {
  const sigset_t waited = WaitedSignals();
  sigprocmask(SIG_BLOCK, &waited, nullptr);
  return Scheduler(plan, files, machine, trainer, rehearse).Run();
}

}  // namespace elastor
