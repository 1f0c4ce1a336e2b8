#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>

#include "core/base/log.h"
#include "core/cuda/device_error.h"
#include "core/cuda/sort.h"

// By CUB.

namespace elastor::cuda {

template <typename Key>
void DeviceSort::SortPairs(int64_t count, int key_bits, const Key* keys, Key* sorted_keys,
                           const uint32_t* values, uint32_t* sorted_values) {
  CHECK_LE(key_bits, static_cast<int>(8 * sizeof(Key)));
  if (count == 0) return;
  internal::UseDevice();
  const cudaStream_t stream = internal::Handle(*stream_);
  const auto sort = [&](void* scratch, size_t& bytes) {
    internal::Check(
        cub::DeviceRadixSort::SortPairs(scratch, bytes, keys, sorted_keys, values, sorted_values,
                                        static_cast<int32_t>(count), 0, key_bits, stream),
        "cub::DeviceRadixSort::SortPairs");
  };
  size_t bytes = 0;
  sort(nullptr, bytes);  // only tells the bytes
  sort(scratch_.Resize(static_cast<int64_t>(bytes)), bytes);
}

template void DeviceSort::SortPairs(int64_t, int, const uint32_t*, uint32_t*, const uint32_t*,
                                    uint32_t*);
template void DeviceSort::SortPairs(int64_t, int, const uint64_t*, uint64_t*, const uint32_t*,
                                    uint32_t*);

void DeviceSort::InclusiveSum(int64_t count, const int32_t* values, int32_t* sums) {
  if (count == 0) return;
  internal::UseDevice();
  const cudaStream_t stream = internal::Handle(*stream_);
  const auto sum = [&](void* scratch, size_t& bytes) {
    internal::Check(cub::DeviceScan::InclusiveSum(scratch, bytes, values, sums,
                                                  static_cast<int32_t>(count), stream),
                    "cub::DeviceScan::InclusiveSum");
  };
  size_t bytes = 0;
  sum(nullptr, bytes);  // only tells the bytes
  sum(scratch_.Resize(static_cast<int64_t>(bytes)), bytes);
}

}  // namespace elastor::cuda
