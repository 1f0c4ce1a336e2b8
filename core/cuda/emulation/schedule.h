#ifndef ELASTOR_CORE_CUDA_EMULATION_SCHEDULE_H_
#define ELASTOR_CORE_CUDA_EMULATION_SCHEDULE_H_

#include <string>
#include <vector>

namespace elastor::cuda::emulation {

// The order in which the blocks of a grid, the warps of a block and the lanes of a warp run. Each
// runs until it waits for others.
enum class Order { kAscending, kDescending, kShuffled };

// The choices of execution order that CUDA leaves open. A correct program has the same results
// under every schedule.
struct Schedule {
  // If true, a stream's work runs only when somebody waits for it; else it runs as it is enqueued.
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

// Sets the schedule of the whole process. REQUIRES: no stream has work. The default is eager and
// ascending.
void SetSchedule(const Schedule& schedule);
const Schedule& CurrentSchedule();

}  // namespace elastor::cuda::emulation

#endif  // ELASTOR_CORE_CUDA_EMULATION_SCHEDULE_H_
