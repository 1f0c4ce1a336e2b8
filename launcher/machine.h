#ifndef ELASTOR_LAUNCHER_MACHINE_H_
#define ELASTOR_LAUNCHER_MACHINE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace elastor {

// What runs may use of this machine.
struct Machine {
  std::string host;
  // Numbers of the cores of this process's affinity; when its control group allows the time of
  // fewer, the first of them.
  std::vector<int> cores;
  int64_t memory_bytes = 0;  // of the host, or of the control group when it has a lower limit
};

// root: where /proc and /sys are found; for tests.
Machine ReadMachine(const std::string& root = "");

// The cores and the memory that are left while runs are on the machine.
class FreeResources {
 public:
  explicit FreeResources(const Machine& machine)
      : cores_(machine.cores), memory_bytes_(machine.memory_bytes) {}

  // Takes the lowest free cores; nothing, and takes nothing, when either is lacking.
  std::optional<std::vector<int>> Take(int cores, int64_t memory_bytes);
  void Return(const std::vector<int>& cores, int64_t memory_bytes);
  int cores() const { return static_cast<int>(cores_.size()); }

 private:
  std::vector<int> cores_;  // ascending
  int64_t memory_bytes_;
};

}  // namespace elastor

#endif  // ELASTOR_LAUNCHER_MACHINE_H_
