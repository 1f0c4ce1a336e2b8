#include "core/cuda/emulation/language.h"

#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "core/cuda/emulation/block.h"
#include "core/cuda/emulation/schedule.h"

// CUDA's words have CUDA's meaning.

namespace elastor::cuda::emulation {
namespace {

constexpr unsigned kAll = 0xffffffffu;

class LanguageTest : public testing::TestWithParam<Order> {
 protected:
  void SetUp() override { SetSchedule({.order = GetParam()}); }
  void TearDown() override { SetSchedule({}); }
};

// Calls `kernel` on every thread.
void RunOn(dim3 grid, dim3 block, const std::function<void()>& kernel) {
  const auto call = [](void* context) { (*static_cast<const std::function<void()>*>(context))(); };
  RunGrid(grid, block, 0, {call, const_cast<std::function<void()>*>(&kernel)});
}

TEST_P(LanguageTest, EveryThreadOfEveryBlockOnce) {
  std::vector<int> count(2 * 3 * 4 * 5 * 6 * 7);
  RunOn({2, 3, 4}, {5, 6, 7}, [&] {
    const unsigned thread = threadIdx.x + 5 * (threadIdx.y + 6 * threadIdx.z);
    const unsigned block = blockIdx.x + 2 * (blockIdx.y + 3 * blockIdx.z);
    EXPECT_EQ(blockDim.x * blockDim.y * blockDim.z, 5u * 6 * 7);
    EXPECT_EQ(gridDim.x * gridDim.y * gridDim.z, 2u * 3 * 4);
    ++count[block * 5 * 6 * 7 + thread];
  });
  for (const int times : count) ASSERT_EQ(times, 1);
}

TEST_P(LanguageTest, Shuffles) {
  RunOn(1, 64, [] {
    const int lane = threadIdx.x % 32;
    const int value = 100 + threadIdx.x;
    const int warp = 100 + threadIdx.x - lane;
    EXPECT_EQ(__shfl_sync(kAll, value, 7), warp + 7);
    EXPECT_EQ(__shfl_sync(kAll, value, 3, 8), warp + lane / 8 * 8 + 3);
    EXPECT_EQ(__shfl_down_sync(kAll, value, 4), lane >= 28 ? value : value + 4);
    EXPECT_EQ(__shfl_down_sync(kAll, value, 4, 16), lane % 16 >= 12 ? value : value + 4);
    EXPECT_EQ(__shfl_xor_sync(kAll, value, 5), warp + (lane ^ 5));
    EXPECT_EQ(__shfl_xor_sync(kAll, value + 0.5, 16), warp + (lane ^ 16) + 0.5);
    EXPECT_EQ(__shfl_xor_sync(kAll, int64_t{value} << 40, 1), int64_t{warp + (lane ^ 1)} << 40);
  });
}

TEST_P(LanguageTest, ShufflesInPartsOfAWarp) {
  RunOn(1, 32, [] {
    const int lane = threadIdx.x;
    if (lane < 16) {
      EXPECT_EQ(__shfl_xor_sync(0xffffu, lane, 1), lane ^ 1);
      EXPECT_EQ(__shfl_xor_sync(0xffffu, lane, 2), lane ^ 2);
    } else {
      EXPECT_EQ(__shfl_xor_sync(0xffff0000u, lane, 4), lane ^ 4);
    }
    EXPECT_EQ(__shfl_xor_sync(kAll, lane, 31), lane ^ 31);
  });
}

// The device's OverLanes is this loop (launch_device.h). Differences show which lane is on which
// side, and sums of floats their order.
TEST_P(LanguageTest, OverLanesIsALoopOfShuffles) {
  const auto combine = [](float a, float b) { return a - 1.5f * b; };
  const auto add = [](double a, double b) { return a + b; };
  RunOn(1, 64, [&] {
    const float value = 1.0f / static_cast<float>(3 + threadIdx.x);
    float combined = value;
    double sum = value;
    for (int distance = 16; distance > 0; distance /= 2) {
      combined = combine(combined, __shfl_xor_sync(kAll, combined, distance));
      sum = add(sum, __shfl_xor_sync(kAll, sum, distance));
    }
    EXPECT_EQ(OverLanes(value, combine), combined);
    EXPECT_EQ(OverLanes(double{value}, add), sum);
  });
}

TEST_P(LanguageTest, OneOverLanesForAll) {
  const auto halves = [] {
    const int lane = threadIdx.x;
    if (lane < 16) {
      OverLanes(lane, [](int a, int b) { return a + b; });
    } else {
      OverLanes(lane, [](int a, int b) { return std::max(a, b); });
    }
  };
  EXPECT_DEATH(RunOn(1, 32, halves), "waits for lanes of its mask");
}

TEST_P(LanguageTest, Votes) {
  RunOn(1, 64, [] {
    const int lane = threadIdx.x % 32;
    EXPECT_EQ(__ballot_sync(kAll, lane % 3 == 0), 0x49249249u);
  });
}

TEST_P(LanguageTest, Atomics) {
  int sum = 0, swapped = 9;
  unsigned bits = 0, most = 0;
  unsigned long long wide = 0;
  std::vector<bool> seen(300);
  RunOn(3, 100, [&] {
    const unsigned i = blockIdx.x * 100 + threadIdx.x;
    const int old = atomicAdd(&sum, 1);
    EXPECT_FALSE(seen[old]);
    seen[old] = true;
    atomicAdd(&wide, 1ull << 33);
    atomicOr(&bits, 1u << i % 32);
    atomicMax(&most, i);
  });
  EXPECT_EQ(sum, 300);
  EXPECT_EQ(wide, 300ull << 33);
  EXPECT_EQ(bits, kAll);
  EXPECT_EQ(most, 299u);
  EXPECT_EQ(atomicCAS(&swapped, 8, 1), 9);
  EXPECT_EQ(swapped, 9);
  EXPECT_EQ(atomicCAS(&swapped, 9, 1), 9);
  EXPECT_EQ(swapped, 1);
}

TEST_P(LanguageTest, Bits) {
  EXPECT_EQ(__popcll(~0ull), 64);
  EXPECT_EQ(__ffsll(8), 4);
  EXPECT_EQ(__ffsll(0), 0);
  EXPECT_EQ(__clz(1), 31);
  EXPECT_EQ(__clz(0), 32);
  EXPECT_EQ(__float_as_uint(1.0f), 0x3f800000u);
  EXPECT_EQ(__uint_as_float(0x3f800000u), 1.0f);
  EXPECT_EQ(sizeof(float4), alignof(float4));
  EXPECT_EQ(alignof(float2), 8u);
}

INSTANTIATE_TEST_SUITE_P(Orders, LanguageTest,
                         testing::Values(Order::kAscending, Order::kDescending, Order::kShuffled));

}  // namespace
}  // namespace elastor::cuda::emulation
