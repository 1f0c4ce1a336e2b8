#include "launcher/folder_lock.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <set>

#include "core/base/clock.h"
#include "core/base/file.h"
#include "core/base/text.h"
#include "core/process/standard_streams.h"
#include "launcher/machine.h"

namespace elastor {
namespace {

constexpr char kOnHost[] = " on host ";

// The first line of the lock's file.
std::string OwnerOf(const SweepFiles& files) {
  const StatusOr<std::string> text = ReadFile(files.Lock());
  return text.ok() ? text->substr(0, text->find('\n')) : "";
}

Status NobodyWorks(const SweepFiles& files) {
  return UserError("--output_dir=" + files.root + ": no launcher is at work there");
}

}  // namespace

Status FolderLock::Take(const SweepFiles& files, double seconds) {
  path_ = files.Lock();
  ELASTOR_ASSIGN_OR_RETURN(const std::set<std::string> names, NamesIn(files.root));
  ELASTOR_ASSIGN_OR_RETURN(const bool of_a_sweep, IsThere(path_));
  if (!names.empty() && !of_a_sweep) {
    return UserError("--output_dir=" + files.root +
                     ": holds something and no sweep; expected a new or empty directory, or a "
                     "sweep's own");
  }
  ELASTOR_RETURN_IF_ERROR(MakeDirectory(files.root));
  lock_ = open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (lock_ < 0) return SystemError(path_, "open");
  constexpr int kMicroseconds = 10'000;
  const Clock::time_point start = Clock::now();
  while (flock(lock_, LOCK_EX | LOCK_NB) != 0) {
    if (SecondsSince(start) < seconds) {
      usleep(kMicroseconds);
      continue;
    }
    Release();
    return UserError("--output_dir=" + files.root + ": " + WorkingLauncher(files) +
                     " is at work there; --status shows how far it is");
  }
  return WriteOwner(getpid());
}

void FolderLock::Release() {
  if (lock_ >= 0) close(lock_);
  lock_ = -1;
}

Status FolderLock::WriteOwner(pid_t launcher) const {
  const std::string text = StrCat(launcher, kOnHost, ReadMachine().host, "\n");
  if (ftruncate(lock_, 0) == 0 &&
      pwrite(lock_, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size())) {
    return OkStatus();
  }
  return MachineError(path_ + ": write: " + std::strerror(errno));
}

Status FolderLock::Detach(const SweepFiles& files, const std::string& told) {
  const std::string path = files.LauncherLog();
  const int log = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (log < 0) return MachineError(path + ": open: " + std::strerror(errno));
  const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
  const pid_t session = fork();
  if (session < 0) return MachineError(std::string("fork: ") + std::strerror(errno));
  if (session > 0) {
    int status = 0;
    waitpid(session, &status, 0);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
      return MachineError("the launcher could not go into the background");
    }
    (void)WriteToStdout(told);
    _exit(0);
  }
  // The leader of the new session ends at once: a process that leads none never gets a terminal.
  setsid();
  const pid_t launcher = fork();
  if (launcher != 0) _exit(launcher > 0 && WriteOwner(launcher).ok() ? 0 : 1);
  signal(SIGHUP, SIG_IGN);
  dup2(nothing, STDIN_FILENO);
  dup2(log, STDOUT_FILENO);
  dup2(log, STDERR_FILENO);
  close(nothing);
  close(log);
  return OkStatus();
}

std::string WorkingLauncher(const SweepFiles& files) {
  const int lock = open(files.Lock().c_str(), O_RDONLY | O_CLOEXEC);
  if (lock < 0) return "";
  const bool works = flock(lock, LOCK_SH | LOCK_NB) != 0;
  close(lock);
  if (!works) return "";
  const std::string owner = OwnerOf(files);
  return owner.empty() ? "another launcher" : "launcher " + owner;
}

Status StopLauncher(const SweepFiles& files) {
  const std::string working = WorkingLauncher(files);
  if (working.empty()) return NobodyWorks(files);
  const std::string owner = OwnerOf(files);
  const std::string host = ReadMachine().host;
  if (!owner.ends_with(kOnHost + host)) {
    return UserError("--output_dir=" + files.root + ": " + working +
                     " is at work there; expected --stop on its host, this is " + host);
  }
  if (kill(std::atoi(owner.c_str()), SIGTERM) != 0) {
    return UserError("--stop: " + working + ": " + std::strerror(errno));
  }
  const int lock = open(files.Lock().c_str(), O_RDONLY | O_CLOEXEC);
  while (lock >= 0 && flock(lock, LOCK_SH) != 0 && errno == EINTR) continue;
  if (lock >= 0) close(lock);
  return OkStatus();
}

}  // namespace elastor
