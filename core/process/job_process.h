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

// A trainer's job as seen by the programs that start and restart it: the launcher of sweeps and
// trainer --supervise.

// The consequence of a job's end. All programs that restart jobs use this one rule; each decides
// how often to restart.
enum class JobEnd {
  kStopped,  // 75: a signal stopped it; a restart goes on from there
  kMachine,  // 3, mpirun's 1 and its codes for lost hosts, killed, 0 without results: another
             // attempt may not meet that
  kFinal,    // 2 a mistake, 4 diverged, a program error, others: the same would happen
};
JobEnd EndOf(int exit_code);         // 128 + n: by signal n
std::string CauseOf(int exit_code);  // "diverged", for people
int ExitCodeOf(int wait_status);

// Returns how long to wait before a job is tried again for the n-th time in a row: 0, 1, 2, 4, ...
// 60 s, since a missing resource may be back by then. The pause is 0 for n = 0.
std::chrono::seconds PauseBeforeTry(int n);

// Returns the signals that a process with jobs waits for (sigtimedwait, signalfd) instead of being
// interrupted. SIGHUP is among them unless it is ignored, as under nohup.
sigset_t WaitedSignals();

// Returns whether a trainer works in the run's folder, according to the file system's locks; false
// if the folder does not exist. Returns nothing if that cannot be determined: no file descriptor is
// free, or the file system has no locks.
std::optional<bool> IsLocked(const std::string& run_directory);

// The state of a process's descendants that run this program.
enum class ProgramBelow {
  kNone,
  kEnded,  // all have ended and are zombies, which are recognised by name
  kAlive,
};
// Returns nothing if some process of this host cannot be inspected.
std::optional<ProgramBelow> ThisProgramBelow(pid_t process);

// Returns mpirun with the option that keeps its own messages back; Open MPI 5 refuses `-q`, which
// is the same, and prints them.
std::vector<std::string> QuietMpirun();
// An error unless PATH has Open MPI's mpirun, whose options the programs use.
Status CheckMpirun();

// Returns mpirun's options that make it notice within seconds that the link to a host is cut.
std::vector<std::string> KeepaliveOptions();
// Returns the command wrapped so that the kernel kills it when the process that started it ends. It
// serves ranks, which would otherwise outlive an mpirun that is killed.
std::vector<std::string> EndingWithItsParent(const std::vector<std::string>& command);

struct ProcessStreams {
  int output;
  int error;
};
// Starts the command in a process group of its own, with WaitedSignals() unblocked and nothing on
// stdin. It is killed (SIGKILL) when the calling thread ends. prepare, if set, is called in the new
// process before the command. REQUIRES: one thread; the signals are blocked.
StatusOr<pid_t> StartProcess(const std::vector<std::string>& command, const ProcessStreams& streams,
                             const std::function<void()>& prepare);

}  // namespace elastor

#endif  // ELASTOR_CORE_PROCESS_JOB_PROCESS_H_
