#include "launcher/time_estimate.h"

#include <optional>
#include <vector>

#include "gtest/gtest.h"

namespace elastor {
namespace {

PlannedRun Of(const char* model, int64_t multiply_adds, int64_t samples, int threads = 1) {
  PlannedRun run;
  run.model = model;
  run.multiply_adds = multiply_adds;
  run.samples = samples;
  run.threads = threads;
  return run;
}

// 2 us and 3 ps a multiply-add of a sample; 0.5 s and a microsecond a multiply-add of a run.
double Truth(const PlannedRun& run) {
  const auto size = static_cast<double>(run.multiply_adds);
  return static_cast<double>(run.samples) * (2e-6 + 3e-12 * size) + 0.5 + 1e-6 * size;
}

Summary Measured(const PlannedRun& run) {
  Summary result;
  result.samples_per_s = 1 / (2e-6 + 3e-12 * static_cast<double>(run.multiply_adds));
  result.wall_s = Truth(run);
  return result;
}

TEST(TimeEstimateTest, TwoSizesOfAModelSayTheOthers) {
  TimeEstimate estimate;
  EXPECT_FALSE(estimate.Seconds(Of("A", 1000, 1000)));
  for (const PlannedRun& run : {Of("A", 10'000, 50'000), Of("A", 4'000'000, 1'000)}) {
    estimate.Add(run, Measured(run));
  }
  for (const PlannedRun& run : {Of("A", 100'000, 1'000'000), Of("A", 10'000'000, 3'000'000)}) {
    EXPECT_NEAR(*estimate.Seconds(run) / Truth(run), 1, 1e-6);
  }
  // Another model of as many cores, for want of a better; none of two threads.
  EXPECT_GT(estimate.Seconds(Of("B", 100'000, 1'000'000)), std::nullopt);
  EXPECT_FALSE(estimate.Seconds(Of("A", 100'000, 1'000'000, /*threads=*/2)));
}

TEST(TimeEstimateTest, OneSizeGoesWithTheCost) {
  TimeEstimate estimate;
  PlannedRun run = Of("A", 45'000, 1'000'000);
  Summary result;
  result.samples_per_s = 100'000;
  result.wall_s = 10;
  estimate.Add(run, result);
  EXPECT_NEAR(*estimate.Seconds(run), 10, 1e-9);
  run.multiply_adds = 135'000;
  EXPECT_NEAR(*estimate.Seconds(run), 20, 1e-9);
}

// Own runs go before a prediction, and a prediction before other models' runs.
TEST(TimeEstimateTest, APredictionStandsInForRunsOfTheModel) {
  TimeEstimate estimate;
  PlannedRun run = Of("A", 45'000, 1'000'000);
  run.predicted_sample_s = 3e-5;
  EXPECT_NEAR(*estimate.Seconds(run), 30, 1e-9);
  Summary result;
  result.samples_per_s = 100'000;
  result.wall_s = 12;  // 2 s outside of steps
  estimate.Add(Of("B", 45'000, 1'000'000), result);
  EXPECT_NEAR(*estimate.Seconds(run), 32, 1e-9);
  estimate.Add(Of("A", 45'000, 1'000'000), result);
  EXPECT_NEAR(*estimate.Seconds(run), 12, 1e-9);
}

TEST(TimeEstimateTest, TheLongestBeginFirst) {
  const std::vector<Work> waiting = {{1, 1}, {4, 1}, {3, 1}, {2, 1}};
  EXPECT_EQ(SecondsOnCores({}, waiting, 2), 5);
  EXPECT_EQ(SecondsOnCores({}, waiting, 1), 10);
  const std::vector<Work> running = {{2, 1}};
  EXPECT_EQ(SecondsOnCores(running, {{6, 2}, {1, 1}}, 2), 9);
  EXPECT_EQ(SecondsOnCores(running, {}, 2), 2);
}

}  // namespace
}  // namespace elastor
