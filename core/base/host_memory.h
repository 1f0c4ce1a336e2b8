#ifndef ELASTOR_CORE_BASE_HOST_MEMORY_H_
#define ELASTOR_CORE_BASE_HOST_MEMORY_H_

#include <cstdint>
#include <limits>
#include <string>

namespace elastor {

inline constexpr int64_t kNoMemoryLimit = std::numeric_limits<int64_t>::max();

// The memory that this process may use of its host, in bytes, as the kernel reports it. A value
// that the kernel does not report counts as unlimited.
struct HostMemory {
  std::string host;     // its name
  std::string boot_id;  // the same for all processes of one running kernel, in any container
  int64_t bytes = kNoMemoryLimit;      // physical memory
  int64_t available = kNoMemoryLimit;  // physical memory that can still be taken without swapping
  // The control group with the lowest limit among those the process is in, of both cgroup versions.
  std::string group;  // its path; empty: none has a limit
  int64_t group_bytes = kNoMemoryLimit;
  int64_t group_available = kNoMemoryLimit;      // what the group's processes may still take
  int64_t address_space_bytes = kNoMemoryLimit;  // limit of this process's address space: ulimit -v
};

// root: the folder that holds /proc and /sys; tests set it. The process's own limits never depend
// on it.
HostMemory ReadHostMemory(const std::string& root = "");

// Returns this process's peak memory in bytes: its pages in RAM, including pages of mapped files. 0
// if the kernel does not report it.
int64_t PeakMemoryBytes(const std::string& root = "");

}  // namespace elastor

#endif  // ELASTOR_CORE_BASE_HOST_MEMORY_H_
