#include "core/base/exhausted.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cinttypes>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <system_error>

namespace elastor {
namespace {

constexpr int kMachineExitCode = 3;  // StatusCode::kMachine
constexpr int64_t kUnknown = -1;
constexpr size_t kLeastStackBytes = size_t{8} << 20;

thread_local const char* thread_purpose = nullptr;
std::atomic<bool> throws{false};

// A line in a buffer of its own, because there may be no memory left for another one.
class Line {
 public:
  [[gnu::format(printf, 2, 3)]] void Add(const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const int length = std::vsnprintf(text_ + size_, sizeof(text_) - size_, format, arguments);
    va_end(arguments);
    size_ = std::min(size_ + std::max(length, 0), static_cast<int>(sizeof(text_)) - 2);
  }

  // Begins as the other lines of a program do; the rank is its launcher's.
  void AddSpeaker() {
    Add("%s: ", program_invocation_short_name);
    for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"}) {
      if (const char* rank = std::getenv(name); rank != nullptr) return Add("rank %s: ", rank);
    }
  }

  [[noreturn]] void PrintAndExit(int exit_code = kMachineExitCode) {
    text_[size_++] = '\n';
    const ssize_t written = write(STDERR_FILENO, text_, size_);
    static_cast<void>(written);  // there is nobody left to tell
    _exit(exit_code);
  }

 private:
  char text_[1024];
  int size_ = 0;
};

// The first thread goes on; the others wait for the end of the process.
void SpeakAlone() {
  static std::atomic<bool> spoken{false};
  while (spoken.exchange(true)) pause();
}

// The first number behind `name` in a file of the kernel's; kUnknown when there is none.
int64_t NumberOf(const char* path, const char* name) {
  char text[2048];
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return kUnknown;
  const ssize_t size = read(file, text, sizeof(text) - 1);
  close(file);
  text[std::max<ssize_t>(size, 0)] = '\0';
  const char* const at = std::strstr(text, name);
  if (at == nullptr) return kUnknown;
  const char* const number = at + std::strlen(name);
  char* end = nullptr;
  const int64_t value = std::strtoll(number, &end, 10);
  return end == number ? kUnknown : value;
}

int64_t LimitOf(__rlimit_resource resource) {
  rlimit limit = {};
  const bool limited = getrlimit(resource, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  return limited ? static_cast<int64_t>(limit.rlim_cur) : kUnknown;
}

}  // namespace

MemoryPurpose::MemoryPurpose(const char* purpose)
    : outer_(std::exchange(thread_purpose, purpose)) {}

MemoryPurpose::~MemoryPurpose() { thread_purpose = outer_; }

void ThrowWhenExhausted() { throws = true; }

void EndForMemory(uint64_t bytes, std::string_view purpose) {
  if (throws) throw std::bad_alloc();
  SpeakAlone();
  if (purpose.empty() && thread_purpose != nullptr) purpose = thread_purpose;
  if (purpose.empty()) purpose = "working memory";
  Line line;
  line.AddSpeaker();
  line.Add("cannot allocate %" PRIu64 " bytes for %.*s", bytes, static_cast<int>(purpose.size()),
           purpose.data());
  const int64_t pages = NumberOf("/proc/self/statm", "");
  if (const int64_t limit = LimitOf(RLIMIT_AS); limit != kUnknown && pages != kUnknown) {
    line.Add("; the process has %" PRId64
             " bytes of address space, its limit (ulimit -v) is %" PRId64,
             pages * sysconf(_SC_PAGESIZE), limit);
  }
  const int64_t total = NumberOf("/proc/meminfo", "MemTotal:");
  const int64_t available = NumberOf("/proc/meminfo", "MemAvailable:");
  if (total != kUnknown && available != kUnknown) {
    line.Add("; of the host's %" PRId64 " bytes of memory %" PRId64 " are available", total * 1024,
             available * 1024);
  }
  line.PrintAndExit();
}

void EndWithLine(int exit_code, std::string_view text) {
  SpeakAlone();
  Line line;
  line.AddSpeaker();
  line.Add("%.*s", static_cast<int>(text.size()), text.data());
  line.PrintAndExit(exit_code);
}

void RaiseStackLimit() {
  rlimit limit = {};
  if (getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur >= kLeastStackBytes) return;
  const rlimit asked = {kLeastStackBytes, std::max<rlim_t>(limit.rlim_max, kLeastStackBytes)};
  if (setrlimit(RLIMIT_STACK, &asked) == 0) return;  // the superuser may
  limit.rlim_cur = limit.rlim_max;
  static_cast<void>(setrlimit(RLIMIT_STACK, &limit));
  constexpr rlim_t kLeastOfMain = rlim_t{1} << 20;
  if (limit.rlim_max >= kLeastOfMain) return;
  Line line;
  line.AddSpeaker();
  line.Add("the stack may have %" PRIu64 " bytes (ulimit -s); expected %" PRIu64 " or more",
           static_cast<uint64_t>(limit.rlim_max), static_cast<uint64_t>(kLeastOfMain));
  line.PrintAndExit();
}

void GiveThreadsStacks() {
  static const bool once = [] {
    pthread_attr_t attributes;
    size_t bytes = 0;
    if (pthread_getattr_default_np(&attributes) != 0) return false;
    pthread_attr_getstacksize(&attributes, &bytes);
    if (bytes < kLeastStackBytes) {
      pthread_attr_setstacksize(&attributes, kLeastStackBytes);
      pthread_setattr_default_np(&attributes);
    }
    pthread_attr_destroy(&attributes);
    return true;
  }();
  static_cast<void>(once);
}

void EndForThreads(int64_t number, int64_t asked, const char* purpose, int error) {
  if (throws) throw std::system_error(error, std::generic_category(), purpose);
  SpeakAlone();
  struct Limit {
    const char* name;
    int64_t threads;
  };
  const int64_t maps = NumberOf("/proc/sys/vm/max_map_count", "");
  const Limit limits[] = {
      {"ulimit -u", LimitOf(RLIMIT_NPROC)},
      {"kernel.threads-max", NumberOf("/proc/sys/kernel/threads-max", "")},
      {"kernel.pid_max", NumberOf("/proc/sys/kernel/pid_max", "")},
      {"vm.max_map_count / 2", maps / 2},  // a thread maps its stack and a guard before it
      {"pids.max of the control group", NumberOf("/sys/fs/cgroup/pids.max", "")},
      {"pids.max of the control group", NumberOf("/sys/fs/cgroup/pids/pids.max", "")},
  };
  const Limit* least = nullptr;
  for (const Limit& limit : limits) {
    if (limit.threads > 0 && (least == nullptr || limit.threads < least->threads)) least = &limit;
  }
  Line line;
  line.AddSpeaker();
  line.Add("cannot start thread %" PRId64 " of %" PRId64 " for %s: %s", number, asked, purpose,
           std::strerror(error));
  const int64_t address_space = LimitOf(RLIMIT_AS);
  const int64_t stack = LimitOf(RLIMIT_STACK);
  if (address_space != kUnknown && stack != kUnknown) {
    line.Add("; it takes %" PRId64
             " bytes of address space (ulimit -s), the process may have %" PRId64 " (ulimit -v)",
             std::max(stack, static_cast<int64_t>(kLeastStackBytes)), address_space);
  } else if (least != nullptr) {
    line.Add("; there can be %" PRId64 " at most (%s)", least->threads, least->name);
  }
  line.PrintAndExit();
}

namespace {

void* Allocate(size_t bytes) { return std::malloc(std::max<size_t>(bytes, 1)); }

void* AllocateAligned(size_t bytes, std::align_val_t alignment) {
  void* memory = nullptr;
  const int failed = posix_memalign(
      &memory, std::max(static_cast<size_t>(alignment), sizeof(void*)), std::max<size_t>(bytes, 1));
  return failed == 0 ? memory : nullptr;
}

}  // namespace
}  // namespace elastor

// All forms, in pairs: the library's own `operator delete` may free memory that was taken otherwise
// (a sanitizer's does).
void* operator new(size_t bytes) {
  void* const memory = elastor::Allocate(bytes);
  if (memory == nullptr) elastor::EndForMemory(bytes, "");
  return memory;
}
void* operator new(size_t bytes, std::align_val_t alignment) {
  void* const memory = elastor::AllocateAligned(bytes, alignment);
  if (memory == nullptr) elastor::EndForMemory(bytes, "");
  return memory;
}
void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  return elastor::Allocate(bytes);
}
void* operator new(size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return elastor::AllocateAligned(bytes, alignment);
}

void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t, const std::nothrow_t&) noexcept {
  std::free(memory);
}

void* operator new[](size_t bytes) { return operator new(bytes); }
void* operator new[](size_t bytes, std::align_val_t alignment) {
  return operator new(bytes, alignment);
}
void* operator new[](size_t bytes, const std::nothrow_t& none) noexcept {
  return operator new(bytes, none);
}
void* operator new[](size_t bytes, std::align_val_t alignment,
                     const std::nothrow_t& none) noexcept {
  return operator new(bytes, alignment, none);
}

void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t, const std::nothrow_t&) noexcept {
  std::free(memory);
}
