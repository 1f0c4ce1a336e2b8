// The suite, and failures, of the communicator over NCCL, on a fake of the library (fake_nccl/).
#include "nccl.h"

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "collective/cuda/nccl_backend.h"
#include "core/base/clock.h"
#include "gtest/gtest.h"
#include "tests/collective/cuda/device_communicator_suite.h"

namespace elastor::cuda {

std::vector<int> SuiteRanks() { return {2, 3, 4, 7, 8}; }

namespace {

constexpr Phase kPhase = Phase::kDenseReduce;

// Ranks as threads; `test` has what StartNccl returned.
void OnThreads(
    int ranks, double deadline_seconds,
    const std::function<void(Communicator&, StatusOr<std::unique_ptr<DeviceCommunicator>>)>& test) {
  auto hosts = MakeThreadCommunicators(ranks, {.deadline_seconds = kSuiteDeadlineSeconds});
  std::vector<std::thread> threads;
  for (auto& host : hosts) {
    threads.emplace_back([&test, &host, deadline_seconds] {
      test(*host, internal::StartNccl(host.get(), deadline_seconds));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

void OnEveryRank(int ranks, const std::function<void(DeviceCommunicator&, Stream&)>& test) {
  FakeNccl::Reset();
  OnThreads(ranks, kSuiteDeadlineSeconds, [&](Communicator&, auto made) {
    ASSERT_TRUE(made.ok()) << made.status().message();
    Stream stream;
    test(**made, stream);
  });
  EXPECT_EQ(FakeNccl::destroyed(), ranks);
  EXPECT_EQ(FakeNccl::aborts(), 0);
}

namespace {

TEST(NcclTest, SaysWhichVersionAndWhatItMoved) {
  OnEveryRank(3, [](DeviceCommunicator& c, Stream& stream) {
    EXPECT_EQ(std::string(c.name()), "nccl 2.19.3");
    Buffer<int64_t> values(&stream, 600);
    FillZero(stream, values.data(), values.size());
    ASSERT_TRUE(c.AllReduceSum(kPhase, stream, values.data(), values.size()).ok());
    const std::vector<int64_t> bytes = {100, 200, 300};
    ASSERT_TRUE(
        c.AllGatherV(Phase::kDenseGather, stream, values.data(), values.data() + 300, bytes).ok());
    stream.Synchronize();
    // A ring: two thirds of 4,800 bytes, twice.
    EXPECT_EQ(c.record(kPhase, Work::kOther).bytes_sent, 6400);
    EXPECT_EQ(c.record(kPhase, Work::kOther).bytes_received, 6400);
    EXPECT_EQ(c.record(Phase::kDenseGather, Work::kOther).bytes_sent, 2 * bytes[c.rank()]);
    EXPECT_EQ(c.record(Phase::kDenseGather, Work::kOther).bytes_received, 600 - bytes[c.rank()]);
    EXPECT_EQ(c.record(Phase::kSetup, Work::kOther).calls, 1);
  });
}

TEST(NcclTest, EveryRankLearnsThatTheStartFailed) {
  FakeNccl::Reset();
  FakeNccl::FailStart(0, ncclSystemError);
  OnThreads(3, kSuiteDeadlineSeconds, [](Communicator&, auto made) {
    ASSERT_FALSE(made.ok());
    EXPECT_EQ(made.status().code(), StatusCode::kMachine);
    EXPECT_EQ(made.status().message(),
              "rank 0: ncclCommInitRank (setup, 0 bytes) failed: unhandled system error");
  });
}

TEST(NcclTest, AFailedCallNamesRankCallPhaseAndBytesAndIsTheLast) {
  FakeNccl::Reset();
  OnThreads(2, kSuiteDeadlineSeconds, [](Communicator& host, auto made) {
    ASSERT_TRUE(made.ok());
    DeviceCommunicator& c = **made;
    Stream stream;
    Buffer<float> values(&stream, 10);
    if (c.rank() == 0) FakeNccl::FailAllReduce(1, ncclRemoteError);
    ASSERT_TRUE(host.Barrier(Phase::kSetup).ok());
    if (c.rank() == 0) return;  // its own call would wait for rank 1's
    for (int repeat = 0; repeat < 2; ++repeat) {
      const Status status = c.AllReduceSum(kPhase, stream, values.data(), 10);
      EXPECT_EQ(status.code(), StatusCode::kMachine);
      EXPECT_EQ(status.message(),
                "rank 1: AllReduceSum (dense_reduce, 80 bytes) failed: remote process exited or "
                "there was a network error; fake: connection closed");
    }
    EXPECT_EQ(FakeNccl::aborts(), 1);
  });
}

TEST(NcclTest, AnAsynchronousErrorEndsTheNextCallAndWaits) {
  FakeNccl::Reset();
  OnThreads(2, kSuiteDeadlineSeconds, [](Communicator& host, auto made) {
    ASSERT_TRUE(made.ok());
    DeviceCommunicator& c = **made;
    Stream stream;
    Buffer<int64_t> values(&stream, 10);
    FillZero(stream, values.data(), 10);
    ASSERT_TRUE(c.AllReduceSum(kPhase, stream, values.data(), 10).ok());
    ASSERT_TRUE(host.Barrier(Phase::kSetup).ok());
    FakeNccl::SetAsynchronousError(ncclRemoteError);
    // Calls that exchange nothing tell too; these would not wait for the peer.
    const Clock::time_point start = Clock::now();
    Status status;
    while (status.ok() && SecondsSince(start) < kSuiteDeadlineSeconds) {
      status = c.AllReduceSum(kPhase, stream, values.data(), 0);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_EQ(status.code(), StatusCode::kMachine);
    EXPECT_NE(status.message().find("remote process exited"), std::string::npos)
        << status.message();
    EXPECT_EQ(c.AllReduceSum(kPhase, stream, values.data(), 10).message(), status.message());
  });
  EXPECT_EQ(FakeNccl::aborts(), 2);
  EXPECT_EQ(FakeNccl::destroyed(), 0);
}

TEST(NcclTest, RanksOnOneDeviceHaveOneIdentity) {
  EXPECT_EQ(internal::DeviceIdentity(), "GPU-00112233445566778899aabbccddeeff");
}

}  // namespace
}  // namespace elastor::cuda
