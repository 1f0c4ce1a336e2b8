#ifndef ELASTOR_TESTS_FAULTS_MEMORY_GROUP_H_
#define ELASTOR_TESTS_FAULTS_MEMORY_GROUP_H_

#include <cstdint>
#include <string>

namespace elastor {

// A control group of memory (cgroup), of version 1 or 2, below the one that this process is in or
// one above that: whoever is in it stays within the limits of these. One at a time.
class MemoryGroup {
 public:
  // Makes it; path() is empty where none can be made.
  MemoryGroup();
  const std::string& path() const { return path_; }
  // A process that writes its number here is in the group, as are those that it starts.
  std::string processes() const { return path_ + "/cgroup.procs"; }

  // Bytes of all its processes that the kernel cannot give to others.
  int64_t Used() const;
  // Returns false when the kernel refuses it. bytes < 0: no limit.
  bool Limit(int64_t bytes) const;
  // How many of its processes the kernel has killed for want of memory.
  int64_t Kills() const;
  // REQUIRES: no process is in it.
  void Remove() const;

 private:
  // The number after `name` in a file of the group; 0 without it.
  int64_t Value(const std::string& file, const std::string& name) const;

  std::string path_;
  bool first_version_ = false;
};

}  // namespace elastor

#endif  // ELASTOR_TESTS_FAULTS_MEMORY_GROUP_H_
