#ifndef ELASTOR_CORE_CUDA_SORT_H_
#define ELASTOR_CORE_CUDA_SORT_H_

#include <cstdint>

#include "core/cuda/runtime.h"

namespace elastor::cuda {

// Sorting and prefix sums over the whole device, by CUB. Counts are below 2^31. The calls cannot be
// captured in graphs, because a later call may need more scratch memory and move it.
class DeviceSort {
 public:
  explicit DeviceSort(Stream* stream) : stream_(stream), scratch_(stream) {}

  // Sorts stably and ascending by bits [0, key_bits) of the keys, which are uint32_t or uint64_t;
  // key_bits is at least 1 and at most the bits of a key. The outputs must not overlap the inputs.
  template <typename Key>
  void SortPairs(int64_t count, int key_bits, const Key* keys, Key* sorted_keys,
                 const uint32_t* values, uint32_t* sorted_values);
  // sums[i] = values[0] + ... + values[i]; sums may be values.
  void InclusiveSum(int64_t count, const int32_t* values, int32_t* sums);

 private:
  Stream* stream_;
  Buffer<char> scratch_;
};

}  // namespace elastor::cuda

#endif  // ELASTOR_CORE_CUDA_SORT_H_
