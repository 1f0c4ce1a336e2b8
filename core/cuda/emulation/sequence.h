#ifndef ELASTOR_CORE_CUDA_EMULATION_SEQUENCE_H_
#define ELASTOR_CORE_CUDA_EMULATION_SEQUENCE_H_

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>
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
    if (order_ == Order::kShuffled) Shuffle();
    return items_;
  }

 private:
  // std::shuffle divides for every item.
  void Shuffle() {
    for (size_t left = items_.size(); left > 1; --left) {
      random_ = random_ * 6364136223846793005u + 1442695040888963407u;
      std::swap(items_[left - 1], items_[(random_ >> 32) * left >> 32]);
    }
  }

  Order order_ = Order::kAscending;
  std::vector<int> items_;
  uint64_t random_ = 1;  // always this seed, so that a failure is reproducible
};

}  // namespace elastor::cuda::emulation

#endif  // ELASTOR_CORE_CUDA_EMULATION_SEQUENCE_H_
