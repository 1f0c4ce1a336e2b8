#include "core/cuda/emulation/schedule.h"

namespace elastor::cuda::emulation {
namespace {

Schedule current;

}  // namespace

std::vector<NamedSchedule> AllSchedules() {
  return {
      {"eager_ascending", {.lazy = false, .order = Order::kAscending}},
      {"lazy_ascending",
       {.lazy = true, .order = Order::kAscending, .guard_device_memory = true},
       /*by_default=*/true},
      {"lazy_descending", {.lazy = true, .order = Order::kDescending}},
      {"lazy_shuffled", {.lazy = true, .order = Order::kShuffled}, /*by_default=*/true},
  };
}

void SetSchedule(const Schedule& schedule) { current = schedule; }

const Schedule& CurrentSchedule() { return current; }

}  // namespace elastor::cuda::emulation
