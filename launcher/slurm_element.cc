#include "launcher/slurm_element.h"

#include <signal.h>
#include <sys/wait.h>

#include <charconv>
#include <cstdlib>
#include <ctime>
#include <optional>
#include <string>

#include "core/base/clock.h"
#include "core/base/text.h"
#include "launcher/attempt.h"
#include "launcher/plan.h"
#include "launcher/slurm_array.h"
#include "launcher/slurm_client.h"
#include "launcher/sweep_status.h"

namespace elastor {
namespace {

constexpr timespec kTick = {.tv_sec = 1, .tv_nsec = 0};
// How often an attempt looks whether it is superseded, and how long one waits for that after an
// attempt without an end: the file system may show a line some seconds late.
constexpr double kLookSeconds = 5, kFenceSeconds = 12;
// parallel.deadline_seconds: so long ranks without their peers may live.
constexpr double kMostSecondsOfOlderAttempt = 300;
constexpr double kRequeueSeconds = 120;

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

class Element {
 public:
  explicit Element(const SweepFiles& files) : files_(files) {}

  Status Run(int array_number) {
    array_id_ = Variable("SLURM_ARRAY_JOB_ID");
    const std::string index = Variable("SLURM_ARRAY_TASK_ID");
    const auto [stop, error] = std::from_chars(index.data(), index.data() + index.size(), index_);
    if (array_id_.empty() || error != std::errc()) {
      return UserError("--element: expected an element of a job array of Slurm around it");
    }
    ELASTOR_ASSIGN_OR_RETURN(const std::optional<ArrayElement> element,
                             ReadElement(files_, array_number, index_));
    if (!element) {
      Say(StrCat("array ", array_number, " is over: nothing to do"));
      return OkStatus();
    }
    run_.folder = element->folder;
    const RunState before = ReadStatus(run_, files_).state;
    if (before == RunState::kDone || before == RunState::kFailed) return OkStatus();
    ELASTOR_ASSIGN_OR_RETURN(Attempt attempt,
                             Attempt::Claim(run_.folder, files_, {.slurm = Here()}));
    int exit_code = kStoppedCode;
    std::string last_line;
    if (WaitForOlder(attempt)) {
      const Status started = attempt.Start(element->command);
      const std::optional<int> ended =
          started.ok() ? WaitForEnd(attempt) : static_cast<int>(started.code());
      if (!ended) return StoppedBySignal(run_.folder + ": superseded by a later attempt");
      exit_code = *ended;
      last_line = started.ok() ? attempt.LastLine() : started.message();
      if (!started.ok()) Say(last_line);
    } else if (!told_) {
      exit_code = kMachineCode;
    }
    ELASTOR_RETURN_IF_ERROR(attempt.End(exit_code, /*stopped_by_launcher=*/false, last_line));
    return Ended(exit_code);
  }

 private:
  std::string Here() const {
    const std::string restarts = Variable("SLURM_RESTART_COUNT");
    return StrCat(array_id_, "_", index_, " restart ", restarts.empty() ? "0" : restarts, " on ",
                  Variable("SLURM_JOB_NODELIST"));
  }

  // Until one comes, for a tick at most.
  void WaitForSignal() {
    const sigset_t waited = WaitedSignals();
    const int signal = sigtimedwait(&waited, nullptr, &kTick);
    if (signal < 0 || signal == SIGCHLD || signal == SIGWINCH) return;
    told_ = true;
    by_slurm_end_ |= signal != SIGUSR1;
  }

  // Whether the attempt may begin: false, too, when a signal says that this one is to end.
  bool WaitForOlder(const Attempt& attempt) {
    const Clock::time_point start = Clock::now();
    while (!told_) {
      const bool fence = attempt.follows_open() && SecondsSince(start) < kFenceSeconds;
      if (!fence && !IsLocked(files_.Run(run_.folder)).value_or(false)) return true;
      if (SecondsSince(start) > kMostSecondsOfOlderAttempt) {
        Say(run_.folder + ": its folder is locked by an older attempt");
        return false;
      }
      WaitForSignal();
    }
    return false;
  }

  // The attempt's exit code; nothing: it was superseded, and is dead.
  std::optional<int> WaitForEnd(const Attempt& attempt) {
    Clock::time_point looked = Clock::now();
    int status = 0;
    while (waitpid(attempt.pid(), &status, WNOHANG) == 0) {
      const bool knew = told_;
      WaitForSignal();
      if (told_ && !knew) attempt.Stop();  // the same signal twice would end the ranks at once
      if (SecondsSince(looked) < kLookSeconds) continue;
      looked = Clock::now();
      if (!attempt.IsSuperseded()) continue;
      attempt.Kill();
      waitpid(attempt.pid(), &status, 0);
      return std::nullopt;
    }
    // mpirun may die of the signal, or of the one that Slurm sends to all of a job.
    const int exit_code = ExitCodeOf(status);
    const bool own = exit_code == kMistakeCode || exit_code == kDivergedCode;
    return told_ && !own ? kStoppedCode : exit_code;
  }

  Status Ended(int exit_code) {
    const RunStatus status = ReadStatus(run_, files_);
    if (status.state == RunState::kDone) return OkStatus();
    const std::string what = run_.folder + ": " + CauseOfAttempt(exit_code);
    if (status.state == RunState::kCutOff && !by_slurm_end_) {
      const Status requeued = RequeueElement(array_id_, index_);
      Say(what + (requeued.ok() ? "; queued again" : "; not queued again: " + requeued.message()));
      // Slurm ends this process now; until then its exit code would be taken for the job's end.
      const Clock::time_point start = Clock::now();
      while (requeued.ok() && SecondsSince(start) < kRequeueSeconds) WaitForSignal();
    }
    const bool known =
        exit_code == kMistakeCode || exit_code == kDivergedCode || exit_code == kStoppedCode;
    return Status(known ? static_cast<StatusCode>(exit_code) : StatusCode::kMachine, what);
  }

  const SweepFiles& files_;
  PlannedRun run_;  // of which the folder alone is known
  std::string array_id_;
  int index_ = -1;
  bool told_ = false;          // by a signal, to end
  bool by_slurm_end_ = false;  // by one that Slurm ends jobs with
};

}  // namespace

Status RunElement(const SweepFiles& files, int array_number) {
  const sigset_t waited = WaitedSignals();
  sigprocmask(SIG_BLOCK, &waited, nullptr);
  return Element(files).Run(array_number);
}

}  // namespace elastor
