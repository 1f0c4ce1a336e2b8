#include "collective/cuda/call_watch.h"

#include <atomic>
#include <chrono>
#include <string>
#include <thread>

#include "gtest/gtest.h"

namespace elastor::cuda {
namespace {

constexpr DeviceCall kCall = {"AllToAllV", Phase::kIdExchange, 2, 100, 23};
constexpr double kNever = 3600;
// Far above what the watching thread needs.
constexpr double kPatienceSeconds = 600;

CallWatch::Options Options(double deadline_seconds) {
  CallWatch::Options options;
  options.rank = 3;
  options.deadline_seconds = deadline_seconds;
  options.seconds_to_end = kNever;
  options.error = [] { return std::string(); };
  return options;
}

// The failure, once there is one.
std::string AwaitFailure(CallWatch* watch) {
  const Clock::time_point start = Clock::now();
  while (watch->failure().ok() && SecondsSince(start) < kPatienceSeconds) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return watch->failure().message();
}

TEST(CallWatchTest, RecordsCallsThatAreDone) {
  CallWatch watch(Options(kNever));
  Stream stream;
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(watch.Begin(kCall, &stream).ok());
    watch.End(&stream);
  }
  stream.Synchronize();
  ASSERT_TRUE(watch.Begin({"start", Phase::kSetup, 1, 1, 2}, nullptr).ok());
  EXPECT_EQ(watch.record(Phase::kSetup, Work::kOther).calls, 0);
  watch.End(nullptr);
  EXPECT_EQ(watch.record(Phase::kSetup, Work::kOther).calls, 1);
  EXPECT_EQ(watch.record(Phase::kIdExchange, Work::kOther).calls, 3);
  EXPECT_EQ(watch.record(Phase::kIdExchange, Work::kOther).bytes_sent, 300);
  EXPECT_EQ(watch.record(Phase::kIdExchange, Work::kOther).bytes_received, 69);
  EXPECT_EQ(watch.record(Phase::kMetrics, Work::kOther).calls, 0);
  EXPECT_TRUE(watch.failure().ok());
}

TEST(CallWatchTest, DeadlineNamesRankCallPhaseAndBytesOfTheOldestCallThatIsNotDone) {
  CallWatch watch(Options(1));
  ASSERT_TRUE(watch.Begin({"done", Phase::kSetup, 0, 0, 0}, nullptr).ok());
  watch.End(nullptr);
  ASSERT_TRUE(watch.Begin(kCall, nullptr).ok());
  EXPECT_EQ(AwaitFailure(&watch),
            "rank 3: AllToAllV (id_exchange, 123 bytes) did not complete within 1 s");
  const Status next = watch.Begin(kCall, nullptr);
  EXPECT_EQ(next.code(), StatusCode::kMachine);
  EXPECT_EQ(next.message(), watch.failure().message());
}

TEST(CallWatchTest, CallsThatAreDoneHaveNoDeadline) {
  constexpr double kDeadlineSeconds = 1;
  std::atomic<int> looks = 0;
  CallWatch::Options options = Options(kDeadlineSeconds);
  options.error = [&] {
    ++looks;
    return std::string();
  };
  CallWatch watch(std::move(options));
  Stream stream;
  const Clock::time_point start = Clock::now();
  ASSERT_TRUE(watch.Begin(kCall, &stream).ok());
  watch.End(&stream);
  stream.Synchronize();
  while (SecondsSince(start) < kDeadlineSeconds) std::this_thread::yield();
  for (const int seen = looks; looks < seen + 2;) std::this_thread::yield();
  EXPECT_TRUE(watch.failure().ok());
}

TEST(CallWatchTest, TheLibrarysErrorIsAFailureInOneLine) {
  std::atomic<bool> broken = false;
  CallWatch::Options options = Options(kNever);
  options.error = [&] { return std::string(broken ? "remote\nclosed" : ""); };
  CallWatch watch(std::move(options));
  ASSERT_TRUE(watch.Begin(kCall, nullptr).ok());
  EXPECT_TRUE(watch.failure().ok());
  broken = true;
  EXPECT_EQ(AwaitFailure(&watch),
            "rank 3: AllToAllV (id_exchange, 123 bytes) failed: remote closed");
}

TEST(CallWatchTest, ErrorsOfCallsAndWaits) {
  CallWatch call_fails(Options(kNever));
  ASSERT_TRUE(call_fails.Begin(kCall, nullptr).ok());
  call_fails.Fail("no such host");
  call_fails.Fail("and so on");
  EXPECT_EQ(call_fails.failure().message(),
            "rank 3: AllToAllV (id_exchange, 123 bytes) failed: no such host");
  CallWatch wait_fails(Options(7));
  wait_fails.FailWaiting("counts of ids");
  EXPECT_EQ(wait_fails.failure().message(), "rank 3: counts of ids did not complete within 7 s");
}

TEST(CallWatchDeathTest, EndsAProcessThatDoesNotEndByItself) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_EXIT(
      {
        CallWatch::Options options = Options(0.05);
        options.seconds_to_end = 0.1;
        CallWatch watch(std::move(options));
        (void)watch.Begin(kCall, nullptr);
        std::this_thread::sleep_for(std::chrono::seconds(600));
      },
      testing::ExitedWithCode(3),
      "elastor: rank 3: AllToAllV .id_exchange, 123 bytes. did not complete within 0.05 s");
}

}  // namespace
}  // namespace elastor::cuda
