#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <memory>
#include <numeric>
#include <vector>

#include "core/cuda/emulation/memory.h"
#include "core/cuda/emulation/schedule.h"
#include "core/cuda/emulation/traffic.h"
#include "core/cuda/runtime.h"
#include "tests/core/cuda/emulation/hazard_kernels.h"

// Mistakes that a device may forgive show in the emulation: as wrong numbers under some schedule,
// or as the end of the process.

namespace elastor::cuda {
namespace {

using emulation::Order;
using emulation::Schedule;

constexpr int kThreads = 128;

class EmulationTest : public testing::Test {
 protected:
  void SetUp() override {
    emulation::SetSchedule({});
    ASSERT_TRUE(OpenDevice(0).ok());
  }
  void TearDown() override { emulation::SetSchedule({}); }
};
using EmulationDeathTest = EmulationTest;

std::vector<int> Iota(int count) {
  std::vector<int> values(count);
  std::iota(values.begin(), values.end(), 0);
  return values;
}

// Whether Rotate has the right result.
bool Rotates(Order order, Barrier barrier, int shift) {
  emulation::SetSchedule({.lazy = false, .order = order, .guard_device_memory = false});
  Stream stream;
  Buffer<int> in(&stream, kThreads), out(&stream, kThreads);
  Copy(stream, in.data(), Iota(kThreads).data(), kThreads);
  Rotate(stream, barrier, shift, in.data(), out.data());
  std::vector<int> values(kThreads);
  Copy(stream, values.data(), out.data(), kThreads);
  for (int i = 0; i < kThreads; ++i) {
    if (values[i] != (i + shift) % kThreads) return false;
  }
  return true;
}

TEST_F(EmulationTest, BarriersThatAreThereAreEnough) {
  for (const Order order : {Order::kAscending, Order::kDescending, Order::kShuffled}) {
    EXPECT_TRUE(Rotates(order, Barrier::kBlock, 1));
    EXPECT_TRUE(Rotates(order, Barrier::kBlock, 40));
    EXPECT_TRUE(Rotates(order, Barrier::kBlock, 127));
    EXPECT_TRUE(Rotates(order, Barrier::kNone, 0));
  }
}

TEST_F(EmulationTest, MissingSyncthreadsSpoilsResults) {
  // From a thread that comes later, and from one that comes earlier.
  EXPECT_FALSE(Rotates(Order::kAscending, Barrier::kNone, 1));
  EXPECT_FALSE(Rotates(Order::kDescending, Barrier::kNone, 127));
  EXPECT_FALSE(Rotates(Order::kShuffled, Barrier::kNone, 1));
}

TEST_F(EmulationTest, SyncwarpIsNoBarrierBetweenWarps) {
  EXPECT_FALSE(Rotates(Order::kAscending, Barrier::kWarp, 32));
  EXPECT_FALSE(Rotates(Order::kDescending, Barrier::kWarp, 96));
  EXPECT_FALSE(Rotates(Order::kShuffled, Barrier::kWarp, 32));
}

TEST_F(EmulationTest, FreshMemoryIsNotANumber) {
  Stream stream;
  Buffer<float> out(&stream, 2 * kThreads), fresh(&stream, 10);
  ReadUnwritten(stream, out.data());
  std::vector<float> values(2 * kThreads), unwritten(10);
  Copy(stream, values.data(), out.data(), 2 * kThreads);
  Copy(stream, unwritten.data(), fresh.data(), 10);
  for (const float value : values) EXPECT_TRUE(std::isnan(value));
  for (const float value : unwritten) EXPECT_TRUE(std::isnan(value));
}

// What the second stream makes of the first one's work.
int AcrossStreams(const Schedule& schedule, bool wait) {
  emulation::SetSchedule(schedule);
  Stream first, second;
  Buffer<int> one(&first, 1), two(&second, 1);
  FillZero(first, one.data(), 1);
  first.Synchronize();
  Event written;
  AddOne(first, one.data(), one.data());
  written.Record(first);
  if (wait) second.Wait(written);
  AddOne(second, one.data(), two.data());
  int value = 0;
  Copy(second, &value, two.data(), 1);
  return value;
}

TEST_F(EmulationTest, MissingEventShows) {
  EXPECT_EQ(AcrossStreams({.lazy = false}, false), 2);
  EXPECT_EQ(AcrossStreams({.lazy = true}, true), 2);
  EXPECT_EQ(AcrossStreams({.lazy = true}, false), 1);
}

TEST_F(EmulationTest, PageLockedMemoryIsWrittenAndReadLate) {
  emulation::SetSchedule({.lazy = true});
  Stream stream;
  PinnedBuffer<int> host(2);
  Buffer<int> device(&stream, 1);
  host[0] = 1;
  host[1] = 0;
  Copy(stream, device.data(), host.data(), 1);
  Copy(stream, host.data() + 1, device.data(), 1);
  EXPECT_EQ(host[1], 0);  // nobody waited
  host[0] = 5;            // too early
  stream.Synchronize();
  EXPECT_EQ(host[1], 5);
}

TEST_F(EmulationTest, AllocationIsOrderedWithItsStreamOnly) {
  emulation::SetSchedule({.lazy = true});
  Stream first, second;
  Buffer<int> memory(&first, 1);
  FillZero(second, memory.data(), 1);  // without an event
  second.Synchronize();
  int value = 0;
  Copy(first, &value, memory.data(), 1);
  EXPECT_EQ(value, -1);
}

TEST_F(EmulationTest, MissingEventInAGraphShows) {
  emulation::SetSchedule({.lazy = true});
  Stream first, second;
  Buffer<int> one(&first, 1), two(&first, 1);
  FillZero(first, one.data(), 1);
  FillZero(first, two.data(), 1);
  Event begun, done;
  Graph graph;
  graph.BeginCapture(first);
  begun.Record(first);
  second.Wait(begun);
  AddOne(second, one.data(), one.data());
  done.Record(second);
  AddOne(first, one.data(), two.data());  // needs `done`
  first.Wait(done);
  graph.EndCapture(first);
  graph.Launch(first);
  int value = 0;
  Copy(first, &value, two.data(), 1);
  EXPECT_EQ(value, 1);
}

void CaptureWithoutJoin() {
  Stream first, second;
  Buffer<int> one(&first, 1);
  Event begun;
  Graph graph;
  graph.BeginCapture(first);
  begun.Record(first);
  second.Wait(begun);
  AddOne(second, one.data(), one.data());
  graph.EndCapture(first);
}

TEST_F(EmulationDeathTest, GraphMustJoinItsStreams) {
  EXPECT_DEATH(CaptureWithoutJoin(), "does not wait for all work");
}

TEST_F(EmulationDeathTest, CaptureHasItsRules) {
  const auto in_capture = [](const std::function<void(Stream&, int*)>& call) {
    Stream stream;
    Buffer<int> memory(&stream, 1);
    Graph graph;
    graph.BeginCapture(stream);
    call(stream, memory.data());
  };
  EXPECT_DEATH(in_capture([](Stream& stream, int*) { stream.Synchronize(); }),
               "Synchronize during a capture");
  EXPECT_DEATH(in_capture([](Stream& stream, int*) { Buffer<int> more(&stream, 1); }),
               "allocation during a capture");
  EXPECT_DEATH(in_capture([](Stream&, int*) { PinnedBuffer<int> more(1); }),
               "allocation during a capture");
  EXPECT_DEATH(in_capture([](Stream& stream, int* memory) {
                 int value = 0;
                 Copy(stream, memory, &value, 1);
               }),
               "page-locked");
}

TEST_F(EmulationDeathTest, AccessBehindTheEnd) {
  Stream stream;
  Buffer<int> memory(&stream, 1024);
  EXPECT_DEATH(WriteIndices(stream, 1025, memory.data()),
               "access outside an allocation in kernel thread \\(0, 0, 0\\)");
  // Within the alignment behind the end: found when the memory is freed.
  EXPECT_DEATH(
      {
        Buffer<int> odd(&stream, 1000);
        WriteIndices(stream, 1001, odd.data());
      },
      "written past the end");
  std::vector<int> host(1025);
  EXPECT_DEATH(Copy(stream, host.data(), memory.data(), 1025), "copy past the end");
}

TEST_F(EmulationDeathTest, FreedMemory) {
  Stream stream;
  int* freed = nullptr;
  {
    Buffer<int> memory(&stream, 10);
    freed = memory.data();
  }
  EXPECT_DEATH(FillZero(stream, freed, 10), "outside the device");
  emulation::SetSchedule({.lazy = true});
  EXPECT_DEATH(
      {
        Stream other;
        auto memory = std::make_unique<Buffer<int>>(&stream, 10);
        WriteIndices(other, 10, memory->data());  // runs after the free
        memory.reset();
        stream.Synchronize();
        other.Synchronize();
      },
      "access to freed memory in kernel");
}

TEST_F(EmulationDeathTest, HostAndDeviceMemoryAreApart) {
  Stream stream;
  std::vector<int> host(10);
  EXPECT_DEATH(WriteIndices(stream, 10, host.data()), "the device cannot reach");
  emulation::SetSchedule({.lazy = true, .guard_device_memory = true});
  Buffer<int> memory(&stream, 10);
  stream.Synchronize();
  EXPECT_DEATH(memory.data()[0] = 1, "access of the host to device memory");
  // Inside of work it is open.
  WriteIndices(stream, 10, memory.data());
  {
    const emulation::TrafficCount count;
    WriteIndices(stream, 10, memory.data());
    stream.Synchronize();
  }
  EXPECT_DEATH(memory.data()[0] = 1, "access of the host to device memory");
  Copy(stream, host.data(), memory.data(), 10);
  EXPECT_EQ(host, Iota(10));
}

TEST_F(EmulationDeathTest, MisalignedVectors) {
  Stream stream;
  Buffer<float> in(&stream, 8), out(&stream, 8);
  CopyFour(stream, in.data(), out.data());
  EXPECT_DEATH(CopyFour(stream, in.data() + 1, out.data()), "misaligned access");
}

TEST_F(EmulationDeathTest, StaticSharedMemoryHasBounds) {
  Stream stream;
  Buffer<int> out(&stream, kThreads);
  WriteShared(stream, kThreads - 1, out.data());
  EXPECT_DEATH(WriteShared(stream, kThreads, out.data()), "index outside an array");
}

TEST_F(EmulationTest, TrafficCountsAPageOnceACall) {
  const auto page = static_cast<int64_t>(emulation::PageBytes());
  const int64_t bytes = 16 * page;
  for (const bool lazy : {false, true}) {
    emulation::SetSchedule({.lazy = lazy});
    Stream stream;
    Buffer<char> from(&stream, bytes);
    Buffer<char> to(&stream, bytes);
    stream.Synchronize();
    const emulation::TrafficCount count;
    Copy(stream, to.data(), from.data(), bytes);
    Copy(stream, to.data(), from.data(), 1);
    FillZero(stream, to.data(), bytes);
    stream.Synchronize();
    EXPECT_EQ(count.traffic().calls, 3);
    EXPECT_EQ(count.traffic().read_bytes, bytes + page);
    EXPECT_EQ(count.traffic().written_bytes, 2 * bytes + page);
  }
}

TEST_F(EmulationDeathTest, ThreadsThatNeverCome) {
  Stream stream;
  Buffer<int> out(&stream, kThreads);
  EXPECT_DEATH(SynchronizeHalf(stream), "waits at __syncthreads");
  EXPECT_DEATH(ShuffleHalf(stream, out.data()), "waits for lanes of its mask");
}

}  // namespace
}  // namespace elastor::cuda
