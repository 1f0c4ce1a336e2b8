#ifndef ELASTOR_CORE_PROCESS_JOB_PROCESS_H_
#define ELASTOR_CORE_PROCESS_JOB_PROCESS_H_

#include <signal.h>
#include <sys/types.h>

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/base/status.h"

namespace elastor {

// A trainer's job from the view of its starters, which also restart it: the launcher of sweeps and
// trainer --supervise.

// The action that a job's end calls for. All starters follow this rule; each decides how often it
// restarts.
enum class JobEnd {
  kStopped,  // 75: it goes on where a signal stopped it
  kMachine,  // 3, mpirun's 1 and its codes for lost hosts, killed, 0 without results: another
             // attempt may not meet that
  kFinal,    // 2 a mistake, 4 diverged, a program error, others: the same would happen
};
JobEnd EndOf(int exit_code);         // 128 + n: by signal n
std::string CauseOf(int exit_code);  // "diverged", for people
int ExitCodeOf(int wait_status);

// How long to wait before a job is tried again for the n-th time in a row: 0, 1, 2, 4, ... 60 s,
// for what it lacked may be there by then. No time for n = 0.
std::chrono::seconds PauseBeforeTry(int n);

// The signals that a process with jobs waits for (sigtimedwait, signalfd) instead of being
// interrupted; SIGHUP unless it is ignored, as under nohup.
sigset_t WaitedSignals();

// Whether a trainer is at work in the run's folder, as far as the file system's locks tell; none is
// where there is no such folder. Nothing when that cannot be looked at: no descriptor is left to
// open it, or there are no locks.
std::optional<bool> IsLocked(const std::string& run_directory);

// The processes below one that run this program, it itself left out.
enum class ProgramBelow {
  kNone,
  kEnded,  // all of them, and nobody has waited for them (zombies), which are known by their name
  kAlive,
};
// Nothing when not every process of this host can be looked at.
std::optional<ProgramBelow> ThisProgramBelow(pid_t process);

// mpirun's options by which it notices within seconds that the link to a host is cut.
std::vector<std::string> KeepaliveOptions();
// The command as one that the kernel kills when the process that started it ends, for ranks, which
// would outlive an mpirun that is killed.
std::vector<std::string> EndingWithItsParent(const std::vector<std::string>& command);

struct ProcessStreams {
  int output;
  int error;
};
// Starts the command in a process group of its own, with WaitedSignals() unblocked and nothing on
// stdin. It dies (SIGKILL) with the thread that called. prepare, if there is one: called in it
// before the command. REQUIRES: one thread; the signals are blocked.
StatusOr<pid_t> StartProcess(const std::vector<std::string>& command, const ProcessStreams& streams,
                             const std::function<void()>& prepare);

}  // namespace elastor

#endif  // ELASTOR_CORE_PROCESS_JOB_PROCESS_H_
