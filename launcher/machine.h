#ifndef ELASTOR_LAUNCHER_MACHINE_H_
#define ELASTOR_LAUNCHER_MACHINE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace elastor {

// What runs may use of this machine.
struct Machine {
  std::string host = {};
  // Numbers of the cores of this process's affinity; when its control group allows the time of
  // fewer, the first of them.
  std::vector<int> cores;
  int64_t memory_bytes = 0;    // of the host, or of the control group when it has a lower limit
  std::vector<int> gpus = {};  // numbers of NVIDIA's devices, /dev/nvidiaN
};

// root: where /proc and /sys are found; for tests.
Machine ReadMachine(const std::string& root = "");

// What one run has of a machine.
struct Share {
  std::vector<int> cores = {};
  std::vector<int> gpus = {};
  int64_t memory_bytes = 0;
};

// What is left while runs are on the machine.
class FreeResources {
 public:
  explicit FreeResources(const Machine& machine)
      : free_{machine.cores, machine.gpus, machine.memory_bytes} {}

  // Takes the lowest free cores and GPUs; nothing, and takes nothing, when anything is lacking.
  std::optional<Share> Take(int cores, int gpus, int64_t memory_bytes);
  void Return(const Share& share);
  int cores() const { return static_cast<int>(free_.cores.size()); }

 private:
  Share free_;  // numbers ascending
};

}  // namespace elastor

#endif  // ELASTOR_LAUNCHER_MACHINE_H_
