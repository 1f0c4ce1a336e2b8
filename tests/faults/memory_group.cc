#include "tests/faults/memory_group.h"

#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>
#include <thread>

#include "core/base/log.h"
#include "tests/faults/job.h"

namespace elastor {
namespace {

namespace fs = std::filesystem;

// Where the groups of a version are mounted; of the first, those of memory. Empty: nowhere.
std::string MountOf(bool first_version) {
  std::istringstream mounts(Contents("/proc/self/mounts"));
  std::string device, folder, type, options, rest;
  while (mounts >> device >> folder >> type >> options && std::getline(mounts, rest)) {
    const bool memory = ("," + options + ",").find(",memory,") != options.npos;
    if (first_version ? type == "cgroup" && memory : type == "cgroup2") return folder;
  }
  return "";
}

// The group that this process is in, below the mount: "/a/b".
std::string OwnGroup(bool first_version) {
  std::istringstream lines(Contents("/proc/self/cgroup"));
  for (std::string line; std::getline(lines, line);) {  // "4:memory,hugetlb:/a/b", "0::/a/b"
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    if (controllers.find(first_version ? ",memory," : ",,") != controllers.npos) {
      return line.substr(second + 1);
    }
  }
  return "";
}

// Whether groups below this one have limits of memory.
bool SharesMemory(const fs::path& group) {
  std::istringstream controllers(Contents(group / "cgroup.subtree_control"));
  for (std::string controller; controllers >> controller;) {
    if (controller == "memory") return true;
  }
  return false;
}

}  // namespace

MemoryGroup::MemoryGroup() {
  for (const bool first_version : {true, false}) {
    const std::string mount = MountOf(first_version);
    if (mount.empty()) continue;
    first_version_ = first_version;
    fs::path above = mount + OwnGroup(first_version);
    // A group of version 2 that has processes shares nothing, unless it is the first of all.
    while (!first_version && !SharesMemory(above) && above.has_relative_path() && above != mount) {
      above = above.parent_path();
    }
    path_ = above.lexically_normal() / ("elastor_faults." + std::to_string(getpid()));
    std::error_code error;
    fs::create_directory(path_, error);
    if (!error && Limit(-1)) return;
    fs::remove(path_, error);
    path_.clear();
  }
}

int64_t MemoryGroup::Value(const std::string& file, const std::string& name) const {
  std::istringstream lines(Contents(path_ + "/" + file));
  std::string found;
  for (int64_t value; lines >> found >> value;) {
    if (found == name) return value;
  }
  return 0;
}

int64_t MemoryGroup::Used() const {
  const std::string file = "memory.stat";
  if (!first_version_) return Value(file, "anon") + Value(file, "shmem") + Value(file, "kernel");
  return Value(file, "rss") + Value(file, "shmem") +
         std::atoll(Contents(path_ + "/memory.kmem.usage_in_bytes").c_str());
}

bool MemoryGroup::Limit(int64_t bytes) const {
  std::ofstream limit(path_ + (first_version_ ? "/memory.limit_in_bytes" : "/memory.max"));
  const std::string none = first_version_ ? "-1" : "max";
  limit << (bytes < 0 ? none : std::to_string(bytes)) << std::flush;
  return limit.good();
}

int64_t MemoryGroup::Kills() const {
  return Value(first_version_ ? "memory.oom_control" : "memory.events", "oom_kill");
}

void MemoryGroup::Remove() const {
  // The kernel may need a moment for processes that have just ended.
  std::error_code error;
  for (int tries = 0; tries < 500; ++tries) {
    if (fs::remove(path_, error); !error) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  LOG(WARNING) << path_ << ": not removed: " << error.message();
}

}  // namespace elastor
