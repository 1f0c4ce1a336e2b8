#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "collective/call_messages.h"
#include "configs/proto/experiment.pb.h"
#include "configs/proto/machine.pb.h"
#include "core/base/file.h"
#include "core/base/json.h"
#include "trainer/cost/advice.h"
#include "trainer/cost/machine.h"
#include "trainer/cost/prediction.h"
#include "trainer/cost/simulation.h"
#include "trainer/experiment/config.h"
#include "trainer/experiment/config_defaults.h"
#include "trainer/experiment/make_options.h"
#include "trainer/experiment/resolved_model.h"

namespace elastor {
namespace {

// Ranks on one GPU each, so that no rank sleeps while it waits. A message takes 0.1 s and 0.01 s a
// byte; between hosts, of which each has two units, 1 s and 0.1 s a byte.
Machine SlowMachine() {
  Machine machine;
  machine.set_name("slow");
  machine.set_units_per_host(2);
  machine.set_gpus(true);
  machine.set_multiply_adds_per_s(1e9);
  machine.set_memory_bytes_per_s(1e9);
  machine.mutable_same_host()->set_latency_s(0.1);
  machine.mutable_same_host()->set_bytes_per_s(100);
  machine.mutable_other_host()->set_latency_s(1);
  machine.mutable_other_host()->set_bytes_per_s(10);
  return machine;
}

SimTask Work(double seconds) { return {.kind = SimTask::kWork, .seconds = seconds}; }
SimTask Call(int index) { return {.kind = SimTask::kCall, .index = index}; }
SimTask Mark(int index) { return {.kind = SimTask::kMark, .index = index}; }

TEST(SimulationTest, ThreadsShareTheUnits) {
  // Three threads on two units have two thirds each. When two have ended, at 1.5, the third has one
  // second left.
  SimJob job = {.ranks = 1, .marks = 3};
  for (int t = 0; t < 3; ++t) job.threads.push_back({0, {Work(t < 2 ? 1 : 2), Mark(t)}});
  const SimResult result = Simulate(SlowMachine(), job);
  EXPECT_NEAR(result.marks[0][0], 1.5, 1e-12);
  EXPECT_NEAR(result.marks[0][1], 1.5, 1e-12);
  EXPECT_NEAR(result.marks[0][2], 2.5, 1e-12);
}

TEST(SimulationTest, BusyUnitsAreSlower) {
  Machine machine = SlowMachine();
  machine.set_busy_slowdown(1.5);
  SimJob job = {.ranks = 1, .marks = 2};
  for (int t = 0; t < 2; ++t) job.threads.push_back({0, {Work(1), Mark(t)}});
  EXPECT_NEAR(Simulate(machine, job).marks[0][0], 1.5, 1e-12);
  job.threads.pop_back();
  EXPECT_NEAR(Simulate(machine, job).marks[0][0], 1, 1e-12);
}

TEST(SimulationTest, SignalsWakeThreads) {
  SimJob job = {.ranks = 1, .signals = 1, .marks = 1};
  const SimTask post = {.kind = SimTask::kPost};
  job.threads.push_back({0, {{.kind = SimTask::kWait, .count = 2}, Mark(0)}});
  job.threads.push_back({0, {Work(1), post}});
  job.threads.push_back({0, {Work(2), post}});
  EXPECT_NEAR(Simulate(SlowMachine(), job).marks[0][0], 2, 1e-12);
}

TEST(SimulationTest, AnExchangeWaitsForTheLateRank) {
  // Ten bytes each way. Rank 0 has those of rank 1 at 2 + 0.1 + 0.1; rank 1 has sent its own
  // at 2.1.
  SimJob job = {.ranks = 2, .ranks_per_host = 2};
  job.calls = {{.send = {{0, 10}, {10, 0}}}};
  job.threads = {{0, {Work(1), Call(0)}}, {1, {Work(2), Call(0)}}};
  const SimResult result = Simulate(SlowMachine(), job);
  EXPECT_NEAR(result.entered[0][0], 1, 1e-12);
  EXPECT_NEAR(result.left[0][0], 2.2, 1e-12);
  EXPECT_NEAR(result.left[0][1], 2.1, 1e-12);
}

TEST(SimulationTest, MessagesOfARankShareItsLink) {
  // Rank 0 gets ten bytes from each of three ranks: the first at 0.1, and 0.1 for each.
  SimJob job = {.ranks = 4, .ranks_per_host = 4};
  job.calls = {{.send = {{0, 0, 0, 0}, {10, 0, 0, 0}, {10, 0, 0, 0}, {10, 0, 0, 0}}}};
  for (int r = 0; r < 4; ++r) job.threads.push_back({r, {Call(0)}});
  const SimResult result = Simulate(SlowMachine(), job);
  EXPECT_NEAR(result.left[0][0], 0.4, 1e-12);
  EXPECT_NEAR(result.left[0][1], 0.1, 1e-12);
}

TEST(SimulationTest, RanksOfAHostShareItsLink) {
  // Two hosts of two ranks; rank 0 and 1 send ten bytes each to rank 2 and 3.
  Machine machine = SlowMachine();
  SimJob job = {.ranks = 4, .ranks_per_host = 2};
  job.calls = {{.send = {{0, 0, 10, 0}, {0, 0, 0, 10}, {0, 0, 0, 0}, {0, 0, 0, 0}}}};
  for (int r = 0; r < 4; ++r) job.threads.push_back({r, {Call(0)}});
  EXPECT_NEAR(Simulate(machine, job).left[0][2], 2, 1e-12);  // 1 s, and 10 bytes
  machine.mutable_other_host()->set_host_bytes_per_s(5);
  EXPECT_NEAR(Simulate(machine, job).left[0][2], 5, 1e-12);  // 1 s, and 20 bytes at 5
  EXPECT_NEAR(Simulate(machine, job).left[0][0], 4, 1e-12);
}

// Rank 0 sends twenty bytes to its host, 0.2 s at 100 bytes/s, and ten to another, 1 s at 10: the
// links work side by side.
TEST(SimulationTest, LinksOfARankDoNotWaitForEachOther) {
  SimJob job = {.ranks = 4, .ranks_per_host = 2};
  job.calls = {{.send = {{0, 20, 10, 0}, {0, 0, 0, 0}, {0, 0, 0, 0}, {0, 0, 0, 0}}}};
  for (int r = 0; r < 4; ++r) job.threads.push_back({r, {Call(0)}});
  EXPECT_NEAR(Simulate(SlowMachine(), job).left[0][0], 1, 1e-12);
}

// Four ranks send ten bytes each, 0.1 s of a unit. One unit takes 0.4 s for them, two units 0.2 s
// with the latency. Ranks that wait for long notice the end up to 0.1 ms late.
TEST(SimulationTest, RanksBeyondTheUnitsCopyInTurns) {
  SimJob job = {.ranks = 4, .ranks_per_host = 4};
  job.calls = {{.send = {{0, 10, 0, 0}, {10, 0, 0, 0}, {0, 0, 0, 10}, {0, 0, 10, 0}}}};
  for (int r = 0; r < 4; ++r) job.threads.push_back({r, {Call(0)}});
  Machine machine = SlowMachine();
  machine.set_gpus(false);
  EXPECT_NEAR(Simulate(machine, job).left[0][0], 0.2, 2e-4);
  machine.set_units_per_host(1);
  EXPECT_NEAR(Simulate(machine, job).left[0][0], 0.4, 2e-4);
  machine.set_gpus(true);
  EXPECT_NEAR(Simulate(machine, job).left[0][0], 0.2, 1e-12);
}

TEST(SimulationTest, BlocksAreThoseGiven) {
  std::vector<std::pair<int, int64_t>> found;
  SimBlocks({7, 7, 0, 0, 5, 7}).ForEach([&](int to, int64_t bytes) {
    found.push_back({to, bytes});
  });
  EXPECT_EQ(found, (std::vector<std::pair<int, int64_t>>{{0, 7}, {1, 7}, {4, 5}, {5, 7}}));
}

TEST(SimulationTest, AnAllReduceBeginsWithTheLastRank) {
  // Doubling over 1 and 2 ranks, then 4: two steps on a host, one between hosts; ten bytes.
  SimJob job = {.ranks = 8, .ranks_per_host = 4, .repeats = 2};
  job.calls = {{.bytes = 10}};
  for (int r = 0; r < 8; ++r) job.threads.push_back({r, {Work(r == 5 ? 1 : 0), Call(0), Call(1)}});
  Machine machine = SlowMachine();
  machine.set_units_per_host(4);
  const SimResult result = Simulate(machine, job);
  EXPECT_NEAR(result.left[0][3], 1 + 2 * 0.2 + 2, 1e-12);
  EXPECT_NEAR(result.left[1][3], 1 + 2 * (2 * 0.2 + 2), 1e-12);
}

// Rank 0 gets once before it sends its messages, and what it sends last is the result of a rank
// beyond the power of two: so many rounds.
TEST(SimulationTest, AnAllReduceOfAnyNumberHasTheRoundsOfTheCommunicator) {
  for (const int ranks : {3, 5, 6, 7, 9}) {
    SimJob job = {.ranks = ranks, .ranks_per_host = ranks};
    job.calls = {{.bytes = 10}};
    for (int r = 0; r < ranks; ++r) job.threads.push_back({r, {Call(0)}});
    Machine machine = SlowMachine();
    machine.mutable_same_host()->set_message_s(0.3);
    const auto rounds = static_cast<double>(1 + SentInAllReduce(0, ranks, 10).messages);
    const std::vector<double> left = Simulate(machine, job).left[0];
    EXPECT_NEAR(*std::ranges::max_element(left), rounds * (0.1 + 0.1 + 0.3), 1e-12) << ranks;
  }
}

// Six ranks on hosts of two: ranks 4 and 5 give to 0 and 1, which pair up on their host, then with
// 2 and 3, and give back. Ten bytes: 0.2 on a host, 2 between hosts.
TEST(SimulationTest, PairsOfAnAllReduceUseTheirOwnLinks) {
  SimJob job = {.ranks = 6, .ranks_per_host = 2};
  job.calls = {{.bytes = 10}};
  for (int r = 0; r < 6; ++r) job.threads.push_back({r, {Call(0)}});
  EXPECT_NEAR(Simulate(SlowMachine(), job).left[0][5], 2 + 0.2 + 2 + 2, 1e-12);
}

constexpr char kExperiment[] =
    "name: 'test' model { mlp { hidden: [512, 400, 360] } } training { batch_size: 2048 } "
    "embedding { width: 8 } parallel { virtual_shards: 16 plan: ROW_WISE } "
    "data { shape { numeric_fields: 2 categorical_fields: 3 ids_per_field: 1000000 } }";

class PredictionTest : public testing::Test {
 protected:
  void SetUp() override {
    StatusOr<Experiment> parsed = ParseExperiment(kExperiment, "test");
    ASSERT_TRUE(parsed.ok()) << parsed.status().message();
    experiment_ = *parsed;
    ResolveDefaults(&experiment_);
    info_ = AssumedData(experiment_.data().shape());
    StatusOr<ResolvedModel> model = ResolveModel(experiment_, info_);
    ASSERT_TRUE(model.ok()) << model.status().message();
    model_.emplace(std::move(*model));
  }
  StatusOr<Prediction> Predict(const Machine& machine, int ranks, int64_t rows) {
    return Predictor(&experiment_, &machine, &*model_, &info_, nullptr).Predict(ranks, 0, rows);
  }

  Experiment experiment_;
  DatasetInfo info_;
  std::optional<ResolvedModel> model_;
};

// The messages of docs/inside/design_scale.md: ids twice, rows and gradients to three ranks each,
// the scalars to two. Of the three buckets two go to all ranks and come back. The last one is a
// block, which rank 3 owns: the others send it once, and rank 3 three times.
TEST_F(PredictionTest, CountsTheMessagesOfADesignedStep) {
  const StatusOr<Prediction> found = Predict(SlowMachine(), 4, 2048);
  ASSERT_TRUE(found.ok()) << found.status().message();
  ASSERT_EQ(model_->graph.parameters().buckets().size(), 3u);
  ASSERT_EQ(model_->graph.parameters().buckets()[2].size(), 1024);
  constexpr int64_t kAlike = 4 * 3 + 2 + 2 * 2 * 3;
  EXPECT_EQ(found->rank0_sent.messages, kAlike + 1);
  EXPECT_EQ(found->all_sent.messages, 4 * kAlike + 3 * 1 + 3);
}

TEST_F(PredictionTest, PartsAddUpToTheStep) {
  for (const bool overlap : {false, true}) {
    experiment_.mutable_parallel()->set_overlap(overlap);
    const StatusOr<Prediction> found = Predict(SlowMachine(), 4, 2048);
    ASSERT_TRUE(found.ok()) << found.status().message();
    double sum = 0;
    for (const double seconds : found->part_seconds) sum += seconds;
    EXPECT_NEAR(sum, found->step_seconds, 1e-9);
    EXPECT_EQ(found->hidden_seconds > 0, overlap);
    EXPECT_GT(found->exposed_seconds, 0);
  }
}

// The rows of a batch are the same bytes, some of them beside the computation. Besides, a bit a row
// says which.
TEST_F(PredictionTest, EarlyRowsAreTheSameBytes) {
  Machine machine = SlowMachine();
  for (Link* const link : {machine.mutable_same_host(), machine.mutable_other_host()}) {
    link->set_latency_s(1e-4);
    link->set_bytes_per_s(1e6);
  }
  ParallelConfig* const parallel = experiment_.mutable_parallel();
  parallel->set_overlap(true);
  const StatusOr<Prediction> without = Predict(machine, 4, 2048);
  parallel->set_first_ids_first(true);
  const StatusOr<Prediction> with = Predict(machine, 4, 2048);
  ASSERT_TRUE(without.ok() && with.ok());
  // Ids are drawn from so many that few occur twice: no row may be left for a later message.
  EXPECT_GT(with->all_sent.messages, without->all_sent.messages + 4 * 3);
  EXPECT_LE(with->all_sent.messages, without->all_sent.messages + 2 * 4 * 3);
  const int64_t bits = 8 * (with->all_sent.bytes - without->all_sent.bytes);
  EXPECT_NEAR(static_cast<double>(bits), 2048 * 3 * 0.75, 4 * 3 * 64 + 100);
  EXPECT_EQ(bits % 64, 0);
  EXPECT_GT(with->hidden_seconds, without->hidden_seconds);
  EXPECT_LT(with->step_seconds, without->step_seconds);
  // By host no row is early.
  parallel->set_by_host(true);
  const auto predict_by_host = [&] {
    return Predictor(&experiment_, &machine, &*model_, &info_, nullptr).Predict(4, 2, 2048);
  };
  const StatusOr<Prediction> both = predict_by_host();
  parallel->set_first_ids_first(false);
  const StatusOr<Prediction> by_host = predict_by_host();
  ASSERT_TRUE(both.ok() && by_host.ok());
  EXPECT_EQ(both->all_sent.messages, by_host->all_sent.messages);
  EXPECT_EQ(both->all_sent.bytes, by_host->all_sent.bytes);
  EXPECT_EQ(both->step_seconds, by_host->step_seconds);
  parallel->set_by_host(false);
  parallel->set_first_ids_first(true);
  parallel->set_overlap(false);
  EXPECT_EQ(Predict(machine, 4, 2048)->all_sent.messages, without->all_sent.messages);
}

// Without links, one rank computes 6 FLOPs, three multiply-adds, a multiply-add of the forward
// pass.
TEST_F(PredictionTest, ProductsBoundAStepWithoutAnythingElse) {
  Machine machine = SlowMachine();
  machine.set_multiply_adds_per_s(1e6);
  machine.set_memory_bytes_per_s(1e15);
  const StatusOr<Prediction> found = Predict(machine, 1, 2048);
  ASSERT_TRUE(found.ok()) << found.status().message();
  const double expected = 3.0 * 2048 * static_cast<double>(model_->graph.multiply_adds()) / 1e6;
  EXPECT_NEAR(found->step_seconds / expected, 1, 1e-3);
  EXPECT_EQ(found->rank0_sent.messages, 0);
}

TEST_F(PredictionTest, SaysWhichLinkIsMissing) {
  Machine machine = SlowMachine();
  machine.clear_other_host();
  EXPECT_EQ(Predict(machine, 4, 64).status().message(),
            "machine 'slow': no other_host; 4 ranks need 2 hosts: expected it, or fewer ranks, or "
            "--ranks_per_host");
  machine.clear_same_host();
  EXPECT_EQ(
      Predict(machine, 2, 64).status().message(),
      "machine 'slow': no same_host; expected it for 2 ranks of a host (calibrate under mpirun "
      "-np 2), or --ranks_per_host=1");
  EXPECT_EQ(Predict(machine, 8192, 64).status().message(),
            "--ranks=8192: a prediction plays every message; expected at most 4096 with a machine");
}

// A machine has a rate for each precision, and no other is taken for it.
TEST_F(PredictionTest, EveryPrecisionHasItsRate) {
  Machine machine = SlowMachine();
  machine.set_multiply_adds_per_s(1e6);
  machine.set_tf32_multiply_adds_per_s(8e6);
  machine.set_memory_bytes_per_s(1e15);
  const double float32 = Predict(machine, 1, 2048)->step_seconds;
  experiment_.mutable_training()->set_precision(TrainingConfig::TF32);
  EXPECT_NEAR(float32 / Predict(machine, 1, 2048)->step_seconds, 8, 1e-2);
  experiment_.mutable_training()->set_precision(TrainingConfig::BFLOAT16);
  EXPECT_EQ(Predict(machine, 1, 2048).status().message(),
            "machine 'slow': no bfloat16_multiply_adds_per_s; expected it for training.precision: "
            "BFLOAT16");
}

// Where memory bounds a pass, values of 16 bits halve it. Only GPUs keep such values.
TEST_F(PredictionTest, ValuesOfBFloat16HaveHalfTheBytesOnGpus) {
  for (const bool gpus : {false, true}) {
    Machine machine = SlowMachine();
    machine.set_gpus(gpus);
    const auto forward = [&](Precision precision) {
      return WorkTimes(&machine, 1e18, &model_->graph, precision).Pass(2048, 1).forward;
    };
    const double whole = forward(Precision::kFloat32);
    EXPECT_DOUBLE_EQ(forward(Precision::kTf32), whole);
    EXPECT_DOUBLE_EQ(forward(Precision::kBFloat16), gpus ? whole / 2 : whole);
  }
}

// A calibration with one activation is none of another's kernels.
TEST_F(PredictionTest, KernelsOfOtherActivationsAreOthers) {
  const auto resolve = [&](FeedForwardConfig::Gate activation) {
    Experiment experiment = experiment_;
    TokenModelConfig* const model = experiment.mutable_model()->mutable_rank_elastor();
    model->set_tokens(2);
    model->set_token_width(8);
    model->mutable_feed_forward()->set_activation(activation);
    ResolveDefaults(&experiment);
    return ResolveModel(experiment, info_).value();
  };
  const ResolvedModel gelu = resolve(FeedForwardConfig::GELU);
  const ResolvedModel relu = resolve(FeedForwardConfig::RELU);
  Machine machine = SlowMachine();
  for (int i = 0; i < gelu.graph.size(); ++i) {
    Kernel* const kernel = machine.add_kernel();
    kernel->set_op(KernelName(gelu.graph, i));
    kernel->add_rows(512);
    kernel->add_forward_s(1);
    kernel->add_backward_s(1);
  }
  EXPECT_EQ(WorkTimes(&machine, 1e9, &gelu.graph).measured_share(), 1);
  EXPECT_LT(WorkTimes(&machine, 1e9, &relu.graph).measured_share(), 0.9);
}

// Batch norm with one leaf: all threads compute it together.
TEST_F(PredictionTest, ThreadsShareALeafOfBatchNorm) {
  experiment_.mutable_model()->mutable_mlp()->set_batch_norm(true);
  experiment_.mutable_parallel()->set_virtual_shards(1);
  StatusOr<ResolvedModel> model = ResolveModel(experiment_, info_);
  ASSERT_TRUE(model.ok()) << model.status().message();
  model_.emplace(std::move(*model));
  Machine machine = SlowMachine();
  machine.set_gpus(false);
  const auto compute = [&](int threads) {
    experiment_.mutable_parallel()->set_threads(threads);
    return Predict(machine, 1, 2048)->part_seconds[static_cast<int>(StepPart::kCompute)];
  };
  EXPECT_NEAR(compute(1) / compute(2), 2, 1e-6);
}

TEST_F(PredictionTest, RefusesTimesThatAreNotFinite) {
  constexpr char kLine[] =
      "machine 'slow': steps take more than 1e+09 seconds; expected larger rates or shorter times "
      "in its file";
  Machine machine = SlowMachine();
  machine.set_multiply_adds_per_s(1e-300);
  EXPECT_EQ(Predict(machine, 2, 64).status().message(), kLine);
  machine = SlowMachine();
  machine.mutable_same_host()->set_bytes_per_s(1e-308);
  EXPECT_EQ(Predict(machine, 2, 64).status().message(), kLine);
}

// Kernels that get faster towards the last point are not faster beyond it.
TEST_F(PredictionTest, NoiseAtTheLastPointDoesNotGrow) {
  Machine machine = SlowMachine();
  for (int i = 0; i < model_->graph.size(); ++i) {
    Kernel* const kernel = machine.add_kernel();
    kernel->set_op(KernelName(model_->graph, i));
    for (const int64_t rows : {256, 512}) {
      kernel->add_rows(rows);
      kernel->add_forward_s(1.0 / static_cast<double>(rows));
      kernel->add_backward_s(1.0 / static_cast<double>(rows));
    }
  }
  const WorkTimes work(&machine, 1e9, &model_->graph);
  EXPECT_NEAR(work.Pass(4096, 1).forward, work.Pass(512, 1).forward, 1e-12);
}

TEST_F(PredictionTest, UniformBagsHaveTheirSizes) {
  constexpr int32_t kBags[] = {2, 1, 3};
  const SparseBatch batch = UniformBatch(2, kBags, *model_);
  EXPECT_EQ(batch.offsets, (std::vector<int64_t>{0, 2, 3, 6, 8, 9, 12}));
  EXPECT_EQ(batch.ids.size(), 12u);
  EXPECT_EQ(UniformBatch(2, {}, *model_).ids.size(), 6u);
}

// All nine placements of two tables, one by one: the search finds the fastest, and no simple plan
// is it. Of 301 rows that both ranks ask for, a rank has 151 if they are dealt, and the lookup
// waits for it. The one row on both ranks saves that; all rows on both would send every key and
// gradient.
TEST_F(PredictionTest, TheSearchFindsTheFastestPlacements) {
  DataShape* const shape = experiment_.mutable_data()->mutable_shape();
  shape->Clear();
  for (const int64_t ids : {1, 300}) shape->add_ids_of_fields(ids);
  for (const int bag : {1, 40}) shape->add_bags_of_fields(bag);
  info_ = AssumedData(*shape);
  model_.emplace(ResolveModel(experiment_, info_).value());
  Machine machine = SlowMachine();
  machine.set_multiply_adds_per_s(1e15);
  machine.set_memory_bytes_per_s(1e12);
  machine.mutable_same_host()->set_latency_s(1e-4);
  machine.mutable_same_host()->set_bytes_per_s(1e6);
  const auto search = [&] {
    Predictor predictor(&experiment_, &machine, &*model_, &info_, nullptr);
    return predictor.SearchPlan(2, 2, 2048).value();
  };
  // Beside the dense gradients of the large layers the gain is below kLeastGain: AUTO stays.
  const PlanSearch kept = search();
  EXPECT_EQ(kept.prediction.step_seconds, kept.simple[ParallelConfig::AUTO]->step_seconds);
  EXPECT_EQ(kept.placements, std::vector(2, Placement::kReplicated));

  experiment_.mutable_model()->mutable_mlp()->clear_hidden();
  experiment_.mutable_model()->mutable_mlp()->add_hidden(8);
  model_.emplace(ResolveModel(experiment_, info_).value());
  const PlanSearch found = search();
  for (int i = 0; i < 9; ++i) {
    const std::vector<Placement> placements = {static_cast<Placement>(i % 3),
                                               static_cast<Placement>(i / 3)};
    Predictor predictor(&experiment_, &machine, &*model_, &info_, nullptr);
    const ShardPlan plan = MakePlan(experiment_, model_->tables, 2, placements).value();
    const double seconds = predictor.PredictPlan(plan, 2, 2048)->step_seconds;
    EXPECT_EQ(seconds <= found.prediction.step_seconds, placements == found.placements) << i;
  }
  EXPECT_EQ(found.placements, (std::vector{Placement::kReplicated, Placement::kRowWise}));
  for (const auto& simple : found.simple) {
    ASSERT_TRUE(simple);
    EXPECT_GT(simple->step_seconds, found.prediction.step_seconds);
  }
  // The larger table takes 38,400 bytes.
  experiment_.mutable_parallel()->set_memory_budget_bytes(30'000);
  const PlanSearch within = search();
  EXPECT_EQ(within.placements[1], Placement::kRowWise);
  EXPECT_FALSE(within.simple[ParallelConfig::REPLICATED]);
  EXPECT_FALSE(within.simple[ParallelConfig::TABLE_WISE]);
  // A keyed table without a limit, here with one key, is on both ranks in no case.
  experiment_.mutable_parallel()->clear_memory_budget_bytes();
  model_->tables[0].keyed = true;
  model_->tables[0].rows = 0;
  EXPECT_NE(search().placements[0], Placement::kReplicated);
}

// Messages of 0.1 s: four threads of one rank, which sends none. Its time goes with the rows, so
// the smallest batch is enough, and 16 rows a leaf fill their panels.
TEST_F(PredictionTest, AdvisesThreadsBatchAndShards) {
  Machine machine = SlowMachine();
  machine.set_gpus(false);
  machine.set_units_per_host(4);
  machine.set_memory_bytes_per_s(1e12);
  const auto advise = [&] {
    return AdviceJson(experiment_, machine, *model_, info_, nullptr, /*ranks=*/4, 0).value();
  };
  Json advice = advise();
  EXPECT_EQ(advice["ranks"].get<int>(), 1);
  EXPECT_EQ(advice["threads"].get<int>(), 4);
  EXPECT_EQ(advice["batch_size"].get<int>(), 512);
  EXPECT_EQ(advice["virtual_shards"].get<int>(), 32);
  // A rank a GPU: messages of 0.1 s want the largest batch that is tried.
  machine.set_gpus(true);
  machine.set_multiply_adds_per_s(1e11);
  advice = advise();
  EXPECT_EQ(advice["ranks"].get<int>(), 4);
  EXPECT_EQ(advice["threads"].get<int>(), 1);
  EXPECT_EQ(advice["batch_size"].get<int>(), 8192);
  EXPECT_EQ(advice["virtual_shards"].get<int>(), 16);
  // The advice has the speed of the setting among those tried that it names.
  int same = 0;
  for (const Json& tried : advice["tried"]) {
    same += tried["samples_per_s"] == advice["samples_per_s"] && tried["plan"] == advice["plan"];
  }
  EXPECT_EQ(same, 1);
}

StatusOr<Machine> ReadText(const std::string& text) {
  const std::string path = testing::TempDir() + "/machine.textproto";
  EXPECT_TRUE(WriteFileAtomically(path, text).ok());
  return ReadMachine(path);
}

TEST(MachineTest, MistakesInAFile) {
  constexpr char kRates[] = "units_per_host: 1 multiply_adds_per_s: 1 memory_bytes_per_s: 1 ";
  const auto message = [](const std::string& text) {
    const std::string found = ReadText(text).status().message();
    const std::string file = testing::TempDir() + "/machine.textproto";
    return found.starts_with(file) ? found.substr(file.size()) : found;
  };
  EXPECT_EQ(message(kRates), "");
  EXPECT_EQ(message("units_per_host: 1 multiply_adds_per_s: 1"),
            ": memory_bytes_per_s: 0; expected a positive number");
  EXPECT_EQ(message(std::string(kRates) + "same_host { latency_s: 1 }"),
            ": same_host.bytes_per_s: 0; expected a positive number");
  EXPECT_EQ(
      message(std::string(kRates) + "kernel { op: 'x' rows: 16 forward_s: 1 }"),
      ": kernel 'x': 1 rows, 1 forward_s, 0 backward_s; expected one of each for every number "
      "of rows");
  EXPECT_EQ(message(std::string(kRates) +
                    "kernel { op: 'x' rows: [16, 16] forward_s: [1, 1] backward_s: [1, 1] }"),
            ": kernel 'x': rows 16 after 16; expected ascending numbers");
  EXPECT_EQ(message(std::string(kRates) + "pieces { unique_ids { fixed_s: -5 } }"),
            ": pieces.unique_ids.fixed_s: -5; expected 0 or more");
  EXPECT_EQ(message(std::string(kRates) + "kernel { op: 'x' rows: 1 forward_s: -1 backward_s: 1 }"),
            ": kernel 1.forward_s: -1; expected 0 or more");
}

TEST(MachineTest, EveryCommittedMachineIsOne) {
  int machines = 0;
  for (const auto& entry : std::filesystem::directory_iterator("configs/machines")) {
    const StatusOr<Machine> machine = ReadMachine(entry.path());
    ASSERT_TRUE(machine.ok()) << machine.status().message();
    EXPECT_GT(machine->source_size(), 0) << entry.path();
    ++machines;
  }
  EXPECT_EQ(machines, 6);
}

}  // namespace
}  // namespace elastor
