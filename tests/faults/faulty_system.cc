// A layer between a program and the system that fails as disks and clocks do. Loaded into the ranks
// of a job by LD_PRELOAD. A boundary is a call on a file below one of the watched folders: open,
// read, write, fsync, rename, mkdir, unlink, unlinkat, rmdir, remove, mmap. From the environment,
// of several faults a list each, separated by commas:
//
//   ELASTOR_FAULT           what happens at the boundary:
//
//     count: nothing; the number of boundaries so far is kept in the file MARK.RANK.
//
//     no_space: half of a write is made, and all that wants room fails with ENOSPC from then on.
//
//     io_error: this one call fails with EIO, a mapping from some page on, as SIGBUS.
//
//     short: this and all later reads and writes are a part of what was asked for.
//
//     slow: this and all later calls take 20 ms longer.
//
//     torn: half of a write is made, or before or after another call: the process dies.
//
//     clock: from then on the clock of the day jumps, at every boundary elsewhere.
//
//   ELASTOR_FAULT_RANK      of which rank (OMPI_COMM_WORLD_RANK; 0 without mpirun)
//   ELASTOR_FAULT_BOUNDARY  at which one, from 1 on
//   ELASTOR_FAULT_UNDER     the watched folders, separated by colons
//   ELASTOR_FAULT_MARK      a file that is made when it happens: CLOCK_MONOTONIC in ns, then the
//   call. Where it is there already, nothing more happens: ranks are started again
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio_ext.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

// Of several at one boundary the last here is done.
enum class Fault { kNone, kCount, kClock, kSlow, kShort, kNoSpace, kIoError, kTorn };
constexpr const char* kNames[] = {"",      "count",    "clock",    "slow",
                                  "short", "no_space", "io_error", "torn"};

std::string Variable(const char* name) {
  const char* const value = getenv(name);
  return value == nullptr ? "" : value;
}

std::vector<std::string> List(const char* name) {
  std::vector<std::string> values;
  std::string rest = Variable(name) + ",";
  for (size_t end; (end = rest.find(',')) != rest.npos; rest.erase(0, end + 1)) {
    values.push_back(rest.substr(0, end));
  }
  return values;
}

std::string Rank() {
  const std::string rank = Variable("OMPI_COMM_WORLD_RANK");
  return rank.empty() ? "0" : rank;
}

struct Plan {
  Fault fault;
  int64_t boundary;
  std::string mark;
};

// Of this rank, without those that have happened.
std::vector<Plan> Chosen() {
  const auto names = List("ELASTOR_FAULT"), ranks = List("ELASTOR_FAULT_RANK");
  const auto boundaries = List("ELASTOR_FAULT_BOUNDARY"), marks = List("ELASTOR_FAULT_MARK");
  std::vector<Plan> plans;
  for (size_t i = 0; i < names.size(); ++i) {
    const auto fault = static_cast<Fault>(std::find(kNames, std::end(kNames), names[i]) - kNames);
    if (fault == Fault::kNone) continue;
    if (fault == Fault::kCount) {
      plans.push_back({fault, 1, marks[i] + "." + Rank()});
    } else if (ranks[i] == Rank() && access(marks[i].c_str(), F_OK) != 0) {
      plans.push_back({fault, std::atoll(boundaries[i].c_str()), marks[i]});
    }
  }
  return plans;
}

struct Settings {
  std::vector<Plan> plans = Chosen();
  std::string under = Variable("ELASTOR_FAULT_UNDER") + ":";
};

// Made at the first call, which may come before main.
const Settings& The() {
  static const Settings* const settings = new Settings;
  return *settings;
}

std::atomic<int64_t> boundaries = 0;
constexpr int kMostDescriptors = 4096;
std::atomic<bool> watched[kMostDescriptors];  // descriptors of files below a watched folder

bool IsWatched(int descriptor) {
  return descriptor >= 0 && descriptor < kMostDescriptors && watched[descriptor];
}
int Watch(int descriptor, bool watch) {
  if (descriptor >= 0 && descriptor < kMostDescriptors) watched[descriptor] = watch;
  return descriptor;
}
bool IsWatched(const char* path) {
  const Settings& settings = The();
  if (settings.plans.empty()) return false;
  for (size_t begin = 0, end; (end = settings.under.find(':', begin)) != std::string::npos;
       begin = end + 1) {
    if (end > begin && strncmp(path, settings.under.c_str() + begin, end - begin) == 0) return true;
  }
  return false;
}

void WriteWhole(const std::string& path, const std::string& text) {
  const int file = syscall(SYS_openat, AT_FDCWD, path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
  syscall(SYS_write, file, text.data(), text.size());
  syscall(SYS_close, file);
}

void LeaveMark(const std::string& mark, const char* call) {
  timespec now;
  syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
  WriteWhole(mark, std::to_string(now.tv_sec * 1'000'000'000 + now.tv_nsec) + " " + call);
}

// What is to be done at a boundary, which is the number `boundary`: kNone, or the fault, from
// `first` on.
struct Met {
  Fault fault = Fault::kNone;
  int64_t boundary = 0, first = 0;
};
Met Meet(const char* call) {
  Met met = {.boundary = ++boundaries};
  for (const Plan& plan : The().plans) {
    if (plan.fault == Fault::kCount) {
      WriteWhole(plan.mark, std::to_string(met.boundary));
      continue;
    }
    if (met.boundary < plan.boundary) continue;
    if (met.boundary == plan.boundary) LeaveMark(plan.mark, call);
    if (plan.fault == Fault::kSlow) {
      const timespec pause = {.tv_sec = 0, .tv_nsec = 20'000'000};
      syscall(SYS_nanosleep, &pause, nullptr);
    }
    const bool once = plan.fault == Fault::kIoError || plan.fault == Fault::kTorn;
    if ((once && met.boundary > plan.boundary) || plan.fault < met.fault) continue;
    met.fault = plan.fault;
    met.first = plan.boundary;
  }
  return met;
}

void Die() { syscall(SYS_kill, getpid(), SIGKILL); }

int Fail(int reason) {
  errno = reason;
  return -1;
}

// A call that moves bytes: call(bytes) returns how many.
template <typename Call>
ssize_t MoveBytes(const char* name, size_t bytes, bool writes, Call call) {
  const Met met = Meet(name);
  switch (met.fault) {
    case Fault::kNoSpace:
      if (!writes) break;
      return bytes > 1 && met.boundary == met.first ? call(bytes / 2) : Fail(ENOSPC);
    case Fault::kIoError:
      return Fail(EIO);
    case Fault::kShort:
      return call(bytes == 0 ? 0 : 1 + bytes / 3);
    case Fault::kTorn:
      if (writes) call(bytes / 2);
      Die();
      break;
    default:
      break;
  }
  return call(bytes);
}

// Another call. needs_room: it may fail for want of it.
template <typename Call>
auto Do(const char* name, bool needs_room, Call call) -> decltype(call()) {
  const Met met = Meet(name);
  switch (met.fault) {
    case Fault::kNoSpace:
      if (needs_room) return Fail(ENOSPC);
      break;
    case Fault::kIoError:
      return Fail(EIO);
    case Fault::kTorn:
      if (met.boundary % 2 == 0) call();
      Die();
      break;
    default:
      break;
  }
  return call();
}

int OpenFile(const char* path, int flags, mode_t mode) {
  const auto call = [&] {
    return static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, flags, mode));
  };
  if (!IsWatched(path)) return Watch(call(), false);
  return Watch(Do("open", (flags & O_CREAT) != 0, call), true);
}

mode_t ModeOf(int flags, va_list arguments) {
  return (flags & (O_CREAT | __O_TMPFILE)) != 0 ? va_arg(arguments, mode_t) : 0;
}

std::FILE* OpenStream(const char* path, const char* mode) {
  static const auto real =
      reinterpret_cast<std::FILE* (*)(const char*, const char*)>(dlsym(RTLD_NEXT, "fopen"));
  const bool watch = IsWatched(path);
  if (watch && Do("fopen", mode[0] != 'r', [] { return 0; }) != 0) return nullptr;
  std::FILE* const file = real(path, mode);
  if (file != nullptr) Watch(fileno(file), watch);
  return file;
}

// Seconds that the clock of the day is wrong by.
int64_t ClockError() {
  constexpr int64_t kErrors[] = {86400 * 400, -7200, 3, -86400 * 30, 1};
  const int64_t boundary = boundaries;
  for (const Plan& plan : The().plans) {
    if (plan.fault == Fault::kClock && boundary >= plan.boundary) return kErrors[boundary % 5];
  }
  return 0;
}

}  // namespace

extern "C" {

int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = ModeOf(flags, arguments);
  va_end(arguments);
  return OpenFile(path, flags, mode);
}
int open64(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = ModeOf(flags, arguments);
  va_end(arguments);
  return OpenFile(path, flags, mode);
}
int close(int descriptor) {
  Watch(descriptor, false);
  return static_cast<int>(syscall(SYS_close, descriptor));
}
ssize_t write(int descriptor, const void* data, size_t bytes) {
  const auto call = [&](size_t part) -> ssize_t {
    return syscall(SYS_write, descriptor, data, part);
  };
  return IsWatched(descriptor) ? MoveBytes("write", bytes, true, call) : call(bytes);
}
ssize_t read(int descriptor, void* data, size_t bytes) {
  const auto call = [&](size_t part) -> ssize_t {
    return syscall(SYS_read, descriptor, data, part);
  };
  return IsWatched(descriptor) ? MoveBytes("read", bytes, false, call) : call(bytes);
}
int fsync(int descriptor) {
  const auto call = [&] { return static_cast<int>(syscall(SYS_fsync, descriptor)); };
  return IsWatched(descriptor) ? Do("fsync", true, call) : call();
}
int rename(const char* from, const char* to) noexcept {
  const auto call = [&] { return static_cast<int>(syscall(SYS_rename, from, to)); };
  return IsWatched(to) ? Do("rename", true, call) : call();
}
int mkdir(const char* path, mode_t mode) noexcept {
  const auto call = [&] { return static_cast<int>(syscall(SYS_mkdir, path, mode)); };
  return IsWatched(path) ? Do("mkdir", true, call) : call();
}
int unlink(const char* path) noexcept {
  const auto call = [&] { return static_cast<int>(syscall(SYS_unlink, path)); };
  return IsWatched(path) ? Do("unlink", false, call) : call();
}
int rmdir(const char* path) noexcept {
  const auto call = [&] { return static_cast<int>(syscall(SYS_rmdir, path)); };
  return IsWatched(path) ? Do("rmdir", false, call) : call();
}
// What std::filesystem::remove calls.
int remove(const char* path) noexcept {
  const auto call = [&] {
    const int result = static_cast<int>(syscall(SYS_unlink, path));
    return result == 0 || errno != EISDIR ? result : static_cast<int>(syscall(SYS_rmdir, path));
  };
  return IsWatched(path) ? Do("remove", false, call) : call();
}
// What std::filesystem::remove_all calls for all that is in a folder.
int unlinkat(int folder, const char* name, int flags) noexcept {
  const auto call = [&] { return static_cast<int>(syscall(SYS_unlinkat, folder, name, flags)); };
  char path[PATH_MAX] = "";
  const std::string link = "/proc/self/fd/" + std::to_string(folder);
  (void)!syscall(SYS_readlink, link.c_str(), path, sizeof path - 1);
  return IsWatched(path) ? Do("unlinkat", false, call) : call();
}
void* mmap(void* at, size_t bytes, int protection, int flags, int descriptor,
           off_t offset) noexcept {
  const auto map = [](void* where, size_t size, int allowed, int how, int file, off_t from) {
    return reinterpret_cast<void*>(syscall(SYS_mmap, where, size, allowed, how, file, from));
  };
  void* const mapped = map(at, bytes, protection, flags, descriptor, offset);
  if (!IsWatched(descriptor) || mapped == MAP_FAILED) return mapped;
  switch (Meet("mmap").fault) {
    case Fault::kIoError: {
      // Pages of an empty file are SIGBUS, as those are that a disk does not give.
      const int empty = static_cast<int>(syscall(SYS_memfd_create, "empty", 0));
      const size_t page = sysconf(_SC_PAGESIZE);
      const size_t whole = bytes / 2 / page * page;
      map(static_cast<char*>(mapped) + whole, bytes - whole, protection, MAP_SHARED | MAP_FIXED,
          empty, 0);
      syscall(SYS_close, empty);
      break;
    }
    case Fault::kTorn:
      Die();
      break;
    default:
      break;
  }
  return mapped;
}
void* mmap64(void* at, size_t bytes, int protection, int flags, int descriptor,
             off_t offset) noexcept {
  return mmap(at, bytes, protection, flags, descriptor, offset);
}
std::FILE* fopen(const char* path, const char* mode) { return OpenStream(path, mode); }
std::FILE* fopen64(const char* path, const char* mode) { return OpenStream(path, mode); }
// The C library's streams write by themselves: what they hold goes through write above.
int fflush(std::FILE* file) {
  static const auto real = reinterpret_cast<int (*)(std::FILE*)>(dlsym(RTLD_NEXT, "fflush"));
  if (file == nullptr || !IsWatched(fileno(file))) return real(file);
  const char* at = file->_IO_write_base;
  ssize_t written = 0;
  while (written >= 0 && at < file->_IO_write_ptr) {
    written = write(fileno(file), at, file->_IO_write_ptr - at);
    at += written;
  }
  __fpurge(file);
  return written < 0 ? EOF : 0;
}
int fclose(std::FILE* file) {
  static const auto real = reinterpret_cast<int (*)(std::FILE*)>(dlsym(RTLD_NEXT, "fclose"));
  Watch(fileno(file), false);
  return real(file);
}

int clock_gettime(clockid_t clock, timespec* now) noexcept {
  const int result = static_cast<int>(syscall(SYS_clock_gettime, clock, now));
  if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE) now->tv_sec += ClockError();
  return result;
}
int gettimeofday(timeval* now, void* zone) noexcept {
  const int result = static_cast<int>(syscall(SYS_gettimeofday, now, zone));
  now->tv_sec += ClockError();
  return result;
}
time_t time(time_t* now) noexcept {
  timespec found;
  clock_gettime(CLOCK_REALTIME, &found);
  if (now != nullptr) *now = found.tv_sec;
  return found.tv_sec;
}

}  // extern "C"
