#include "launcher/folder_lock.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>

#include "core/base/clock.h"
#include "core/base/file.h"
#include "core/base/text.h"
#include "core/process/standard_streams.h"
#include "launcher/machine.h"

namespace elastor {
namespace {

constexpr char kOnHost[] = " on host ";

// The launcher that the lock's file names. Whoever can write the folder may have written it.
struct Owner {
  pid_t process;
  std::string host;
};
std::optional<Owner> OwnerOf(const SweepFiles& files) {
  const StatusOr<std::string> text = ReadFile(files.Lock());
  if (!text.ok()) return std::nullopt;
  const std::string_view line = std::string_view(*text).substr(0, text->find('\n'));
  Owner owner;
  const auto [stop, error] = std::from_chars(line.data(), line.data() + line.size(), owner.process);
  const std::string_view rest = line.substr(stop - line.data());
  if (error != std::errc() || owner.process <= 1 || !rest.starts_with(kOnHost)) return std::nullopt;
  owner.host = rest.substr(sizeof(kOnHost) - 1);
  return owner;
}

// Whether the process runs this program and has the lock's file open, as the launcher that works in
// the folder does.
bool IsLauncherOf(pid_t process, const SweepFiles& files) {
  namespace fs = std::filesystem;
  const std::string folder = "/proc/" + std::to_string(process);
  std::error_code error;
  const std::string own = fs::read_symlink("/proc/self/exe", error).filename();
  const std::string program = fs::read_symlink(folder + "/exe", error).filename();
  // A program that was built again since it was started.
  if (error || (program != own && program != own + " (deleted)")) return false;
  struct stat lock, opened;
  if (stat(files.Lock().c_str(), &lock) != 0) return false;
  fs::directory_iterator entry(folder + "/fd", error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    if (stat(entry->path().c_str(), &opened) == 0 && opened.st_dev == lock.st_dev &&
        opened.st_ino == lock.st_ino) {
      return true;
    }
  }
  return false;
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
  ELASTOR_ASSIGN_OR_RETURN(lock_, OpenFile(path_, O_RDWR | O_CREAT));
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
  ELASTOR_ASSIGN_OR_RETURN(const int log,
                           OpenFile(files.LauncherLog(), O_WRONLY | O_CREAT | O_APPEND));
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
  const StatusOr<int> lock = OpenFile(files.Lock(), O_RDONLY);
  if (!lock.ok()) return "";
  const bool works = flock(*lock, LOCK_SH | LOCK_NB) != 0;
  close(*lock);
  if (!works) return "";
  const std::optional<Owner> owner = OwnerOf(files);
  return owner ? "launcher " + std::to_string(owner->process) + kOnHost + owner->host
               : "another launcher";
}

Status StopLauncher(const SweepFiles& files) {
  const std::string working = WorkingLauncher(files);
  const std::string folder = "--output_dir=" + files.root + ": ";
  const Status nobody = UserError(folder + "no launcher is at work there");
  if (working.empty()) return nobody;
  const std::optional<Owner> owner = OwnerOf(files);
  const std::string host = ReadMachine().host;
  if (owner && owner->host != host) {
    return UserError(folder + working + " is at work there; expected --stop on its host, this is " +
                     host);
  }
  // The descriptor stays this process's when its number is given to another one. (The C library's
  // header cannot be used from C++.)
  const int process = owner ? static_cast<int>(syscall(SYS_pidfd_open, owner->process, 0)) : -1;
  if (process < 0 || !IsLauncherOf(owner->process, files)) {
    if (process >= 0) close(process);
    if (WorkingLauncher(files).empty()) return nobody;  // it has just ended
    return UserError(folder + "something holds " + files.Lock() + ", and no launcher is at work " +
                     "there that this user can stop; nothing was stopped");
  }
  Status stopped;
  if (syscall(SYS_pidfd_send_signal, process, SIGTERM, nullptr, 0) != 0) {
    stopped = UserError("--stop: " + working + ": " + std::strerror(errno));
  }
  pollfd ended = {.fd = process, .events = POLLIN, .revents = 0};
  while (stopped.ok() && poll(&ended, 1, /*timeout=*/-1) < 0 && errno == EINTR) continue;
  close(process);
  return stopped;
}

}  // namespace elastor
