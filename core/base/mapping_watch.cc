#include "core/base/mapping_watch.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>

#include "core/base/status.h"

namespace elastor {

// Entries are never freed, only used again, so that the handler may walk them without a lock.
struct MappingWatch::Entry {
  std::atomic<char*> begin = nullptr;  // null: not in use
  std::atomic<int64_t> bytes = 0;
  std::atomic<int64_t> unreadable_at = -1;
  std::string last_line;  // as it is written
  Entry* next = nullptr;
};

namespace {

using Entry = MappingWatch::Entry;

std::mutex entries_mutex;  // for who adds and reuses entries
std::atomic<Entry*> entries = nullptr;
struct sigaction earlier_action;
const int64_t page_bytes = sysconf(_SC_PAGESIZE);

// Calls nothing but mmap, sigaction, write and _exit, which are system calls without locks.
void HandleBusError(int, siginfo_t* info, void*) {
  const int saved_errno = errno;
  const char* const address = static_cast<const char*>(info->si_addr);
  for (Entry* entry = entries; entry != nullptr; entry = entry->next) {
    char* const begin = entry->begin;
    const int64_t bytes = entry->bytes;
    if (begin == nullptr || address < begin || address >= begin + bytes) continue;
    if (const std::string& line = entry->last_line; !line.empty()) {
      [[maybe_unused]] const ssize_t told = write(STDERR_FILENO, line.data(), line.size());
      _exit(static_cast<int>(StatusCode::kMachine));
    }
    const int64_t offset = (address - begin) / page_bytes * page_bytes;
    if (mmap(begin + offset, bytes - offset, PROT_READ, MAP_PRIVATE | MAP_FIXED | MAP_ANONYMOUS, -1,
             0) == MAP_FAILED) {
      break;
    }
    int64_t none = -1;
    entry->unreadable_at.compare_exchange_strong(none, offset);
    errno = saved_errno;
    return;
  }
  // The fault happens again under whoever handled it before (Open MPI, the system).
  sigaction(SIGBUS, &earlier_action, nullptr);
  errno = saved_errno;
}

void InstallHandler() {
  struct sigaction action = {};
  action.sa_sigaction = HandleBusError;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGBUS, &action, &earlier_action);
}

// One that is not in use, or a new one.
Entry* FreeEntry() {
  for (Entry* entry = entries; entry != nullptr; entry = entry->next) {
    if (entry->begin == nullptr) return entry;
  }
  Entry* const entry = new Entry;
  entry->next = entries;
  entries = entry;
  return entry;
}

Entry* Watch(char* begin, int64_t bytes, const std::string& last_line) {
  const std::lock_guard lock(entries_mutex);
  static const bool installed = (InstallHandler(), true);
  static_cast<void>(installed);
  Entry* const entry = FreeEntry();
  entry->bytes = bytes;
  entry->unreadable_at = -1;
  entry->last_line = last_line.empty() ? "" : last_line + "\n";
  entry->begin = begin;
  return entry;
}

}  // namespace

MappingWatch::MappingWatch(char* begin, int64_t bytes, const std::string& last_line)
    : entry_(Watch(begin, bytes, last_line)) {}

MappingWatch::~MappingWatch() { entry_->begin = nullptr; }

int64_t MappingWatch::unreadable_at() const { return entry_->unreadable_at; }

}  // namespace elastor
