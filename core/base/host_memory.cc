#include "core/base/host_memory.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <sstream>
#include <vector>

namespace elastor {
namespace {

constexpr int64_t kKibibyte = 1024;
// Version 1 writes a number near 2^63, cut to whole pages, for no limit.
constexpr int64_t kUnlimitedV1 = int64_t{1} << 60;

// The first line of a file; empty when there is none.
std::string FirstLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// A number, otherwise ("max", no such file) no limit.
int64_t NumberIn(const std::string& path) {
  const std::string line = FirstLine(path);
  int64_t number = kNoMemoryLimit;
  std::from_chars(line.data(), line.data() + line.size(), number);
  return number;
}

// The number behind `name` in a file of lines "name number".
int64_t NumberOf(const std::string& path, const std::string& name, int64_t otherwise) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string first;
    int64_t number = 0;
    if (words >> first >> number && first == name) return number;
  }
  return otherwise;
}

// The names of a version's files.
struct GroupFiles {
  const char* limit;
  const char* usage;
  const char* reclaimable;  // entry of memory.stat: pages of files, that the kernel takes back
};
constexpr GroupFiles kVersion1 = {"memory.limit_in_bytes", "memory.usage_in_bytes",
                                  "total_inactive_file"};
constexpr GroupFiles kVersion2 = {"memory.max", "memory.current", "inactive_file"};

// Where a hierarchy of control groups is mounted, and this process's place in it.
struct Hierarchy {
  const GroupFiles* files;
  std::string mount;
  std::string place;  // below `mount`: "/a/b"; "": its top
};

std::vector<std::string> Split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, separator);) parts.push_back(part);
  return parts;
}

bool Contains(const std::string& list, const std::string& name) {
  const std::vector<std::string> names = Split(list, ',');
  return std::find(names.begin(), names.end(), name) != names.end();
}

// The process's group of a hierarchy by /proc/self/cgroup: lines "4:memory:/a/b", and "0::/a/b" of
// version 2.
std::string GroupOf(const std::string& root, bool version2) {
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (first == line.npos || second == line.npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    if (version2 ? controllers.empty() : Contains(controllers, "memory")) {
      return line.substr(second + 1);
    }
  }
  return "";
}

// By /proc/self/mountinfo: "35 31 0:32 ROOT MOUNT options - cgroup cgroup rw,memory".
std::vector<Hierarchy> Hierarchies(const std::string& root) {
  std::vector<Hierarchy> found;
  std::ifstream file(root + "/proc/self/mountinfo");
  for (std::string line; std::getline(file, line);) {
    const std::vector<std::string> words = Split(line, ' ');
    const auto dash = std::find(words.begin(), words.end(), "-");
    if (words.size() < 5 || words.end() - dash < 4) continue;
    const bool version2 = dash[1] == "cgroup2";
    if (!version2 && !(dash[1] == "cgroup" && Contains(dash[3], "memory"))) continue;
    std::string place = GroupOf(root, version2);
    // In a container the group it is in may be mounted as the top.
    const std::string& top = words[3];
    if (top != "/" && place.starts_with(top)) place = place.substr(top.size());
    if (place == "/") place.clear();
    found.push_back({version2 ? &kVersion2 : &kVersion1, words[4], place});
  }
  return found;
}

// Looks at the process's group and all that it is in.
void ReadGroups(const std::string& root, const Hierarchy& hierarchy, HostMemory* memory) {
  std::string place = hierarchy.place;
  while (true) {
    const std::string group = hierarchy.mount + place;
    const std::string directory = root + group + "/";
    const int64_t limit = NumberIn(directory + hierarchy.files->limit);
    if (limit < kUnlimitedV1 && limit < memory->group_bytes) {
      const int64_t usage = NumberIn(directory + hierarchy.files->usage);
      const int64_t files = NumberOf(directory + "memory.stat", hierarchy.files->reclaimable, 0);
      memory->group = group;
      memory->group_bytes = limit;
      memory->group_available =
          usage == kNoMemoryLimit ? limit : std::clamp<int64_t>(limit - (usage - files), 0, limit);
    }
    const size_t slash = place.rfind('/');
    if (slash == place.npos) return;
    place.resize(slash);
  }
}

}  // namespace

HostMemory ReadHostMemory(const std::string& root) {
  HostMemory memory;
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  memory.host = name.data();
  memory.boot_id = FirstLine(root + "/proc/sys/kernel/random/boot_id");
  const auto kibibytes = [&](const char* entry) {
    const int64_t number = NumberOf(root + "/proc/meminfo", entry, kNoMemoryLimit);
    return number == kNoMemoryLimit ? number : number * kKibibyte;
  };
  memory.bytes = kibibytes("MemTotal:");
  memory.available = kibibytes("MemAvailable:");
  for (const Hierarchy& hierarchy : Hierarchies(root)) ReadGroups(root, hierarchy, &memory);
  rlimit limit = {};
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    memory.address_space_bytes = static_cast<int64_t>(limit.rlim_cur);
  }
  return memory;
}

int64_t PeakMemoryBytes(const std::string& root) {
  return kKibibyte * NumberOf(root + "/proc/self/status", "VmHWM:", 0);
}

}  // namespace elastor
