#include "launcher/attempt.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <system_error>

#include "core/base/file.h"
#include "trainer/run/standard_streams.h"

namespace elastor {
namespace {

constexpr size_t kMostLineBytes = 300;

bool HoldsSomething(const std::string& directory) {
  std::error_code none;
  return !std::filesystem::is_empty(directory, none) && !none;
}

uintmax_t SizeOf(const std::string& path) {
  std::error_code none;
  const uintmax_t size = std::filesystem::file_size(path, none);
  return none ? 0 : size;
}

std::string Joined(const std::vector<int>& numbers) {
  std::string text;
  for (const int number : numbers) text += (text.empty() ? "" : ",") + std::to_string(number);
  return text;
}

void Bind(const std::vector<int>& cores) {
  if (cores.empty()) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int core : cores) CPU_SET(core, &set);
  sched_setaffinity(0, sizeof(set), &set);
}

// In the child: becomes the command, in a process group of its own. It dies when the launcher does.
[[noreturn]] void Become(const std::vector<std::string>& command, const Place& place,
                         const std::string& log, pid_t launcher) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != launcher) _exit(128 + SIGKILL);  // it died before
  setpgid(0, 0);
  const sigset_t waited = WaitedSignals();
  sigprocmask(SIG_UNBLOCK, &waited, nullptr);
  signal(SIGPIPE, SIG_DFL);
  Bind(place.cores);
  if (!place.gpus.empty()) setenv("CUDA_VISIBLE_DEVICES", Joined(place.gpus).c_str(), 1);
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

}  // namespace

sigset_t WaitedSignals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGCHLD, SIGINT, SIGTERM, SIGUSR1, SIGWINCH}) sigaddset(&set, signal);
  struct sigaction hang_up;
  sigaction(SIGHUP, nullptr, &hang_up);
  if (hang_up.sa_handler != SIG_IGN) sigaddset(&set, SIGHUP);
  return set;
}

bool IsLocked(const std::string& run_directory) {
  const int descriptor = open(run_directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return false;
  const bool locked = flock(descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  close(descriptor);
  return locked;
}

int ExitCodeOf(int wait_status) {
  return WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 128 + WTERMSIG(wait_status);
}

StatusOr<Attempt> Attempt::Claim(const std::string& folder, const SweepFiles& files,
                                 const Place& place) {
  Attempt attempt;
  attempt.run_directory_ = files.Run(folder);
  attempt.attempts_ = files.Attempts(folder);
  attempt.log_ = files.Log(folder);
  attempt.place_ = place;
  attempt.follows_open_ = ReadAttempts(attempt.attempts_).open;
  ELASTOR_RETURN_IF_ERROR(AppendStart(attempt.attempts_, getpid(), place));
  attempt.number_ = ReadAttempts(attempt.attempts_).started;
  attempt.log_begin_ = SizeOf(attempt.log_);
  return attempt;
}

Status Attempt::Start(std::vector<std::string> command) {
  resumes_ = HoldsSomething(run_directory_);
  if (resumes_) command.push_back("--resume");
  start_ = Clock::now();
  const pid_t launcher = getpid();
  pid_ = fork();
  if (pid_ < 0) return MachineError(std::string("fork: ") + std::strerror(errno));
  if (pid_ == 0) Become(command, place_, log_, launcher);
  setpgid(pid_, pid_);  // whoever is first
  return OkStatus();
}

bool Attempt::IsSuperseded() const { return ReadAttempts(attempts_).started > number_; }

std::string Attempt::LastLine() const {
  const StatusOr<std::string> text = ReadFile(log_);
  if (!text.ok() || text->size() <= log_begin_) return "";
  const size_t end = text->find_last_not_of("\n\r ");
  if (end == text->npos || end < log_begin_) return "";
  const size_t line = text->rfind('\n', end);
  const size_t first = line == text->npos ? 0 : line + 1;
  return text->substr(first, std::min(end + 1 - first, kMostLineBytes));
}

Status Attempt::End(int exit_code, bool stopped_by_launcher) const {
  return AppendEnd(attempts_, exit_code, stopped_by_launcher, seconds(), LastLine());
}

void Say(const std::string& line) {
  std::array<char, 16> now;
  const std::time_t time = std::time(nullptr);
  std::tm local;
  std::strftime(now.data(), now.size(), "%H:%M:%S", localtime_r(&time, &local));
  // A full disk behind stdout is no reason to stop: the files say all of it.
  (void)WriteToStdout(std::string(now.data()) + " " + line + "\n");
}

}  // namespace elastor
