#include "core/cuda/runtime.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <memory>
#include <numeric>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/thread_pool.h"
#include "tests/core/cuda/runtime_test_kernels.h"

namespace elastor::cuda {
namespace {

using RuntimeDeathTest = testing::Test;

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
  const std::vector<int> result = ToHost(stream, sums.data(), 3);
  for (int block = 0; block < 3; ++block) {
    EXPECT_EQ(result[block], 256 * (256 * block) + 255 * 128);
  }
}

// 13312 values need more than the 48 KiB that a kernel has by default.
TEST(RuntimeTest, DynamicSharedMemory) {
  for (const int length : {1024, 12 * 1024 + 1024}) {
    Stream stream;
    Buffer<int> values(&stream, 2 * length);
    Copy(stream, values.data(), Iota(2 * length).data(), 2 * length);
    ReverseRuns(stream, 2, length, values.data());
    const std::vector<int> reversed = ToHost(stream, values.data(), 2 * length);
    for (int i = 0; i < length; ++i) {
      ASSERT_EQ(reversed[i], length - 1 - i);
      ASSERT_EQ(reversed[length + i], 2 * length - 1 - i);
    }
  }
}

// No contraction, denormals flushed on the way in and out: the bits of the CPU's kernels.
TEST(RuntimeTest, FloatingPointIsTheHosts) {
  SetCanonicalFloatingPoint();
  constexpr float kDenormal = 1e-40f;
  std::vector<float> a = {1 + 0x1p-12f, 1e-30f, kDenormal, 3, 1e-20f};
  std::vector<float> b = {1 + 0x1p-12f, 1e-9f, 1e30f, 1.0f / 3, 1e-19f};
  std::vector<float> c = {-1 - 0x1p-11f, 0, 0, -1, kDenormal};
  Stream stream;
  Buffer<float> da(&stream, 5), db(&stream, 5), dc(&stream, 5), out(&stream, 5);
  Copy(stream, da.data(), a.data(), 5);
  Copy(stream, db.data(), b.data(), 5);
  Copy(stream, dc.data(), c.data(), 5);
  MultiplyAndAdd(stream, 5, da.data(), db.data(), dc.data(), out.data());
  const std::vector<float> result = ToHost(stream, out.data(), 5);
  for (int i = 0; i < 5; ++i) {
    const volatile float product = a[i] * b[i];
    const float expected = product + c[i];
    EXPECT_EQ(std::bit_cast<uint32_t>(result[i]), std::bit_cast<uint32_t>(expected)) << i;
  }
  EXPECT_EQ(result[0], 0);  // an FMA has 2^-24
  EXPECT_EQ(result[1], 0);  // a denormal product
  EXPECT_EQ(result[2], 0);  // a denormal operand
}

TEST(RuntimeTest, PageableMemoryIsReadBeforeCopyReturns) {
  Stream stream;
  Buffer<int> buffer(&stream, 1000);
  std::vector<int> host = Iota(1000);
  Copy(stream, buffer.data(), host.data(), 1000);
  host.assign(1000, -1);
  EXPECT_EQ(ToHost(stream, buffer.data(), 1000), Iota(1000));
}

TEST(RuntimeTest, PageLockedMemory) {
  Stream stream;
  PinnedBuffer<int> host(100), back(100);
  for (int i = 0; i < 100; ++i) host[i] = i;
  Buffer<int> buffer(&stream, 100);
  Copy(stream, buffer.data(), host.data(), 100);
  ScaleAndAdd(stream, 100, 3, 0, buffer.data());
  Copy(stream, back.data(), buffer.data(), 100);
  // Kernels reach it too.
  ScaleAndAdd(stream, 100, 1, 7, host.data());
  stream.Synchronize();
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(back[i], 3 * i);
    ASSERT_EQ(host[i], i + 7);
  }
}

TEST(RuntimeTest, CopiesOfRows) {
  Stream stream;
  Buffer<int> table(&stream, 6 * 10), packed(&stream, 6 * 4);
  Copy(stream, table.data(), Iota(60).data(), 60);
  FillZero(stream, packed.data(), 24);
  Copy2D(stream, packed.data(), 4, table.data() + 3, 10, 4, 5);
  const std::vector<int> device = ToHost(stream, packed.data(), 24);
  std::vector<int> host(6 * 7, -1);
  Copy2D(stream, host.data() + 1, 7, packed.data(), 4, 4, 5);
  for (int row = 0; row < 6; ++row) {
    for (int column = 0; column < 4; ++column) {
      ASSERT_EQ(device[row * 4 + column], row < 5 ? row * 10 + column + 3 : 0);
      ASSERT_EQ(host[row * 7 + column + 1], row < 5 ? row * 10 + column + 3 : -1);
    }
    ASSERT_EQ(host[row * 7], -1);
  }
}

TEST(RuntimeTest, NothingToDo) {
  Stream stream;
  Buffer<int> buffer(&stream, 0);
  EXPECT_EQ(buffer.data(), nullptr);
  Copy(stream, buffer.data(), buffer.data(), 0);
  Copy2D(stream, buffer.data(), 1, buffer.data(), 1, 1, 0);
  FillZero(stream, buffer.data(), 0);
  ScaleAndAdd(stream, 0, 1, 1, buffer.data());
  stream.Synchronize();
}

TEST(RuntimeTest, BuffersGrowMoveAndAreAligned) {
  Stream stream;
  Buffer<int> buffer(&stream, 10);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % 256, 0u);
  int* const before = buffer.data();
  EXPECT_EQ(buffer.Resize(5), before);
  EXPECT_EQ(buffer.size(), 5);
  buffer.Resize(100);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % 256, 0u);
  FillZero(stream, buffer.data(), 100);
  Buffer<int> moved(std::move(buffer));
  EXPECT_EQ(ToHost(stream, moved.data(), 100), std::vector<int>(100, 0));
}

// Memory is given back when the work before it is done.
TEST(RuntimeTest, BuffersMayGoBeforeTheirWorkIsDone) {
  Stream stream;
  PinnedBuffer<int> sums(3);
  for (int round = 0; round < 3; ++round) {
    Buffer<int> values(&stream, 256), sum(&stream, 1);
    Copy(stream, values.data(), Iota(256).data(), 256);
    ScaleAndAdd(stream, 256, 1, round, values.data());
    SumBlocks(stream, 1, values.data(), sum.data());
    Copy(stream, sums.data() + round, sum.data(), 1);
  }
  stream.Synchronize();
  for (int round = 0; round < 3; ++round) EXPECT_EQ(sums[round], 255 * 128 + 256 * round);
}

TEST(RuntimeTest, EventsOrderStreams) {
  Stream first, second;
  Event zero, once, twice;
  Buffer<int> buffer(&first, 100);
  PinnedBuffer<int> host(100);
  FillZero(first, buffer.data(), 100);
  ScaleAndAdd(first, 100, 1, 1, buffer.data());
  once.Record(first);
  second.Wait(once);
  ScaleAndAdd(second, 100, 10, 0, buffer.data());
  twice.Record(second);
  first.Wait(twice);
  ScaleAndAdd(first, 100, 1, 5, buffer.data());
  Copy(first, host.data(), buffer.data(), 100);
  once.Record(first);  // the wait above is for the record before
  once.Synchronize();
  EXPECT_TRUE(once.Done());
  EXPECT_GE(once.MillisecondsSince(twice), 0);
  for (int i = 0; i < 100; ++i) ASSERT_EQ(host[i], 15);
}

TEST(RuntimeTest, EventsThatWereNeverRecordedAreDone) {
  Stream stream;
  Event event;
  EXPECT_TRUE(event.Done());
  event.Synchronize();
  stream.Wait(event);
  stream.Synchronize();
}

TEST(RuntimeTest, AnEventIsDoneWhenWhatWasBeforeItIs) {
  constexpr int64_t kCount = 1 << 16;
  Stream stream;
  Buffer<int> buffer(&stream, kCount);
  PinnedBuffer<int> host(kCount);
  for (int64_t i = 0; i < kCount; ++i) host[i] = -1;
  FillZero(stream, buffer.data(), kCount);
  ScaleAndAdd(stream, kCount, 1, 3, buffer.data());
  Copy(stream, host.data(), buffer.data(), kCount);
  Event event;
  event.Record(stream);
  while (!event.Done()) {
  }
  for (int64_t i = 0; i < kCount; ++i) ASSERT_EQ(host[i], 3);
}

// A diamond: the second stream's part between a fork and a join.
void CaptureDiamond(Graph& graph, Stream& stream, Stream& side, int addend, int* left, int* right) {
  Event fork, join;
  graph.BeginCapture(stream);
  ScaleAndAdd(stream, 100, 2, 0, left);
  fork.Record(stream);
  side.Wait(fork);
  Copy(side, right, left, 100);
  join.Record(side);
  stream.Wait(join);
  ScaleAndAdd(stream, 100, 1, addend, left);
  ScaleAndAdd(stream, 100, 1, 100, right);
  graph.EndCapture(stream);
}

TEST(RuntimeTest, GraphsRunWhatWasCaptured) {
  Stream stream, side;
  Buffer<int> left(&stream, 100), right(&stream, 100);
  FillZero(stream, left.data(), 100);
  ScaleAndAdd(stream, 100, 1, 1, left.data());
  Graph graph;
  EXPECT_FALSE(graph.captured());
  CaptureDiamond(graph, stream, side, 3, left.data(), right.data());
  EXPECT_TRUE(graph.captured());
  // Captured, not run.
  EXPECT_EQ(ToHost(stream, left.data(), 100), std::vector<int>(100, 1));
  graph.Launch(stream);
  graph.Launch(stream);  // 1 -> 5 -> 13
  EXPECT_EQ(ToHost(stream, left.data(), 100), std::vector<int>(100, 13));
  EXPECT_EQ(ToHost(stream, right.data(), 100), std::vector<int>(100, 110));
  // The streams are free again, and a graph can be captured anew.
  side.Synchronize();
  CaptureDiamond(graph, stream, side, 4, left.data(), right.data());
  graph.Launch(stream);
  EXPECT_EQ(ToHost(stream, left.data(), 100), std::vector<int>(100, 30));
}

TEST(RuntimeTest, GraphsReadPageLockedMemoryAtTheLaunch) {
  Stream stream;
  PinnedBuffer<int> in(1), out(1);
  Buffer<int> device(&stream, 1);
  Graph graph;
  graph.BeginCapture(stream);
  Copy(stream, device.data(), in.data(), 1);
  ScaleAndAdd(stream, 1, 2, 0, device.data());
  Copy(stream, out.data(), device.data(), 1);
  graph.EndCapture(stream);
  for (const int value : {3, 4}) {
    in[0] = value;
    graph.Launch(stream);
    stream.Synchronize();
    EXPECT_EQ(out[0], 2 * value);
  }
}

// Ranks that are threads of one process share the device.
TEST(RuntimeTest, ThreadsWithStreamsOfTheirOwn) {
  constexpr int kThreads = 4, kRounds = 20;
  std::vector<int> sums(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([t, &sums] {
      Stream stream;
      Buffer<int> values(&stream, 256), sum(&stream, 1);
      for (int round = 0; round < kRounds; ++round) {
        Copy(stream, values.data(), Iota(256).data(), 256);
        ScaleAndAdd(stream, 256, 1, t, values.data());
        SumBlocks(stream, 1, values.data(), sum.data());
        sums[t] += ToHost(stream, sum.data(), 1)[0];
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int t = 0; t < kThreads; ++t) EXPECT_EQ(sums[t], kRounds * (255 * 128 + 256 * t));
}

TEST(RuntimeTest, WhatThereIsToOpen) {
  const StatusOr<DeviceInfo> device = OpenDevice(0);
  ASSERT_TRUE(device.ok());
  EXPECT_GE(DeviceCount(), 1);
  EXPECT_GT(device->memory_bytes, 0);
  EXPECT_GT(device->multiprocessors, 0);
  EXPECT_FALSE(device->libraries.empty());
  const StatusOr<DeviceInfo> none = OpenDevice(1000);
  EXPECT_EQ(none.status().code(), StatusCode::kUser);
  EXPECT_NE(none.status().message().find("device 1000"), std::string::npos);
}

TEST(RuntimeDeathTest, OutOfMemorySaysHowMuch) {
  EXPECT_EXIT(
      {
        Stream stream;
        Buffer<char> buffer(&stream, int64_t{1} << 50);
      },
      testing::ExitedWithCode(3), "out of memory: needs 1125899906842624 bytes, [0-9]+ free");
}

TEST(RuntimeDeathTest, DeviceErrorsEndTheProcess) {
  EXPECT_EXIT(DieOfDevice("it is broken"), testing::ExitedWithCode(3), "evice.*: it is broken");
}

}  // namespace
}  // namespace elastor::cuda
