#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <limits>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "core/kernels/cpu/isa.h"
#include "tests/trainer/step/tiny_training.h"

namespace elastor {
namespace {

using enum OptimizerKind;

constexpr PlanKind kPlans[] = {PlanKind::kRowWise, PlanKind::kTableWise, PlanKind::kReplicated,
                               PlanKind::kAuto};

// 3 and 7 do not divide the leaves.
constexpr int kRanks[] = {1, 2, 3, 4, 7, 8};
// Hosts of ranks: in pairs, in turns, of one, two and the rest, where other hosts' ranks lie
// between.
std::vector<uint64_t> HostsOf(int ranks, int kind) {
  std::vector<uint64_t> hosts;
  for (int r = 0; r < ranks; ++r) {
    hosts.push_back(kind == 0 ? r / 2 : kind == 1 ? r % 2 : r == 1 ? 0 : 1 + r % 3 / 2);
  }
  return hosts;
}

// Where the CPU has several instruction sets, each has its part of the spreads: whether the one in
// use has spread number `turn`.
bool IsTurn(size_t turn) {
  const auto isas = static_cast<size_t>(std::ranges::count_if(IsasOfMachine(), CpuHas));
  return (turn + static_cast<size_t>(ActiveIsa())) % isas == 0;
}

constexpr WireFormat kWires[] = {WireFormat::kFloat32, WireFormat::kFloat16, WireFormat::kBFloat16};

class TrainStepTest : public testing::TestWithParam<TinyCase> {};

// The law of the project. A case has half of the pairs of ranks and plans. Threads and overlap take
// turns, so that among all cases every pair of values of ranks, threads, overlap and plan occurs.
// In some cases vectors go by host. Of the overlapped spreads half send first ids first.
TEST_P(TrainStepTest, AnySpreadGivesTheBitsOfOneRank) {
  const TinyTraining& training = GetParam().training;
  const Outcome expected = Train(training, Spread{});
  const size_t half = GetParam().name.size() % 2;
  const bool by_host = GetParam().name.size() / 3 % 2 == 1;
  for (size_t r = 0; r < std::size(kRanks); ++r) {
    for (size_t p = (r + half) % 2; p < std::size(kPlans); p += 2) {
      if (!IsTurn(r / 3 + p / 2 + GetParam().name.size() / 2)) continue;
      const Spread spread = {.ranks = kRanks[r],
                             .threads = (r / 2 + p / 2) % 2 == 0 ? 1 : 2,
                             .overlap = (r + p / 2) % 2 == 1,
                             .first_ids_first = (r + half) % 2 == 0,
                             .plan = kPlans[p],
                             .hosts = by_host && r > 1
                                          ? HostsOf(kRanks[r], static_cast<int>(r + p) % 3)
                                          : std::vector<uint64_t>{}};
      EXPECT_EQ(Differences(expected, Train(training, spread)), "") << ToString(spread);
    }
  }
}

// What the comparison above is worth: the tiny trainings do what their options say.
TEST_P(TrainStepTest, IsWorthComparing) {
  const TinyTraining& training = GetParam().training;
  const Outcome outcome = Train(training, Spread{});
  for (const StepResult& step : outcome.steps) {
    EXPECT_GT(step.gradient_norm, training.clip_norm);
    EXPECT_EQ(step.l2 > 0, training.l2 > 0);
    EXPECT_GT(step.loss, 0);
    EXPECT_LT(step.loss, 10);
  }
  const size_t half = outcome.logits.size() / 2;
  for (size_t i = 0; i < half; ++i) EXPECT_NE(outcome.logits[i], outcome.logits[half + i]);
}

INSTANTIATE_TEST_SUITE_P(All, TrainStepTest, testing::ValuesIn(TinyCases()),
                         [](const auto& info) { return info.param.name; });

// More than 512 rows in a leaf: several passes, whose gradients are added before the leaf meets its
// sibling.
TEST(TrainStepLeafTest, LeavesOfSeveralPasses) {
  const TinyTraining training = {
      .model = TinyModel(kTinyMlp), .leaves = 4, .batch_rows = {4 * 512 + 300, 3}};
  const Outcome expected = Train(training, Spread{});
  for (const int ranks : {2, 3, 4}) {
    const Spread spread = {.ranks = ranks, .threads = ranks % 3 + 1, .overlap = ranks != 3};
    EXPECT_EQ(Differences(expected, Train(training, spread)), "") << ToString(spread);
  }
}

// Batch norm sees the whole leaf, of 588 rows, in one pass.
TEST(TrainStepLeafTest, BatchNormOfLongLeaves) {
  TinyTraining training = {
      .model = TinyModel(kTinyBatchNorm), .leaves = 4, .batch_rows = {4 * 512 + 300, 3}};
  const Outcome expected = Train(training, Spread{});
  for (const int ranks : {2, 3, 4}) {
    const Spread spread = {.ranks = ranks, .threads = ranks % 3 + 1, .overlap = ranks != 3};
    EXPECT_EQ(Differences(expected, Train(training, spread)), "") << ToString(spread);
  }
}

// The published recipes: one leaf, whose work is shared by the threads.
TEST(TrainStepLeafTest, BatchNormOfOneLeaf) {
  const TinyTraining training = {.model = TinyModel(kTinyBatchNorm),
                                 .leaves = 1,
                                 .batch_rows = {300, 5},
                                 .weight = TinyWeight};
  const Outcome expected = Train(training, Spread{});
  for (const int threads : {2, 3}) {
    const Spread spread = {.threads = threads, .overlap = threads == 2};
    EXPECT_EQ(Differences(expected, Train(training, spread)), "") << ToString(spread);
  }
}

// Histories have 0 to 4 ids: positions that no row has are left out exactly.
TEST(TrainStepSequencesTest, EmptyPositionsChangeNoBit) {
  TinyTraining training = {.model = TinyModel(kTinyDin)};
  training.model.features.sequences = {{"bag", 2, 0, 4}};
  const Outcome expected = Train(training, Spread{});
  training.model.features.sequences[0].positions = 9;
  EXPECT_EQ(Differences(expected, Train(training, {.ranks = 3, .threads = 2})), "");
  training.model.features.sequences[0].positions = 3;
  EXPECT_NE(expected.digest, Train(training, Spread{}).digest);
}

// Rows that are found by their keys begin and learn as those of an array.
TEST(TrainStepKeyedTest, HasTheBitsOfArrays) {
  TinyTraining training = {.model = TinyModel(kTinyMlp)};
  const Outcome expected = Train(training, Spread{});
  training.keyed = true;
  for (const int ranks : {1, 3, 8}) {
    const Spread spread = {.ranks = ranks,
                           .threads = ranks == 8 ? 1 : 2,
                           .overlap = ranks > 1,
                           .first_ids_first = ranks > 1,
                           .plan = kPlans[ranks % 4]};
    EXPECT_EQ(Differences(expected, Train(training, spread)), "") << ToString(spread);
  }
}

TEST(TrainStepWeightsTest, OnesGiveTheBitsOfNone) {
  TinyTraining training = {.model = TinyModel(kTinyMlp)};
  const Outcome expected = Train(training, Spread{});
  training.weight = [](int64_t) { return 1.0f; };
  EXPECT_EQ(Differences(expected, Train(training, {.ranks = 2, .overlap = true})), "");
}

// 20 rows, of which the first 10 have twice the weight of the others, or stand there twice.
TEST(TrainStepWeightsTest, TwoIsTheRowTwice) {
  constexpr double kTolerance = 1e-5;  // sums of floats in another order, over two steps
  TinyTraining weighted = {.model = TinyModel(kTinyMlp), .leaves = 2, .evaluate = false};
  weighted.model.config.mutable_mlp()->set_dropout(0);
  TinyTraining repeated = weighted;
  weighted.batch_rows = {20};
  weighted.weight = [](int64_t index) { return index < 10 ? 1.0f : 0.5f; };
  repeated.batch_rows = {30};
  repeated.row = [](int64_t index) { return index < 20 ? index / 2 : index - 10; };
  const Outcome expected = Train(repeated, Spread{});
  const Outcome found = Train(weighted, {.ranks = 2});
  ASSERT_EQ(found.steps.size(), expected.steps.size());
  for (size_t i = 0; i < expected.steps.size(); ++i) {
    EXPECT_NEAR(found.steps[i].loss, expected.steps[i].loss, kTolerance);
    EXPECT_NEAR(found.steps[i].gradient_norm, expected.steps[i].gradient_norm, kTolerance);
  }
}

// A batch without weight has no gradient and no loss: only the penalty acts.
TEST(TrainStepWeightsTest, AllZero) {
  TinyTraining training = {.model = TinyModel(kTinyMlp), .dense = kSgd, .l2 = 0};
  training.sparse = kSgd;
  training.evaluate = false;
  training.weight = [](int64_t) { return 0.0f; };
  const Outcome found = Train(training, {.ranks = 3});
  for (const StepResult& step : found.steps) {
    EXPECT_EQ(step.loss, 0);
    EXPECT_EQ(step.gradient_norm, 0);
  }
}

TEST(TrainStepDecayTest, DecoupledDecayIsOfWeightsAlone) {
  EXPECT_LT(DecayDeviation({.ranks = 3}), 1e-5);
}

// Several buckets of dense gradients, which overlapped ranks reduce while others still compute.
// Their new weights come while the next step computes; an evaluation or the end of the run, at any
// step, has them as well.
TEST(TrainStepOverlapTest, SeveralBuckets) {
  TinyTraining training = {.model = TinyModel("mlp { hidden: [512, 400, 360] dropout: 0.2 }")};
  ASSERT_GT(training.model.graph().parameters().buckets().size(), 1u);
  for (training.stop_after = 2; training.stop_after <= 6; training.stop_after += 2) {
    const Outcome expected = Train(training, Spread{});
    for (const int ranks : {1, 3, 4}) {
      const Spread spread = {.ranks = ranks,
                             .threads = ranks == 4 ? 1 : 2,
                             .overlap = true,
                             .hosts = ranks == 4 && training.stop_after == 4
                                          ? HostsOf(ranks, /*kind=*/0)
                                          : std::vector<uint64_t>{}};
      EXPECT_EQ(Differences(expected, Train(training, spread)), "") << ToString(spread);
    }
  }
}

// A step makes the calls that its declaration lists, with the same bytes to every rank, in the same
// order. A message that only the step or only the declaration has fails here.
TEST(TrainStepCallsTest, AreThoseOfTheDeclaration) {
  TinyTraining training = {.model = TinyModel("mlp { hidden: [512, 400, 360] dropout: 0.2 }"),
                           .evaluate = false};
  ASSERT_GT(training.model.graph().parameters().buckets().size(), 1u);
  const TestModel mlp = training.model;
  TestModel dcn_v3 = TinyModel(kTinyDcnV3);
  dcn_v3.outputs = 3;
  for (size_t r = 0; r < std::size(kRanks); ++r) {
    for (size_t p = r % 2; p < std::size(kPlans); p += 2) {
      training.task.branches = r % 3 == 1 ? 2 : 0;  // with losses of the batch
      training.model = r % 3 == 1 ? dcn_v3 : mlp;
      training.weight = (r + p / 2) % 3 == 0 ? TinyWeight : nullptr;
      training.keyed = (r / 2 + p / 2) % 2 == 0;  // with counts behind their keys, and no pass
      if (r % 2 == 0) training.wire.rows = kWires[(r / 2 + p) % std::size(kWires)];
      if (p % 2 == 0) training.wire.gradients = kWires[(r + p / 2) % std::size(kWires)];
      training.rules.policy = training.keyed ? RowRules::Policy::kLfu : RowRules::Policy::kNone;
      if (!IsTurn(r / 2 + p / 2)) continue;
      std::vector<std::vector<TinyCall>> made;
      const Spread spread = {.ranks = kRanks[r],
                             .threads = r % 4 < 2 ? 1 : 2,
                             .overlap = (r + p / 2) % 2 == 0,
                             .first_ids_first = p != 3 || r > 2,
                             .plan = kPlans[p],
                             .hosts = r == 3 || r == 5
                                          ? HostsOf(kRanks[r], static_cast<int>(r + p) % 3)
                                          : std::vector<uint64_t>{},
                             .calls = &made};
      Train(training, spread);
      const std::vector<std::vector<TinyCall>> declared = DeclaredCalls(training, spread);
      for (int rank = 0; rank < spread.ranks; ++rank) {
        ASSERT_EQ(made[rank].size(), declared[rank].size()) << ToString(spread);
        for (size_t i = 0; i < made[rank].size(); ++i) {
          ASSERT_EQ(ToString(made[rank][i]), ToString(declared[rank][i]))
              << ToString(spread) << ", rank " << rank << ", call " << i;
        }
      }
    }
  }
}

// Vectors that travel in 16 bits are rounded on one rank as well.
TEST(TrainStepWireTest, AnySpreadGivesTheBitsOfOneRank) {
  TinyTraining training = {.model = TinyModel(kTinyMlp)};
  std::set<std::string> digests;
  for (const WireFormat rows : kWires) {
    for (const WireFormat gradients : kWires) {
      training.wire = {rows, gradients};
      const Outcome expected = Train(training, Spread{});
      digests.insert(expected.digest);
      const int ranks = gradients == WireFormat::kFloat16 ? 3 : 8;
      for (const bool by_host : {false, true}) {
        if (!IsTurn(static_cast<size_t>(rows) + static_cast<size_t>(gradients) + by_host)) continue;
        const Spread spread = {
            .ranks = ranks,
            .threads = 2,
            .overlap = !by_host || rows == WireFormat::kFloat16,
            .first_ids_first = !by_host,
            .hosts = by_host ? HostsOf(ranks, static_cast<int>(rows)) : std::vector<uint64_t>{}};
        EXPECT_EQ(Differences(expected, Train(training, spread)), "") << ToString(spread);
      }
    }
  }
  EXPECT_EQ(digests.size(), std::size(kWires) * std::size(kWires));
}

// Rows that came early for a batch that no step trains leave no trace: the run may end, or be
// evaluated, at any step. The same ids come again in the second epoch.
TEST(TrainStepFirstIdsTest, NoTraceAtAnyStep) {
  for (const bool keyed : {false, true}) {
    TinyTraining training = {.model = TinyModel(kTinyMlp), .batch_rows = {37, 50, 23}};
    training.keyed = keyed;
    for (training.stop_after = 2; training.stop_after <= 6; ++training.stop_after) {
      const Outcome expected = Train(training, {.ranks = 3, .threads = 2});
      const Spread spread = {.ranks = 3, .threads = 2, .overlap = true, .first_ids_first = true};
      EXPECT_EQ(Differences(expected, Train(training, spread)), "") << training.stop_after;
    }
  }
}

// Of the rows that travel in steps, most are early here, and not all.
TEST(TrainStepFirstIdsTest, MovesBytesFromTheLookup) {
  const TinyTraining training = {.model = TinyModel(kTinyMlp), .evaluate = false};
  const auto bytes = [&](bool first_ids_first, Phase phase, std::vector<uint64_t> hosts = {}) {
    std::vector<std::vector<TinyCall>> calls;
    Train(training, {.ranks = 4,
                     .overlap = true,
                     .first_ids_first = first_ids_first,
                     .plan = PlanKind::kTableWise,
                     .hosts = std::move(hosts),
                     .calls = &calls});
    int64_t sum = 0;
    for (const auto& of_rank : calls) {
      for (const TinyCall& call : of_rank) {
        if (call.phase != phase) continue;
        sum += std::accumulate(call.send.begin(), call.send.end(), int64_t{0});
      }
    }
    return sum;
  };
  const int64_t all = bytes(false, Phase::kRowExchange);
  const int64_t late = bytes(true, Phase::kRowExchange);
  const int64_t early = bytes(true, Phase::kEarlyRows);
  EXPECT_EQ(bytes(false, Phase::kEarlyRows), 0);
  EXPECT_EQ(bytes(true, Phase::kEarlyRows, HostsOf(4, /*kind=*/0)), 0);
  EXPECT_LT(late, all);
  EXPECT_GT(late, all / 10);
  EXPECT_GT(early, all - late);  // with a bit a row
  EXPECT_LT(early, all - late + all / 8);
}

TEST(TrainStepThreadsTest, MoreThreadsThanLeaves) {
  const TinyTraining training = {.model = TinyModel("mlp { hidden: [8] dropout: 0.2 }"),
                                 .leaves = 4};
  const Outcome expected = Train(training, Spread{});
  const Spread spread = {.ranks = 3, .threads = 3, .overlap = true};
  EXPECT_EQ(Differences(expected, Train(training, spread)), "");
}

TEST(TrainStepEvaluateTest, LeavesTheStateAlone) {
  TinyTraining training = {.model = TinyModel(kTinyMlp)};
  const Spread spread = {.ranks = 3, .threads = 2, .overlap = true};
  const Outcome with = Train(training, spread);
  training.evaluate = false;
  const Outcome without = Train(training, spread);
  ASSERT_FALSE(with.steps.empty() || without.steps.empty());
  EXPECT_EQ(with.digest, without.digest);
  EXPECT_EQ(with.steps.back().loss, without.steps.back().loss);
}

// Rank r sets bit 0 when r is 1, bit 1 always, bit 3 at step 2 when r is even.
TEST(TrainBackendOptionssTest, EveryRankLearnsHowManyAsked) {
  TinyTraining training = {.model = TinyModel("mlp { hidden: [8] dropout: 0.2 }"),
                           .evaluate = false};
  training.requests = [](int rank, size_t step) {
    return (rank == 1 ? 1 : 0) | 2 | (step == 2 && rank % 2 == 0 ? 8 : 0);
  };
  for (const bool overlap : {false, true}) {
    const Outcome outcome = Train(training, {.ranks = 3, .overlap = overlap});
    for (size_t i = 0; i < outcome.steps.size(); ++i) {
      const std::array<int64_t, kRequestBits> expected = {1, 3, 0, i == 2 ? 2 : 0};
      EXPECT_EQ(outcome.steps[i].requests, expected) << i;
    }
  }
}

// Steps done decide the bias correction and the dropped elements, an earlier run's only the former.
TEST(TrainStepContinueTest, StepsBefore) {
  const auto digest = [](double dropout, int64_t steps, int64_t optimizer_steps) {
    TinyTraining training = {.model = TinyModel(kTinyMlp), .evaluate = false};
    training.model.config.mutable_mlp()->set_dropout(dropout);
    training.steps_before = steps;
    training.optimizer_steps_before = optimizer_steps;
    return Train(training, Spread{}).digest;
  };
  EXPECT_EQ(digest(0, 5, 2), digest(0, 7, 0));
  EXPECT_EQ(digest(0, 0, 7), digest(0, 7, 0));
  EXPECT_NE(digest(0, 7, 0), digest(0, 0, 0));
  EXPECT_NE(digest(0.2, 5, 2), digest(0.2, 7, 0));
}

TEST(TrainStepDigestTest, DependsOnTheSeedAndOnV) {
  TinyTraining training = {.model = TinyModel(kTinyMlp)};
  const std::string digest = Train(training, Spread{}).digest;
  training.seed = 8;
  EXPECT_NE(Train(training, Spread{}).digest, digest);
  training.seed = 7;
  training.leaves = 8;
  EXPECT_NE(Train(training, Spread{}).digest, digest);
}

// Every rank stops at the same step with the same line, which says what to do.
TEST(TrainStepDivergedTest, StopsAlikeOnAllRanks) {
  const TinyTraining training = {.model = TinyModel(kTinyMlp),
                                 .dense = kSgd,
                                 .clip_norm = 0,
                                 .learning_rate = std::numeric_limits<float>::max(),
                                 .evaluate = false};
  const Outcome expected = TrainUntilItFails(training, Spread{});
  EXPECT_EQ(expected.error,
            "step 2: the loss or the gradient norm is not finite; lower optimizer.learning_rate "
            "or set optimizer.clip_norm");
  EXPECT_EQ(expected.steps.size(), 1u);
  for (const bool overlap : {false, true}) {
    const Spread spread = {.ranks = 3, .threads = 2, .overlap = overlap};
    const Outcome found = TrainUntilItFails(training, spread);
    EXPECT_EQ(found.error, expected.error);
    EXPECT_EQ(found.steps.size(), 1u);
  }
}

}  // namespace
}  // namespace elastor
