#include "core/process/claimed_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <set>
#include <utility>

#include "core/base/clock.h"
#include "core/base/file.h"

namespace elastor {
namespace {

constexpr double kSilentSeconds = 1;
constexpr int kPollMicroseconds = 10'000;

// The path and its parents that do not exist, parents first.
std::vector<std::string> MissingDirectories(const std::string& path) {
  std::vector<std::string> missing;
  for (size_t end = 0; end != path.npos;) {
    end = path.find('/', end + 1);
    const std::string directory = path.substr(0, end);
    struct stat info;
    if (stat(directory.c_str(), &info) != 0 && errno == ENOENT) missing.push_back(directory);
  }
  return missing;
}

}  // namespace

StatusOr<ClaimedFolder> ClaimedFolder::Claim(const std::string& path, double patience_s,
                                             const std::function<void()>& waits) {
  const std::string flag = "--output_dir=" + path + ": ";
  const Clock::time_point start = Clock::now();
  bool told = waits == nullptr;
  while (true) {
    ClaimedFolder folder(path);
    const std::vector<std::string> missing = MissingDirectories(path);
    if (const Status made = MakeDirectory(path); !made.ok()) {
      folder.made_ = missing;
      return Status(made.code(), flag + "cannot be made: " + made.message());
    }
    folder.lock_ = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder.lock_ < 0 || access(path.c_str(), W_OK | X_OK) != 0) {
      const std::string reason = std::strerror(errno);
      return Status(SystemError(path, "open").code(), flag + "cannot write there: " + reason);
    }
    while (flock(folder.lock_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
      const double waited = SecondsSince(start);
      if (waited > patience_s) return UserError(flag + "another process is writing there");
      if (waited > kSilentSeconds && !told) waits();
      told = told || waited > kSilentSeconds;
      usleep(kPollMicroseconds);
    }
    // Only who holds the lock removes folders: those of a process that goes on stay.
    folder.made_ = missing;
    // Otherwise another process has just removed or replaced the folder.
    ELASTOR_ASSIGN_OR_RETURN(const bool in_place, folder.IsInPlace());
    if (in_place) return folder;
    folder.Keep();
  }
}

ClaimedFolder::ClaimedFolder(ClaimedFolder&& other) noexcept { *this = std::move(other); }

ClaimedFolder& ClaimedFolder::operator=(ClaimedFolder&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(made_, other.made_);
  std::swap(lock_, other.lock_);
  return *this;
}

ClaimedFolder::~ClaimedFolder() {
  // Those that somebody has put something into stay.
  for (; !made_.empty(); made_.pop_back()) rmdir(made_.back().c_str());
  if (lock_ >= 0) close(lock_);
}

Status ClaimedFolder::CheckIsEmpty(const std::string& expected, std::string_view remains) const {
  ELASTOR_ASSIGN_OR_RETURN(const std::set<std::string> names, NamesIn(path_));
  for (const std::string& name : names) {
    if (name == remains) continue;
    return UserError("--output_dir=" + path_ + ": holds '" + name + "'; expected " + expected);
  }
  return OkStatus();
}

StatusOr<bool> ClaimedFolder::IsInPlace() const { return LeadsTo(path_, lock_); }

Status MakeWithin(const std::string& path) {
  const Status made = MakeOwnDirectory(path);
  struct stat facts;
  if (made.ok() || lstat(path.c_str(), &facts) != 0) return made;
  if (S_ISLNK(facts.st_mode)) {
    if (facts.st_uid == geteuid() || facts.st_uid == 0) return MakeDirectory(path);
    return UserError(path + ": a symbolic link of another user; expected a folder, or nothing");
  }
  return S_ISDIR(facts.st_mode) ? OkStatus() : made;
}

StatusOr<bool> LeadsTo(const std::string& path, int descriptor) {
  struct stat opened, now;
  if (fstat(descriptor, &opened) != 0) return SystemError(path, "stat");
  if (stat(path.c_str(), &now) == 0) {
    return now.st_dev == opened.st_dev && now.st_ino == opened.st_ino;
  }
  if (errno == ENOENT || errno == ENOTDIR) return false;
  return MachineError(path + ": stat: " + std::strerror(errno));
}

}  // namespace elastor
