#include <algorithm>
#include <numeric>
#include <vector>

#include "core/base/log.h"
#include "core/cuda/emulation/queue.h"
#include "core/cuda/sort.h"

// By the host's library, when the stream comes to it.

namespace elastor::cuda {

template <typename Key>
void DeviceSort::SortPairs(int64_t count, int key_bits, const Key* keys, Key* sorted_keys,
                           const uint32_t* values, uint32_t* sorted_values) {
  CHECK_LE(key_bits, static_cast<int>(8 * sizeof(Key)));
  if (count == 0) return;
  emulation::CheckReachable(keys);
  emulation::CheckReachable(sorted_keys);
  emulation::CheckReachable(values);
  emulation::CheckReachable(sorted_values);
  emulation::Enqueue(*stream_, [=] {
    const uint64_t mask = ~uint64_t{0} >> (64 - key_bits);
    std::vector<int64_t> order(count);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](int64_t a, int64_t b) { return (keys[a] & mask) < (keys[b] & mask); });
    for (int64_t i = 0; i < count; ++i) {
      sorted_keys[i] = keys[order[i]];
      sorted_values[i] = values[order[i]];
    }
  });
}

template void DeviceSort::SortPairs(int64_t, int, const uint32_t*, uint32_t*, const uint32_t*,
                                    uint32_t*);
template void DeviceSort::SortPairs(int64_t, int, const uint64_t*, uint64_t*, const uint32_t*,
                                    uint32_t*);

void DeviceSort::InclusiveSum(int64_t count, const int32_t* values, int32_t* sums) {
  if (count == 0) return;
  emulation::CheckReachable(values);
  emulation::CheckReachable(sums);
  emulation::Enqueue(*stream_, [=] { std::partial_sum(values, values + count, sums); });
}

}  // namespace elastor::cuda
