#include "core/cuda/sort.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

#include "core/cuda/runtime.h"
#include "tests/core/cuda/device_arrays.h"

namespace elastor::cuda {
namespace {

// Sorts keys with their positions as values and compares with a stable sort by the low key_bits.
template <typename Key>
void ExpectSorted(DeviceSort& sort, Stream& stream, const std::vector<Key>& keys, int key_bits) {
  const auto count = static_cast<int64_t>(keys.size());
  std::vector<uint32_t> positions(count);
  std::iota(positions.begin(), positions.end(), 0u);
  const Buffer<Key> device_keys = Upload(stream, keys);
  const Buffer<uint32_t> device_values = Upload(stream, positions);
  const Buffer<Key> sorted_keys(&stream, count);
  const Buffer<uint32_t> sorted_values(&stream, count);
  sort.SortPairs(count, key_bits, device_keys.data(), sorted_keys.data(), device_values.data(),
                 sorted_values.data());

  const uint64_t mask = ~uint64_t{0} >> (64 - key_bits);
  std::vector<uint32_t> expected = positions;
  std::stable_sort(expected.begin(), expected.end(),
                   [&](uint32_t a, uint32_t b) { return (keys[a] & mask) < (keys[b] & mask); });
  EXPECT_EQ(Download(stream, sorted_values), expected);
  std::vector<Key> expected_keys;
  for (const uint32_t position : expected) expected_keys.push_back(keys[position]);
  EXPECT_EQ(Download(stream, sorted_keys), expected_keys);
  EXPECT_EQ(Download(stream, device_keys), keys);
  EXPECT_EQ(Download(stream, device_values), positions);
}

TEST(DeviceSortTest, StableByTheLowBits) {
  Stream stream;
  DeviceSort sort(&stream);
  std::mt19937_64 generator(1);
  for (const int64_t count : {0, 1, 2, 1000, 70000}) {
    for (const int key_bits : {1, 5, 20, 32, 33, 64}) {
      SCOPED_TRACE(testing::Message() << count << " keys, " << key_bits << " bits");
      std::vector<uint64_t> keys(count);
      for (uint64_t& key : keys) key = generator();
      ExpectSorted(sort, stream, keys, key_bits);
      if (key_bits > 32) continue;
      ExpectSorted(sort, stream, std::vector<uint32_t>(keys.begin(), keys.end()), key_bits);
    }
  }
}

TEST(DeviceSortTest, EqualKeysStayInOrder) {
  Stream stream;
  DeviceSort sort(&stream);
  std::mt19937_64 generator(2);
  std::vector<uint64_t> keys(30000);
  for (uint64_t& key : keys) key = generator() % 7 << 30;
  ExpectSorted(sort, stream, keys, 40);
}

TEST(DeviceSortTest, InclusiveSum) {
  Stream stream;
  DeviceSort sort(&stream);
  std::mt19937 generator(3);
  for (const int64_t count : {0, 1, 31, 4097, 100000}) {
    SCOPED_TRACE(count);
    std::vector<int32_t> values(count);
    for (int32_t& value : values) value = static_cast<int32_t>(generator() % 2001) - 1000;
    std::vector<int32_t> expected(count);
    std::partial_sum(values.begin(), values.end(), expected.begin());
    const Buffer<int32_t> device_values = Upload(stream, values);
    const Buffer<int32_t> sums(&stream, count);
    sort.InclusiveSum(count, device_values.data(), sums.data());
    EXPECT_EQ(Download(stream, sums), expected);
    EXPECT_EQ(Download(stream, device_values), values);
    sort.InclusiveSum(count, device_values.data(), device_values.data());
    EXPECT_EQ(Download(stream, device_values), expected);
  }
}

}  // namespace
}  // namespace elastor::cuda
