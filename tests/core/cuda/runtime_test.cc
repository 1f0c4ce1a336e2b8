#include "core/cuda/runtime.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "tests/core/cuda/runtime_test_kernels.h"

namespace elastor::cuda {
namespace {

std::vector<int> Iota(int64_t count) {
  std::vector<int> values(count);
  std::iota(values.begin(), values.end(), 0);
  return values;
}

template <typename T>
std::vector<T> ToHost(Stream& stream, const T* data, int64_t count) {
  std::vector<T> values(count);
  Copy(stream, values.data(), data, count);
  return values;
}

TEST(RuntimeTest, KernelOnEveryElement) {
  Stream stream;
  Buffer<int> buffer(&stream, 1000);
  Copy(stream, buffer.data(), Iota(1000).data(), 1000);
  ScaleAndAdd(stream, 1000, 2, 1, buffer.data());
  const std::vector<int> values = ToHost(stream, buffer.data(), 1000);
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(values[i], 2 * i + 1);
}

TEST(RuntimeTest, ShufflesAndSharedMemory) {
  Stream stream;
  Buffer<int> values(&stream, 3 * 256), sums(&stream, 3);
  Copy(stream, values.data(), Iota(3 * 256).data(), 3 * 256);
  SumBlocks(stream, 3, values.data(), sums.data());
  for (int block = 0; block < 3; ++block) {
    EXPECT_EQ(ToHost(stream, sums.data(), 3)[block], 256 * (256 * block) + 255 * 128);
  }
}

TEST(RuntimeTest, DynamicSharedMemory) {
  Stream stream;
  Buffer<int> values(&stream, 2048);
  Copy(stream, values.data(), Iota(2048).data(), 2048);
  ReverseBlocks(stream, 2, values.data());
  const std::vector<int> reversed = ToHost(stream, values.data(), 2048);
  for (int i = 0; i < 1024; ++i) {
    ASSERT_EQ(reversed[i], 1023 - i);
    ASSERT_EQ(reversed[1024 + i], 2047 - i);
  }
}

}  // namespace
}  // namespace elastor::cuda
