#ifndef ELASTOR_CORE_CUDA_EMULATION_SCHEDULE_H_
#define ELASTOR_CORE_CUDA_EMULATION_SCHEDULE_H_

#include <string>
#include <vector>

namespace elastor::cuda::emulation {

// In which order the blocks of a grid, the warps of a block and the lanes of a warp run. Every one
// goes on until it waits for others.
enum class Order { kAscending, kDescending, kShuffled };

// What CUDA leaves open. A correct program has the same results under every schedule.
struct Schedule {
  // Work of a stream runs when somebody waits for it and not before; else as it is enqueued.
  bool lazy = false;
  Order order = Order::kAscending;
  // The host faults when it touches device memory. Costs system calls at every wait.
  bool guard_device_memory = false;
};

struct NamedSchedule {
  std::string name;
  Schedule schedule;
  bool by_default = false;  // device tests run under it unless told otherwise
};

std::vector<NamedSchedule> AllSchedules();

// For the whole process, while no stream has work. The default is eager and ascending.
void SetSchedule(const Schedule& schedule);
const Schedule& CurrentSchedule();

}  // namespace elastor::cuda::emulation

#endif  // ELASTOR_CORE_CUDA_EMULATION_SCHEDULE_H_
