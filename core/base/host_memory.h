#ifndef ELASTOR_CORE_BASE_HOST_MEMORY_H_
#define ELASTOR_CORE_BASE_HOST_MEMORY_H_

#include <cstdint>
#include <limits>
#include <string>

namespace elastor {

inline constexpr int64_t kNoMemoryLimit = std::numeric_limits<int64_t>::max();

// The memory that this process may use of its host, in bytes, as the kernel tells it. What the
// kernel does not tell has no limit.
struct HostMemory {
  std::string host;     // its name
  std::string boot_id;  // alike in all processes of one running kernel, whatever its containers
  int64_t bytes = kNoMemoryLimit;      // physical memory
  int64_t available = kNoMemoryLimit;  // of it, without swapping
  // Of the control groups that the process is in, of both versions, the one with the lowest limit.
  std::string group;  // its path; empty: none has a limit
  int64_t group_bytes = kNoMemoryLimit;
  int64_t group_available = kNoMemoryLimit;      // what its processes may still take
  int64_t address_space_bytes = kNoMemoryLimit;  // of this process: ulimit -v
};

// root: where /proc and /sys are found; for tests. Limits of the process are its own always.
HostMemory ReadHostMemory(const std::string& root = "");

// The most memory that this process has had at a time, in bytes: its pages in RAM, those of mapped
// files included. 0 when the kernel does not tell.
int64_t PeakMemoryBytes(const std::string& root = "");

}  // namespace elastor

#endif  // ELASTOR_CORE_BASE_HOST_MEMORY_H_
