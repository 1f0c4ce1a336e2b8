#ifndef ELASTOR_LAUNCHER_MACHINE_H_
#define ELASTOR_LAUNCHER_MACHINE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace elastor {

// Resources of this machine that runs may use.
struct Machine {
  std::string host = {};
  // Numbers of the cores in this process's affinity. If its control group allows the time of fewer
  // cores, only the first of them.
  std::vector<int> cores;
  int64_t memory_bytes = 0;    // memory of the host, or the control group's limit if that is lower
  std::vector<int> gpus = {};  // numbers N of NVIDIA's devices /dev/nvidiaN
};

// Reads the machine's resources. Tests set `root`, the folder that holds /proc and /sys.
Machine ReadMachine(const std::string& root = "");

// One run's share of a machine.
struct Share {
  std::vector<int> cores = {};
  std::vector<int> gpus = {};
  int64_t memory_bytes = 0;
};

// Resources that are free while runs are on the machine.
class FreeResources {
 public:
  explicit FreeResources(const Machine& machine)
      : free_{machine.cores, machine.gpus, machine.memory_bytes} {}

  // Takes the lowest free cores and GPUs. Returns nullopt, and takes nothing, when any resource is
  // lacking.
  std::optional<Share> Take(int cores, int gpus, int64_t memory_bytes);
  void Return(const Share& share);
  int cores() const { return static_cast<int>(free_.cores.size()); }

 private:
  Share free_;  // numbers ascending
};

}  // namespace elastor

#endif  // ELASTOR_LAUNCHER_MACHINE_H_
