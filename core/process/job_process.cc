#include "core/process/job_process.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <system_error>

namespace elastor {
namespace {

constexpr int kSignalBase = 128;
constexpr int kMostSignal = 64;

// Ends of a job besides those of StatusCode.
constexpr int kMpirun = 1, kProgramError = kSignalBase + SIGABRT;

constexpr int kMistake = static_cast<int>(StatusCode::kUser);

constexpr int kLongestPauseSeconds = 60;

// In the child.
[[noreturn]] void Become(const std::vector<std::string>& command, const ProcessStreams& streams,
                         const std::function<void()>& prepare, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(kSignalBase + SIGKILL);  // it died before
  setpgid(0, 0);
  const sigset_t waited = WaitedSignals();
  sigprocmask(SIG_UNBLOCK, &waited, nullptr);
  signal(SIGPIPE, SIG_DFL);
  signal(SIGXFSZ, SIG_DFL);
  if (prepare) prepare();
  const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (dup2(nothing, STDIN_FILENO) < 0 || dup2(streams.output, STDOUT_FILENO) < 0 ||
      dup2(streams.error, STDERR_FILENO) < 0) {
    _exit(static_cast<int>(StatusCode::kMachine));
  }
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  execvp(words[0], words.data());
  std::fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, words[0],
               std::strerror(errno));
  _exit(kMistake);
}

}  // namespace

JobEnd EndOf(int exit_code) {
  switch (exit_code) {
    case static_cast<int>(StatusCode::kStopped):
      return JobEnd::kStopped;
    case static_cast<int>(StatusCode::kOk):
    case static_cast<int>(StatusCode::kMachine):
    case kMpirun:
      return JobEnd::kMachine;
    default:
      return exit_code > kSignalBase && exit_code != kProgramError ? JobEnd::kMachine
                                                                   : JobEnd::kFinal;
  }
}

std::string CauseOf(int exit_code) {
  switch (exit_code) {
    case static_cast<int>(StatusCode::kOk):
      return "ended without a summary";
    case kMistake:
      return "a mistake";
    case static_cast<int>(StatusCode::kMachine):
      return "a machine or a peer failed";
    case static_cast<int>(StatusCode::kDiverged):
      return "diverged";
    case static_cast<int>(StatusCode::kStopped):
      return "stopped by a signal";
    case kProgramError:
      return "a program error";
    default:
      break;
  }
  if (exit_code > kSignalBase && exit_code <= kSignalBase + kMostSignal) {
    return "killed by signal " + std::to_string(exit_code - kSignalBase);
  }
  return "exit code " + std::to_string(exit_code);
}

int ExitCodeOf(int wait_status) {
  return WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : kSignalBase + WTERMSIG(wait_status);
}

std::chrono::seconds PauseBeforeTry(int n) {
  int seconds = n < 2 ? 0 : 1;
  for (int i = 2; i < n && seconds < kLongestPauseSeconds; ++i) seconds *= 2;
  return std::chrono::seconds(std::min(seconds, kLongestPauseSeconds));
}

sigset_t WaitedSignals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGCHLD, SIGINT, SIGTERM, SIGUSR1, SIGWINCH}) sigaddset(&set, signal);
  struct sigaction hang_up;
  sigaction(SIGHUP, nullptr, &hang_up);
  if (hang_up.sa_handler != SIG_IGN) sigaddset(&set, SIGHUP);
  return set;
}

std::optional<bool> IsLocked(const std::string& run_directory) {
  const int descriptor = open(run_directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0 && errno == ENOENT) return false;
  if (descriptor < 0) return std::nullopt;
  std::optional<bool> locked = flock(descriptor, LOCK_EX | LOCK_NB) != 0;
  if (*locked && errno != EWOULDBLOCK) locked = std::nullopt;  // no locks there
  close(descriptor);
  return locked;
}

std::optional<ProgramBelow> ThisProgramBelow(pid_t process) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (error) return std::nullopt;
  std::string name;
  std::getline(std::ifstream("/proc/self/comm"), name);
  std::map<pid_t, pid_t> parents;
  std::vector<pid_t> alive, ended;
  fs::directory_iterator entry("/proc", error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    const pid_t number = std::atoi(entry->path().filename().c_str());
    if (number == 0) continue;
    std::ifstream file(entry->path() / "stat");
    // It is gone, or no descriptor is left.
    if (!file.is_open() && errno != ENOENT && errno != ESRCH) return std::nullopt;
    std::string stat;
    std::getline(file, stat, '\0');
    // "7 (name) S 3": a name may hold anything.
    const size_t begin = std::min(stat.find('('), stat.size()), end = stat.rfind(')');
    std::istringstream after_name(stat.substr(end + 1));
    char state = 0;
    after_name >> state >> parents[number];
    std::error_code none;
    if (fs::read_symlink(entry->path() / "exe", none) == program) alive.push_back(number);
    if (state == 'Z' && stat.substr(begin, end - begin) == "(" + name) ended.push_back(number);
  }
  if (error) return std::nullopt;
  const auto is_below = [&](pid_t below) {
    do {
      below = parents[below];
    } while (below != process && below > 1);
    return below == process;
  };
  if (std::any_of(alive.begin(), alive.end(), is_below)) return ProgramBelow::kAlive;
  return std::any_of(ended.begin(), ended.end(), is_below) ? ProgramBelow::kEnded
                                                           : ProgramBelow::kNone;
}

std::vector<std::string> KeepaliveOptions() {
  return {"--mca", "oob_tcp_keepalive_time",   "2", "--mca", "oob_tcp_keepalive_intvl", "1",
          "--mca", "oob_tcp_keepalive_probes", "3"};
}

std::vector<std::string> QuietMpirun() { return {"mpirun", "--mca", "orte_execute_quiet", "1"}; }

Status CheckMpirun() {
  std::string command;
  for (const std::string& word : QuietMpirun()) command += word + " ";
  const int status = std::system((command + "--version >/dev/null 2>&1").c_str());
  if (status == 0) return OkStatus();
  constexpr int kNotFound = 127;
  const std::string found = ExitCodeOf(status) == kNotFound ? "not found" : "not Open MPI's";
  return UserError("mpirun: " + found + "; expected Open MPI's first in PATH for several ranks");
}

std::vector<std::string> EndingWithItsParent(const std::vector<std::string>& command) {
  std::vector<std::string> words = {"setpriv", "--pdeathsig", "KILL"};
  words.insert(words.end(), command.begin(), command.end());
  return words;
}

StatusOr<pid_t> StartProcess(const std::vector<std::string>& command, const ProcessStreams& streams,
                             const std::function<void()>& prepare) {
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) return MachineError(std::string("fork: ") + std::strerror(errno));
  if (child == 0) Become(command, streams, prepare, parent);
  setpgid(child, child);  // whoever is first
  return child;
}

}  // namespace elastor
