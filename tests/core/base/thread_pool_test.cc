#include "core/base/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <limits>
#include <thread>
#include <vector>

#include "core/base/floating_point.h"

namespace elastor {
namespace {

// A denormal that the compiler cannot fold.
double HalfOfTheSmallestNormal() {
  volatile double smallest = std::numeric_limits<double>::min();
  return smallest * 0.5;
}

double MultipleOfADenormal() {
  volatile double denormal = std::numeric_limits<double>::denorm_min();
  return denormal * 0x1p60;
}

TEST(ThreadPoolTest, EveryThreadRunsOnceARound) {
  for (const int threads : {1, 2, 3, 8}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    std::vector<int> runs(threads, 0);  // not atomic: each thread has its own
    constexpr int kRounds = 2000;
    for (int round = 0; round < kRounds; ++round) {
      pool.Run([&](int thread) { ++runs[thread]; });
    }
    EXPECT_EQ(runs, std::vector<int>(threads, kRounds));
  }
}

TEST(ThreadPoolTest, TheCallerIsThreadZeroAndTheOthersDiffer) {
  ThreadPool pool(3);
  std::vector<std::thread::id> ids(3);
  pool.Run([&](int thread) { ids[thread] = std::this_thread::get_id(); });
  EXPECT_EQ(ids[0], std::this_thread::get_id());
  EXPECT_NE(ids[1], ids[0]);
  EXPECT_NE(ids[2], ids[0]);
  EXPECT_NE(ids[1], ids[2]);
}

TEST(ThreadPoolTest, RunReturnsAfterAllWorkIsDone) {
  ThreadPool pool(4);
  std::atomic<int> inside{0};
  int finished = 0;
  for (int round = 0; round < 200; ++round) {
    std::vector<int> done(4, 0);
    pool.Run([&](int thread) {
      // All four must be inside together: nobody's work waits for another's end.
      inside.fetch_add(1);
      while (inside.load() < 4 * (round + 1)) std::this_thread::yield();
      done[thread] = 1;
    });
    finished += done[0] + done[1] + done[2] + done[3];
  }
  EXPECT_EQ(finished, 800);
}

TEST(ThreadPoolTest, ParallelForCoversEveryIndexOnceInWholeGrains) {
  for (const int threads : {1, 2, 3, 5}) {
    ThreadPool pool(threads);
    for (const int64_t total : {0, 1, 7, 16, 100, 101}) {
      for (const int64_t grain : {1, 4, 16, 1000}) {
        std::vector<int> visits(total, 0);
        std::atomic<int> bad_parts{0};
        pool.ParallelFor(total, grain, [&](int thread, int64_t begin, int64_t end) {
          const bool whole = begin % grain == 0 && (end % grain == 0 || end == total);
          if (thread < 0 || thread >= threads || begin >= end || !whole) ++bad_parts;
          for (int64_t i = begin; i < end; ++i) ++visits[i];
        });
        EXPECT_EQ(bad_parts, 0);
        EXPECT_EQ(visits, std::vector<int>(total, 1));
      }
    }
  }
}

TEST(ThreadPoolTest, DenormalsAreFlushedOnEveryThread) {
  FloatingPoint::Set(FloatingPoint::kDefault);
  ASSERT_GT(HalfOfTheSmallestNormal(), 0);
  ASSERT_GT(MultipleOfADenormal(), 0);
  ThreadPool pool(4);
  std::vector<double> made(4, 1), read(4, 1);
  pool.Run([&](int thread) {
    made[thread] = HalfOfTheSmallestNormal();
    read[thread] = MultipleOfADenormal();
  });
  EXPECT_EQ(made, std::vector<double>(4, 0));
  EXPECT_EQ(read, std::vector<double>(4, 0));
}

TEST(ThreadPoolDeathTest, RefusesNoThreads) { EXPECT_DEATH(ThreadPool(0), "threads"); }

TEST(ThreadPoolDeathTest, RefusesRunInsideRun) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_DEATH(
      {
        ThreadPool pool(2);
        pool.Run([&](int thread) {
          if (thread == 0) pool.Run([](int) {});
        });
      },
      "inside Run");
}

}  // namespace
}  // namespace elastor
