// A layer between a program and the system that fails as disks and clocks do. Loaded into the ranks
// of a job by LD_PRELOAD. A boundary is a call on a file below one of the watched folders: open,
// read, write, fsync, rename, mkdir, unlink, mmap. From the environment:
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

namespace {

enum class Fault { kNone, kCount, kNoSpace, kIoError, kShort, kSlow, kTorn, kClock };
constexpr const char* kNames[] = {"",      "count", "no_space", "io_error",
                                  "short", "slow",  "torn",     "clock"};

std::string Variable(const char* name) {
  const char* const value = getenv(name);
  return value == nullptr ? "" : value;
}

Fault Chosen() {
  const std::string name = Variable("ELASTOR_FAULT");
  const std::string rank = Variable("OMPI_COMM_WORLD_RANK");
  const auto fault = static_cast<Fault>(std::find(kNames, std::end(kNames), name) - kNames);
  const bool mine = (rank.empty() ? "0" : rank) == Variable("ELASTOR_FAULT_RANK") &&
                    access(Variable("ELASTOR_FAULT_MARK").c_str(), F_OK) != 0;
  return mine || fault == Fault::kCount ? fault : Fault::kNone;
}

struct Settings {
  Fault fault = Chosen();
  int64_t boundary = std::atoll(Variable("ELASTOR_FAULT_BOUNDARY").c_str());
  std::string under = Variable("ELASTOR_FAULT_UNDER") + ":";
  std::string mark = Variable("ELASTOR_FAULT_MARK");
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
  if (settings.fault == Fault::kNone) return false;
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

void LeaveMark(const char* call) {
  timespec now;
  syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
  WriteWhole(The().mark, std::to_string(now.tv_sec * 1'000'000'000 + now.tv_nsec) + " " + call);
}

// What is to be done at this boundary: kNone, or the fault.
Fault Meet(const char* call) {
  const Settings& settings = The();
  const int64_t boundary = ++boundaries;
  if (settings.fault == Fault::kCount) {
    const std::string rank = Variable("OMPI_COMM_WORLD_RANK");
    WriteWhole(settings.mark + "." + (rank.empty() ? "0" : rank), std::to_string(boundary));
    return Fault::kNone;
  }
  if (settings.fault == Fault::kNone || boundary < settings.boundary) return Fault::kNone;
  if (boundary == settings.boundary) LeaveMark(call);
  if (settings.fault == Fault::kSlow) {
    const timespec pause = {.tv_sec = 0, .tv_nsec = 20'000'000};
    syscall(SYS_nanosleep, &pause, nullptr);
  }
  const bool once = settings.fault == Fault::kIoError || settings.fault == Fault::kTorn;
  return once && boundary > settings.boundary ? Fault::kNone : settings.fault;
}

void Die() { syscall(SYS_kill, getpid(), SIGKILL); }

int Fail(int reason) {
  errno = reason;
  return -1;
}

// A call that moves bytes: call(bytes) returns how many.
template <typename Call>
ssize_t MoveBytes(const char* name, size_t bytes, bool writes, Call call) {
  switch (Meet(name)) {
    case Fault::kNoSpace:
      if (!writes) break;
      return bytes > 1 && boundaries == The().boundary ? call(bytes / 2) : Fail(ENOSPC);
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
  switch (Meet(name)) {
    case Fault::kNoSpace:
      if (needs_room) return Fail(ENOSPC);
      break;
    case Fault::kIoError:
      return Fail(EIO);
    case Fault::kTorn:
      if (The().boundary % 2 == 0) call();
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
  return The().fault == Fault::kClock && boundary >= The().boundary ? kErrors[boundary % 5] : 0;
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
void* mmap(void* at, size_t bytes, int protection, int flags, int descriptor,
           off_t offset) noexcept {
  const auto map = [](void* where, size_t size, int allowed, int how, int file, off_t from) {
    return reinterpret_cast<void*>(syscall(SYS_mmap, where, size, allowed, how, file, from));
  };
  void* const mapped = map(at, bytes, protection, flags, descriptor, offset);
  if (!IsWatched(descriptor) || mapped == MAP_FAILED) return mapped;
  switch (Meet("mmap")) {
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
