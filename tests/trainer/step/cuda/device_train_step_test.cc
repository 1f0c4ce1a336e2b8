#include "trainer/step/cuda/device_train_step.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <regex>
#include <string>
#include <vector>

#include "core/cuda/runtime.h"
#include "tests/trainer/step/cuda/device_training.h"
#include "tests/trainer/step/tiny_training.h"

namespace elastor::cuda {
namespace {

// Largest difference of the steps' scalars, relative, and of the logits.
struct Distance {
  double steps = 0;
  double logits = 0;
};
Distance Between(const Outcome& a, const Outcome& b) {
  Distance distance;
  EXPECT_EQ(a.steps.size(), b.steps.size());
  EXPECT_EQ(a.logits.size(), b.logits.size());
  const auto relative = [](double x, double y) {
    return std::fabs(x - y) / std::max({std::fabs(x), std::fabs(y), 1e-3});
  };
  for (size_t i = 0; i < std::min(a.steps.size(), b.steps.size()); ++i) {
    distance.steps = std::max({distance.steps, relative(a.steps[i].loss, b.steps[i].loss),
                               relative(a.steps[i].l2, b.steps[i].l2),
                               relative(a.steps[i].gradient_norm, b.steps[i].gradient_norm)});
  }
  for (size_t i = 0; i < std::min(a.logits.size(), b.logits.size()); ++i) {
    distance.logits = std::max<double>(distance.logits, std::fabs(a.logits[i] - b.logits[i]));
  }
  return distance;
}

// Of the smallest batches that have all that TinyTraining says.
const std::vector<int64_t> kBatchRows = {5, 57};

class DeviceTrainStepTest : public testing::TestWithParam<TinyCase> {
 protected:
  DeviceTrainStepTest() { training_.batch_rows = kBatchRows; }
  // The suite runs once a schedule.
  static void SetUpTestSuite() { one_rank_.clear(); }
  const Outcome& OnOneRank() {
    const auto [found, is_new] = one_rank_.try_emplace(GetParam().name);
    if (is_new) found->second = Train(training_, Spread{.parts = OnDevice({})});
    return found->second;
  }

  TinyTraining training_ = GetParam().training;

 private:
  static inline std::map<std::string, Outcome> one_rank_;
};

// Sums of the device are in another order than the CPU's: a few roundings a step, which Adam's
// division by small second moments makes larger.
TEST_P(DeviceTrainStepTest, TrainsAsTheCpuDoes) {
  const Distance distance = Between(Train(training_, Spread{}), OnOneRank());
  EXPECT_LT(distance.steps, 2e-4);
  EXPECT_LT(distance.logits, 2e-3);
}

// The law of the project, on devices. A case's name chooses one of 2, 3 and 4 ranks and of the
// plans, so that a new case changes no other.
TEST_P(DeviceTrainStepTest, AnySpreadGivesTheBitsOfOneRank) {
  constexpr PlanKind kPlans[] = {PlanKind::kRowWise, PlanKind::kTableWise, PlanKind::kReplicated,
                                 PlanKind::kAuto};
  const std::string& name = GetParam().name;
  const int number = std::accumulate(name.begin(), name.end(), 0);
  const int ranks = 2 + number % 3;
  const Spread spread = {.ranks = ranks,
                         .threads = ranks == 2 ? 2 : 1,
                         .overlap = ranks > 2,
                         .plan = kPlans[number % 4],
                         .parts = OnDevice({.device_bytes = ranks == 3 ? 4096 : 0})};
  EXPECT_EQ(Differences(OnOneRank(), Train(training_, spread)), "") << ToString(spread);
}

INSTANTIATE_TEST_SUITE_P(All, DeviceTrainStepTest, testing::ValuesIn(TinyCases()),
                         [](const auto& info) { return info.param.name; });

// Batches of one size: from the third on the dense work is launched as graphs, cut into segments
// where several ranks exchange buckets.
TEST(DeviceGraphTest, GraphsChangeNothing) {
  TinyTraining training = {
      .model = TinyModel(kTinyRankElastor),
      .batch_rows = {48, 48, 20},
  };
  const Outcome cpu = Train(training, Spread{});
  const Outcome expected = Train(training, Spread{.parts = OnDevice({})});
  EXPECT_LT(Between(cpu, expected).steps, 2e-4);
  for (const int ranks : {2, 3}) {
    const Spread spread = {.ranks = ranks, .overlap = true, .parts = OnDevice({})};
    EXPECT_EQ(Differences(expected, Train(training, spread)), "") << ToString(spread);
  }
}

// The order of device_train_step.h, on every rank, with the dense work launched call by call and as
// graphs: the next batch's ids (i) do not wait behind the buckets (d) of this one's backward pass.
TEST(DeviceExchangeTest, NextIdsGoBeforeDenseBuckets) {
  const TinyTraining training = {
      .model = TinyModel(kTinyRankElastor), .batch_rows = {48, 48}, .evaluate = false};
  constexpr int kRanks = 3;
  std::string calls[kRanks];
  const auto tell = [&calls](int rank, Phase phase) {
    switch (phase) {
      case Phase::kRowExchange:
        calls[rank] += 'r';
        break;
      case Phase::kIdExchange:
        calls[rank] += 'i';
        break;
      case Phase::kDenseReduce:
        calls[rank] += 'd';
        break;
      case Phase::kGradientExchange:
        calls[rank] += 'g';
        break;
      case Phase::kScalars:
        calls[rank] += 's';
        break;
      case Phase::kDenseGather:
        calls[rank] += 'w';
        break;
      default:
        calls[rank] += '?';
    }
  };
  Train(training, {.ranks = kRanks, .overlap = true, .parts = OnDevice({.exchange = tell})});
  EXPECT_TRUE(std::regex_match(calls[0], std::regex("(i(rid+gsw+)+rd+gsw+)+"))) << calls[0];
  for (int rank = 1; rank < kRanks; ++rank) EXPECT_EQ(calls[rank], calls[0]);
}

// From the first batch on, ranks that have no row of a batch.
TEST(DeviceAbsenceTest, RanksWithoutRows) {
  const TinyTraining training = {.model = TinyModel(kTinyMlp), .batch_rows = {1, 50, 2}};
  const Outcome cpu = Train(training, Spread{});
  const Outcome expected = Train(training, Spread{.parts = OnDevice({})});
  EXPECT_LT(Between(cpu, expected).steps, 2e-4);
  for (const int ranks : {2, 4}) {
    const Spread spread = {.ranks = ranks, .overlap = true, .parts = OnDevice({})};
    EXPECT_EQ(Differences(expected, Train(training, spread)), "") << ToString(spread);
  }
  const Spread fast = {.ranks = 3, .parts = OnDevice({.reproducible = false})};
  const Distance distance = Between(cpu, Train(training, fast));
  EXPECT_LT(distance.steps, 2e-4);
  EXPECT_LT(distance.logits, 2e-3);
}

TEST(DeviceDecayTest, DecoupledDecayIsOfWeightsAlone) {
  EXPECT_LT(DecayDeviation({.ranks = 2, .parts = OnDevice({})}), 1e-5);
}

// At the first step; what rounding changes there grows in the steps behind it, whose gradients go
// up and down by a factor of eight.
TEST(DevicePrecisionTest, LowerPrecisionIsNear) {
  const TinyTraining training = {.model = TinyModel(kTinyRankElastor), .batch_rows = {37, 5}};
  const Outcome expected = Train(training, Spread{});
  ASSERT_FALSE(expected.steps.empty());
  const auto first_step = [&](const Outcome& outcome) {
    if (outcome.steps.empty()) return HUGE_VAL;
    const double norm = expected.steps[0].gradient_norm;
    return std::fabs(outcome.steps[0].gradient_norm - norm) / norm;
  };
  const Outcome tf32 = Train(training, {.parts = OnDevice({.precision = Precision::kTf32})});
  EXPECT_LT(first_step(tf32), 3e-3);
  EXPECT_LT(Between(expected, tf32).steps, 0.1);
  const Outcome rounded = Train(training, {.parts = OnDevice({.precision = Precision::kBFloat16})});
  EXPECT_LT(first_step(rounded), 1e-2);
  EXPECT_LT(Between(expected, rounded).steps, 0.25);
  EXPECT_GT(first_step(rounded), 1e-5);  // it is in use
  const Spread three = {.ranks = 3, .parts = OnDevice({.precision = Precision::kBFloat16})};
  EXPECT_EQ(Differences(rounded, Train(training, three)), "");
}

// A rank's leaves and their sum are those of the reproducible mode, and so is RankElastor's fused
// network. Products are the library's own: the emulation makes them in one order, and cuBLAS by
// other algorithms, which differ in the last bits of their sums.
TEST(DeviceFastModeTest, AloneItDiffersInProductsOnly) {
  const StatusOr<DeviceInfo> opened = OpenDevice(0);
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  for (const char* const model : {kTinyRankMixer, kTinyRankElastor}) {
    SCOPED_TRACE(model);
    const TinyTraining training = {.model = TinyModel(model), .batch_rows = kBatchRows};
    const Outcome expected = Train(training, {.parts = OnDevice({})});
    const Outcome fast = Train(training, {.parts = OnDevice({.reproducible = false})});
    if (opened->emulated) {
      EXPECT_EQ(Differences(expected, fast), "");
    }
    const Distance distance = Between(expected, fast);
    EXPECT_LT(distance.steps, 2e-5);
    EXPECT_LT(distance.logits, 2e-4);
  }
}

TEST(DeviceFastModeTest, TrainsAsTheCpuDoes) {
  for (const int ranks : {1, 3}) {
    const TinyTraining training = {.model = TinyModel(kTinyRankElastor), .batch_rows = kBatchRows};
    const Outcome expected = Train(training, Spread{});
    const Spread spread = {.ranks = ranks, .parts = OnDevice({.reproducible = false})};
    const Distance distance = Between(expected, Train(training, spread));
    EXPECT_LT(distance.steps, 2e-4);
    EXPECT_LT(distance.logits, 2e-3);
  }
}

// Nothing is updated once a number is not finite, and all ranks end with the same line.
TEST(DeviceDivergenceTest, StopsAlikeOnAllRanks) {
  TinyTraining training = {.model = TinyModel(kTinyMlp), .evaluate = false};
  training.learning_rate = 1e30;
  const Outcome expected = TrainUntilItFails(training, Spread{.parts = OnDevice({})});
  EXPECT_NE(expected.error.find("not finite"), std::string::npos) << expected.error;
  const Spread spread = {.ranks = 3, .parts = OnDevice({})};
  EXPECT_EQ(Differences(expected, TrainUntilItFails(training, spread)), "");
}

TEST(DeviceWeightsTest, WeightsOfSamplesCount) {
  const TinyTraining training = {.model = TinyModel(kTinyMlp), .weight = TinyWeight};
  const Outcome expected = Train(training, Spread{});
  const Outcome found = Train(training, Spread{.parts = OnDevice({})});
  EXPECT_LT(Between(expected, found).steps, 2e-4);
  const Spread spread = {.ranks = 4, .overlap = true, .parts = OnDevice({})};
  EXPECT_EQ(Differences(found, Train(training, spread)), "");
}

}  // namespace
}  // namespace elastor::cuda
