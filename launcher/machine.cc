#include "launcher/machine.h"

#include <sched.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string_view>
#include <system_error>
#include <utility>

#include "core/base/host_memory.h"

namespace elastor {
namespace {

// A hierarchy of control groups that limits time, as Linux mounts it by custom.
struct Hierarchy {
  std::string mount;
  std::string group;  // of this process, below `mount`
};

// By the lines "4:cpu,cpuacct:/a/b", and "0::/a/b" of version 2.
std::vector<Hierarchy> Hierarchies(const std::string& root) {
  std::vector<Hierarchy> found;
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (first == line.npos || second == line.npos) continue;
    const std::string controllers = line.substr(first, second - first + 1);
    const std::string group = line.substr(second + 1);
    if (controllers == "::") found.push_back({root + "/sys/fs/cgroup", group});
    for (const char* name : {":cpu,", ":cpu:", ",cpu,", ",cpu:"}) {
      if (controllers.find(name) != controllers.npos) {
        found.push_back({root + "/sys/fs/cgroup/cpu", group});
      }
    }
  }
  return found;
}

// Cores' worth of time that a group allows: "QUOTA PERIOD" in cpu.max, or a file for each.
double AllowedCores(const std::string& directory) {
  double quota = 0, period = 0;
  if (std::ifstream file(directory + "/cpu.max"); file >> quota >> period && period > 0) {
    return quota / period;
  }
  std::ifstream quota_file(directory + "/cpu.cfs_quota_us");
  std::ifstream period_file(directory + "/cpu.cfs_period_us");
  if (quota_file >> quota && period_file >> period && quota > 0 && period > 0) {
    return quota / period;
  }
  return std::numeric_limits<double>::infinity();
}

// The least that the process's groups, and all that they are in, allow.
double AllowedCoresOfGroups(const std::string& root) {
  double least = std::numeric_limits<double>::infinity();
  for (const Hierarchy& hierarchy : Hierarchies(root)) {
    std::string group = hierarchy.group == "/" ? "" : hierarchy.group;
    while (true) {
      least = std::min(least, AllowedCores(hierarchy.mount + group));
      const size_t slash = group.rfind('/');
      if (slash == group.npos) break;
      group.resize(slash);
    }
  }
  return least;
}

std::vector<int> CoresOfAffinity() {
  std::vector<int> cores;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return {0};
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  }
  return cores;
}

std::vector<int> GpusIn(const std::string& directory) {
  constexpr std::string_view kPrefix = "nvidia";
  std::vector<int> gpus;
  std::error_code none;
  for (std::filesystem::directory_iterator entry(directory, none), end; !none && entry != end;
       entry.increment(none)) {
    const std::string name = entry->path().filename();
    if (!name.starts_with(kPrefix)) continue;
    const char* const last = name.data() + name.size();
    int number = 0;
    const auto [stop, error] = std::from_chars(name.data() + kPrefix.size(), last, number);
    if (error == std::errc() && stop == last && number >= 0) gpus.push_back(number);
  }
  std::ranges::sort(gpus);
  return gpus;
}

std::vector<int> TakeFirst(int count, std::vector<int>* numbers) {
  const std::vector<int> taken(numbers->begin(), numbers->begin() + count);
  numbers->erase(numbers->begin(), numbers->begin() + count);
  return taken;
}

}  // namespace

Machine ReadMachine(const std::string& root) {
  const HostMemory memory = ReadHostMemory(root);
  Machine machine;
  machine.host = memory.host;
  machine.memory_bytes = std::min(memory.bytes, memory.group_bytes);
  machine.cores = CoresOfAffinity();
  machine.gpus = GpusIn(root + "/dev");
  const double allowed = std::max(1.0, std::floor(AllowedCoresOfGroups(root)));
  if (allowed < static_cast<double>(machine.cores.size())) {
    machine.cores.resize(static_cast<size_t>(allowed));
  }
  return machine;
}

std::optional<Share> FreeResources::Take(int cores, int gpus, int64_t memory_bytes) {
  if (cores > static_cast<int>(free_.cores.size()) || gpus > static_cast<int>(free_.gpus.size()) ||
      memory_bytes > free_.memory_bytes) {
    return std::nullopt;
  }
  free_.memory_bytes -= memory_bytes;
  return Share{TakeFirst(cores, &free_.cores), TakeFirst(gpus, &free_.gpus), memory_bytes};
}

void FreeResources::Return(const Share& share) {
  for (const auto& [free, back] :
       {std::pair{&free_.cores, &share.cores}, std::pair{&free_.gpus, &share.gpus}}) {
    free->insert(free->end(), back->begin(), back->end());
    std::ranges::sort(*free);
  }
  free_.memory_bytes += share.memory_bytes;
}

}  // namespace elastor
