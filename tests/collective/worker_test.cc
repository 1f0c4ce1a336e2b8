#include "collective/worker.h"

#include <array>
#include <limits>
#include <numeric>
#include <thread>
#include <vector>

#include "collective/communicator.h"
#include "gtest/gtest.h"

namespace elastor {
namespace {

TEST(CommunicationWorkerTest, RunsJobsInOrderAndReturnsTheirStatuses) {
  CommunicationWorker worker;
  std::vector<int> order;
  std::vector<std::future<Status>> done;
  for (int i = 0; i < 100; ++i) {
    done.push_back(worker.Post([&order, i] {
      order.push_back(i);
      return i % 10 == 3 ? MachineError("job " + std::to_string(i)) : OkStatus();
    }));
  }
  for (int i = 0; i < 100; ++i) {
    const Status status = done[i].get();
    EXPECT_EQ(status.ok(), i % 10 != 3);
    if (!status.ok()) {
      EXPECT_EQ(status.message(), "job " + std::to_string(i));
    }
  }
  std::vector<int> expected(100);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(order, expected);
}

TEST(CommunicationWorkerTest, DestructorRunsWhatIsQueued) {
  int ran = 0;
  {
    CommunicationWorker worker;
    for (int i = 0; i < 50; ++i) {
      worker.Post([&ran] {
        ++ran;
        return OkStatus();
      });
    }
  }
  EXPECT_EQ(ran, 50);
}

TEST(CommunicationWorkerTest, JobsComputeWithFlushToZero) {
  volatile float tiny = std::numeric_limits<float>::min();
  volatile float half = 1;
  CommunicationWorker worker;
  worker
      .Post([&] {
        half = tiny * 0.5f;
        return OkStatus();
      })
      .get()
      .ok();
  EXPECT_EQ(half, 0.0f);
}

TEST(CommunicationWorkerTest, CarriesTheCollectivesOfEveryRank) {
  constexpr int kRanks = 4;
  auto communicators = MakeThreadCommunicators(kRanks, {.deadline_seconds = 600});
  std::vector<CommunicationWorker> workers(kRanks);
  std::vector<std::array<int64_t, 20>> sums(kRanks);
  std::vector<std::future<Status>> done;
  for (int r = 0; r < kRanks; ++r) {
    for (int i = 0; i < 20; ++i) {
      sums[r][i] = r * i;
      done.push_back(workers[r].Post([c = communicators[r].get(), value = &sums[r][i]] {
        return c->AllReduceSum(Phase::kScalars, {value, 1});
      }));
    }
  }
  for (auto& future : done) EXPECT_TRUE(future.get().ok());
  for (int r = 0; r < kRanks; ++r) {
    for (int i = 0; i < 20; ++i) EXPECT_EQ(sums[r][i], 6 * i);
  }
}

}  // namespace
}  // namespace elastor
