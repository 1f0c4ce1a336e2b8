#ifndef ELASTOR_CORE_CUDA_EMULATION_SEQUENCE_H_
#define ELASTOR_CORE_CUDA_EMULATION_SEQUENCE_H_

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include "core/cuda/emulation/schedule.h"

namespace elastor::cuda::emulation {

// 0, 1, ..., count - 1 in the schedule's order.
class Sequence {
 public:
  void Reset(int count) {
    order_ = CurrentSchedule().order;
    items_.resize(count);
    std::iota(items_.begin(), items_.end(), 0);
    if (order_ == Order::kDescending) std::reverse(items_.begin(), items_.end());
  }
  // Returns the numbers in order, shuffled anew every time if the schedule shuffles.
  const std::vector<int>& Next() {
    if (order_ == Order::kShuffled) std::shuffle(items_.begin(), items_.end(), random_);
    return items_;
  }

 private:
  Order order_ = Order::kAscending;
  std::vector<int> items_;
  std::minstd_rand random_;  // never seeded, so that a failure is reproducible
};

}  // namespace elastor::cuda::emulation

#endif  // ELASTOR_CORE_CUDA_EMULATION_SEQUENCE_H_
