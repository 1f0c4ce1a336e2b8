#include "embedding/cuda/device_embedding.h"

#include <algorithm>
#include <bit>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "collective/communicator.h"
#include "core/base/leaves.h"
#include "core/base/thread_pool.h"
#include "core/cuda/bfloat16.h"
#include "embedding/cuda/id_router.h"
#include "embedding/sharded_embedding.h"
#include "gtest/gtest.h"
#include "tests/core/cuda/device_arrays.h"
#include "tests/embedding/cuda/device_rank.h"
#include "tests/embedding/cuda/test_models.h"
#include "tests/embedding/embedding_batches.h"

namespace elastor::cuda {
namespace {

constexpr UpdateGate kGate = {0.5f, 1};  // a clipped step
constexpr double kLearningRate = 0.05;

struct Step {
  GlobalBatch batch;
  bool train;
};

// One row a leaf or fewer, absent leaves, ids with more than 64 occurrences and more than 32 in a
// leaf, late rows, an evaluation that sees new rows, bags of one id and of several.
std::vector<Step> Steps(const Model& model) {
  const auto batch = [&](int64_t rows, uint64_t stream, Bags bags) {
    return MakeBatch(model.tables, model.fields, rows, stream, bags);
  };
  return {{batch(37, 1, Bags::kMultiHot), true},  {batch(16, 2, Bags::kSingleId), true},
          {batch(30, 3, Bags::kMultiHot), false}, {batch(3, 4, Bags::kMultiHot), true},
          {batch(300, 5, Bags::kSingleId), true}, {batch(9, 6, Bags::kSingleId), false},
          {batch(90, 7, Bags::kMultiHot), true}};
}

// What the CPU's tables on one rank make of the steps.
struct Expected {
  std::vector<Rows> e, de;  // by step
  std::vector<double> squared_norm, squared_weights;
  RowMap rows;
  Digest digest;
};

template <typename A>
float Rounded(float value) {
  return static_cast<float>(A(value));
}

template <typename A>
void RunStepOnCpu(const Model& model, const Step& step, int64_t trained, CpuRank* cpu,
                  Expected* expected) {
  using Purpose = ShardedEmbedding<float>::Purpose;
  const auto fields = static_cast<int64_t>(model.fields.size());
  const int64_t rows = step.batch.rows();
  const int64_t features = cpu->embedding.output_features();
  CHECK(cpu->embedding.RouteIds(RankBatch(step.batch, fields, 0, 1, kLeaves), cpu->routing.get())
            .ok());
  CHECK(cpu->embedding.Lookup(step.train ? Purpose::kTrain : Purpose::kEvaluate, cpu->routing.get())
            .ok());
  std::vector<float> memory(PanelElements(rows, features));
  const Panels<float> panels{memory.data(), rows, features, PanelStride(features)};
  cpu->embedding.ReturnRows(*cpu->routing, 0, panels);
  Rows e(rows, std::vector<float>(features));
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t f = 0; f < features; ++f) e[r][f] = Rounded<A>(panels.At(r, f));
  }
  expected->e.push_back(e);
  expected->de.emplace_back();
  if (!step.train) return;
  Rows de = MakeGradients<float>(rows, features, 99 + trained);
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t f = 0; f < features; ++f) panels.At(r, f) = de[r][f] = Rounded<A>(de[r][f]);
  }
  expected->de.back() = de;
  cpu->embedding.TakeGradients(0, panels, cpu->routing.get());
  ExactSum norm, weights;
  CHECK(cpu->embedding.RouteGradients(rows, cpu->routing.get(), &norm, &weights).ok());
  expected->squared_norm.push_back(norm.Value());
  expected->squared_weights.push_back(weights.Value());
  cpu->embedding.Update(kGate.scale, kLearningRate, trained + 1, cpu->routing.get());
}

template <typename A>
Expected RunOnCpu(const Model& model, const SparseOptimizerOptions& optimizer) {
  CpuRank cpu(model, optimizer, kSeed);
  Expected expected;
  int64_t trained = 0;
  for (const Step& step : Steps(model)) {
    RunStepOnCpu<A>(model, step, trained, &cpu, &expected);
    trained += step.train;
  }
  expected.rows = RowsOf(cpu.embedding, model);
  cpu.embedding.AddToDigest(&expected.digest);
  return expected;
}

struct Layout {
  int ranks;
  PlanKind plan;
  int64_t device_bytes = 0;
  int64_t features_before = 0;  // in a row of activations
};

struct RankResult {
  std::vector<ExactSum> squared_norm, squared_weights;
  RowMap rows;
  Digest digest;
};

template <typename A>
void RunRank(const Model& model, const Expected& expected, DeviceRank* rank, RankResult* result) {
  const std::vector<Step> steps = Steps(model);
  int64_t trained = 0;
  ASSERT_TRUE(rank->RouteIds(steps[0].batch).ok());
  for (size_t s = 0; s < steps.size(); ++s) {
    ASSERT_TRUE(rank->Lookup(steps[s].train ? DeviceEmbedding::Purpose::kTrain
                                            : DeviceEmbedding::Purpose::kEvaluate)
                    .ok());
    // As a trainer does: ids of the next batch while this one computes.
    if (s + 1 < steps.size()) {
      ASSERT_TRUE(rank->RouteIds(steps[s + 1].batch).ok());
    }
    rank->Place(steps[s].batch);
    const Rows e = rank->ReturnRows<A>();
    for (int64_t row = 0; row < rank->rows(); ++row) {
      const std::vector<float>& want = expected.e[s][rank->first_row() + row];
      for (size_t f = 0; f < want.size(); ++f) {
        ASSERT_EQ(std::bit_cast<uint32_t>(e[row][f]), std::bit_cast<uint32_t>(want[f]))
            << "step " << s << " row " << row << " feature " << f;
      }
    }
    if (!steps[s].train) continue;
    const DeviceRank::Sums sums = rank->Train<A>(expected.de[s], kGate, kLearningRate, ++trained);
    result->squared_norm.push_back(sums.gradients);
    result->squared_weights.push_back(sums.weights);
  }
  result->rows = RowsOf(rank->embedding(), model);
  rank->embedding().AddToDigest(&result->digest);
}

void CheckResults(const Expected& expected, const std::vector<RankResult>& results) {
  Digest digest;
  RowMap rows;
  for (const RankResult& result : results) {
    digest.Merge(result.digest);
    for (const auto& row : result.rows) {
      EXPECT_TRUE(rows.insert(row).second) << "two ranks have a row's primary replica";
    }
  }
  for (size_t s = 0; s < expected.squared_norm.size(); ++s) {
    ExactSum norm, weights;
    for (const RankResult& result : results) {
      ASSERT_GT(result.squared_norm.size(), s);
      norm.Merge(result.squared_norm[s]);
      weights.Merge(result.squared_weights[s]);
    }
    EXPECT_EQ(norm.Value(), expected.squared_norm[s]);
    EXPECT_EQ(weights.Value(), expected.squared_weights[s]);
  }
  EXPECT_EQ(rows.size(), expected.rows.size());
  for (const auto& [key, row] : expected.rows) {
    ASSERT_EQ(rows[key], row) << "table " << key.first << " key " << key.second;
  }
  EXPECT_EQ(digest.Hex(), expected.digest.Hex());
}

template <typename A>
void RunLayout(const Model& model, const Layout& layout, const SparseOptimizerOptions& optimizer,
               const Expected& expected) {
  SCOPED_TRACE("ranks " + std::to_string(layout.ranks) + " plan " +
               std::to_string(static_cast<int>(layout.plan)));
  const ShardPlan plan = MakePlan(model, layout.plan, layout.ranks);
  std::vector<RankResult> results(layout.ranks);
  OnRanks(layout.ranks, [&](int r, Communicator* communicator) {
    DeviceRank rank({{model.tables, model.fields, optimizer, kSeed, kLeaves}, layout.device_bytes},
                    &plan, communicator);
    rank.set_features_before(layout.features_before);
    RunRank<A>(model, expected, &rank, &results[r]);
  });
  CheckResults(expected, results);
}

// Dense Adam updates all rows in every step, which is slow in the emulation.
Model WithFewerRows(Model model, OptimizerKind kind) {
  if (kind != OptimizerKind::kDenseAdam) return model;
  for (TableSpec& table : model.tables) table.rows = std::min<int64_t>(table.rows, 1501);
  return model;
}

class DeviceEmbeddingTest : public testing::TestWithParam<OptimizerKind> {
 protected:
  const Model odd_ = WithFewerRows(OddModel(), GetParam());
  const Model even_ = WithFewerRows(EvenModel(), GetParam());
};

TEST_P(DeviceEmbeddingTest, EveryLayoutEqualsTheCpu) {
  const SparseOptimizerOptions optimizer = Optimizer(GetParam(), 0.01);
  const Expected expected = RunOnCpu<float>(odd_, optimizer);
  for (const Layout& layout : {Layout{1, PlanKind::kRowWise}, Layout{3, PlanKind::kAuto},
                               Layout{2, PlanKind::kTableWise}, Layout{4, PlanKind::kRowWise}}) {
    // All rows in every step: slow in the emulation.
    if (GetParam() == OptimizerKind::kDenseAdam && layout.ranks % 2 == 0) continue;
    RunLayout<float>(odd_, layout, optimizer, expected);
    if (HasFatalFailure()) return;
  }
}

TEST_P(DeviceEmbeddingTest, WithoutL2AndFourElementsAtATime) {
  const SparseOptimizerOptions optimizer = Optimizer(GetParam(), 0);
  const Expected expected = RunOnCpu<float>(even_, optimizer);
  for (const Layout& layout : {Layout{1, PlanKind::kRowWise}, Layout{1, PlanKind::kRowWise, 0, 13},
                               Layout{3, PlanKind::kReplicated}}) {
    RunLayout<float>(even_, layout, optimizer, expected);
    if (HasFatalFailure()) return;
  }
}

TEST_P(DeviceEmbeddingTest, RowsInTheHostsMemory) {
  // A line for one row in ten at most; the small tables fit.
  const SparseOptimizerOptions optimizer = Optimizer(GetParam(), 0.01);
  const Expected expected = RunOnCpu<float>(even_, optimizer);
  const int64_t few_lines = even_.tables[0].rows * 12;
  for (const int64_t bytes : {int64_t{100}, few_lines}) {
    RunLayout<float>(even_, {1, PlanKind::kRowWise, bytes}, optimizer, expected);
    RunLayout<float>(even_, {2, PlanKind::kRowWise, bytes / 2}, optimizer, expected);
    if (HasFatalFailure()) return;
  }
}

std::string OptimizerName(const testing::TestParamInfo<OptimizerKind>& info) {
  constexpr const char* kNames[] = {"Sgd", "Adagrad", "RowWiseAdagrad", "LazyAdam", "DenseAdam"};
  return kNames[static_cast<int>(info.param)];
}

INSTANTIATE_TEST_SUITE_P(Optimizers, DeviceEmbeddingTest,
                         testing::Values(OptimizerKind::kSgd, OptimizerKind::kAdagrad,
                                         OptimizerKind::kRowWiseAdagrad, OptimizerKind::kLazyAdam,
                                         OptimizerKind::kDenseAdam),
                         OptimizerName);

TEST(DeviceEmbedding, ActivationsInBFloat16) {
  const SparseOptimizerOptions optimizer = Optimizer(OptimizerKind::kRowWiseAdagrad, 0.01);
  for (const Model& model : {OddModel(), EvenModel()}) {
    const Expected expected = RunOnCpu<BFloat16>(model, optimizer);
    RunLayout<BFloat16>(model, {1, PlanKind::kRowWise}, optimizer, expected);
    RunLayout<BFloat16>(model, {1, PlanKind::kRowWise, 0, 2}, optimizer, expected);
    RunLayout<BFloat16>(model, {2, PlanKind::kRowWise}, optimizer, expected);
  }
}

// The host runs ahead of the device by whole steps, the routing of a batch by one.
TEST(DeviceEmbedding, StepsThatNobodyWaitsFor) {
  const Model model = OddModel();
  const SparseOptimizerOptions optimizer = Optimizer(OptimizerKind::kAdagrad, 0.01);
  const Expected expected = RunOnCpu<float>(model, optimizer);
  const ShardPlan plan = MakePlan(model, PlanKind::kRowWise, 1);
  const auto communicator = MakeSelfCommunicator();
  DeviceRank rank({{model.tables, model.fields, optimizer, kSeed, kLeaves}, 0}, &plan,
                  communicator.get());
  const std::vector<Step> all = Steps(model);
  std::vector<GlobalBatch> batches;
  std::vector<DeviceRank::StepMemory<float>> memory;
  for (size_t s = 0; s < all.size(); ++s) {
    if (!all[s].train) continue;
    batches.push_back(all[s].batch);
    rank.Place(all[s].batch);
    memory.push_back(rank.Prepare<float>(expected.de[s], kGate));
  }
  ASSERT_TRUE(rank.RouteIds(batches[0]).ok());
  for (size_t s = 0; s < batches.size(); ++s) {
    ASSERT_TRUE(rank.Lookup(DeviceEmbedding::Purpose::kTrain).ok());
    if (s + 1 < batches.size()) {
      ASSERT_TRUE(rank.RouteIds(batches[s + 1]).ok());
    }
    rank.Enqueue(memory[s], kLearningRate, static_cast<int64_t>(s) + 1);
  }
  for (size_t s = 0; s < batches.size(); ++s) {
    const DeviceRank::Sums sums = rank.SumsOf(memory[s]);
    EXPECT_EQ(sums.gradients.Value(), expected.squared_norm[s]);
    EXPECT_EQ(sums.weights.Value(), expected.squared_weights[s]);
  }
  EXPECT_EQ(RowsOf(rank.embedding(), model), expected.rows);
}

TEST(DeviceEmbedding, RowsInTheHostsMemoryWithOddWidths) {
  const SparseOptimizerOptions optimizer = Optimizer(OptimizerKind::kLazyAdam, 0);
  const Expected expected = RunOnCpu<float>(OddModel(), optimizer);
  RunLayout<float>(OddModel(), {1, PlanKind::kRowWise, 50'000}, optimizer, expected);
}

TEST(DeviceEmbedding, BadIdIsReportedOnEveryRank) {
  const Model model = OddModel();
  for (const Bags bags : {Bags::kMultiHot, Bags::kSingleId}) {
    // The last two have low halves of 0 and of what stands for no id.
    for (int64_t bad : {int64_t{37}, int64_t{-1}, int64_t{1} << 32, (int64_t{2} << 32) - 1}) {
      const ShardPlan plan = MakePlan(model, PlanKind::kRowWise, 3);
      const GlobalBatch good = MakeBatch(model.tables, model.fields, 16, 1, bags);
      GlobalBatch batch = good;
      // The CPU looks at rows first where bags are long, at fields first where they are not.
      if (bags == Bags::kMultiHot) {
        batch.bags[12][1] = {5, bad};
        batch.bags[13][0] = {5000};
      } else {
        batch.bags[13][1] = {bad};
        batch.bags[12][3] = {38};
      }
      OnRanks(3, [&](int, Communicator* communicator) {
        DeviceRank rank(
            {{model.tables, model.fields, Optimizer(OptimizerKind::kSgd, 0), kSeed, kLeaves}, 0},
            &plan, communicator);
        const Status status = rank.RouteIds(batch);
        EXPECT_EQ(status.code(), StatusCode::kUser);
        EXPECT_EQ(status.message(), "field 'b': found id " + std::to_string(bad) +
                                        ", expected 0 <= id < 37 (rows of table 'shared')");
        EXPECT_TRUE(rank.RouteIds(good).ok());
        EXPECT_TRUE(rank.Lookup(DeviceEmbedding::Purpose::kTrain).ok());
      });
    }
  }
}

// Ids and keys have 32 bits each where these suffice: both, ids alone, none; ids as they are, and
// as they were staged.
TEST(DeviceEmbedding, KeysOfTablesOfManyRows) {
  using Keys = std::vector<std::pair<int, int64_t>>;  // table, id
  constexpr int64_t kJobLeaves = 3;
  for (const int64_t rows : {int64_t{100}, int64_t{1} << 31, int64_t{1} << 40}) {
    const std::vector<TableSpec> tables = {{"few", 3, 1}, {"many", rows, 1}};
    const EmbeddingLayout layout(tables, {{"a", 0}, {"b", 1}});
    const Keys all = {{0, 0}, {0, 1}, {0, 2}, {1, 7}, {1, 8}, {1, 9}, {1, rows - 1}};
    for (const int ranks : {1, 3}) {
      SCOPED_TRACE(testing::Message() << rows << " rows, " << ranks << " ranks");
      const StatusOr<ShardPlan> plan =
          ShardPlan::Make(PlanKind::kRowWise, tables, std::vector<int64_t>{1, 1}, ranks, 0);
      ASSERT_TRUE(plan.ok());
      OnRanks(ranks, [&](int rank, Communicator* communicator) {
        Stream stream;
        const auto device = MakeHostDeviceCommunicator(communicator);
        TableView view;
        view.width = view.stride = 1;
        const Buffer<TableView> views = Upload(stream, std::vector<TableView>(2, view));
        IdRouter router(&layout, &plan.value(), kJobLeaves, views.data(), device.get(), &stream);
        const Range owned = LeavesOfRank(rank, ranks, kJobLeaves);
        SparseBatch batch;
        batch.rows = 2 * owned.size();
        batch.fields = 2;
        batch.first_leaf = owned.begin;
        for (int64_t leaf = owned.begin; leaf < owned.end; ++leaf) {
          batch.leaf_offsets.push_back(2 * (leaf - owned.begin));
          for (const int64_t id : {leaf, rows - 1, int64_t{0}, 7 + leaf}) batch.ids.push_back(id);
        }
        batch.leaf_offsets.push_back(batch.rows);
        for (const bool staged : {false, true}) {
          if (staged) {
            auto ids = std::make_unique<PinnedIds>();
            router.Stage(batch, ids.get());
            batch.staged = std::move(ids);
            std::fill(batch.ids.begin(), batch.ids.end(), 0);  // nobody reads them
          }
          IdRoute route(&stream);
          ASSERT_TRUE(router.Route(batch, &route).ok());
          int64_t count = 0;
          Copy(stream, &count, route.owned.count, 1);
          stream.Synchronize();
          std::vector<uint64_t> keys(count);
          Copy(stream, keys.data(), route.owned.keys, count);
          stream.Synchronize();
          Keys found;
          for (const uint64_t key : keys) {
            found.emplace_back(route.owned.format.Table(key), route.owned.format.Id(key));
          }
          Keys expected;
          for (const auto& [table, id] : all) {
            const bool own = plan.value().Owner(table, id % kPartitions) == rank;
            if (own) expected.emplace_back(table, id);
          }
          EXPECT_EQ(found, expected) << (staged ? "staged" : "not staged");
        }
      });
    }
  }
}

TEST(DeviceEmbedding, ClosedGateChangesNothing) {
  const Model model = EvenModel();
  for (const auto kind : {OptimizerKind::kRowWiseAdagrad, OptimizerKind::kDenseAdam}) {
    const ShardPlan plan = MakePlan(model, PlanKind::kRowWise, 1);
    const auto communicator = MakeSelfCommunicator();
    DeviceRank rank({{model.tables, model.fields, Optimizer(kind, 0.01), kSeed, kLeaves}, 0}, &plan,
                    communicator.get());
    const GlobalBatch batch = MakeBatch(model.tables, model.fields, 16, 1, Bags::kSingleId);
    ASSERT_TRUE(rank.RouteIds(batch).ok());
    ASSERT_TRUE(rank.Lookup(DeviceEmbedding::Purpose::kTrain).ok());
    rank.Place(batch);
    const RowMap before = RowsOf(rank.embedding(), model);
    const Rows de = MakeGradients<float>(16, rank.embedding().output_features(), 3);
    rank.Train<float>(de, {1, 0}, kLearningRate, 1);
    EXPECT_EQ(RowsOf(rank.embedding(), model), before);
  }
}

TEST(DeviceEmbedding, ModelWithoutCategoricalFields) {
  const ShardPlan plan = MakePlan({}, PlanKind::kAuto, 2);
  OnRanks(2, [&](int, Communicator* communicator) {
    DeviceRank rank({{{}, {}, {}, kSeed, kLeaves}, 0}, &plan, communicator);
    const GlobalBatch batch = MakeBatch({}, {}, 8, 1, Bags::kSingleId);
    ASSERT_TRUE(rank.RouteIds(batch).ok());
    ASSERT_TRUE(rank.Lookup(DeviceEmbedding::Purpose::kTrain).ok());
    rank.Place(batch);
    const DeviceRank::Sums sums = rank.Train<float>(Rows(8), kGate, kLearningRate, 1);
    EXPECT_EQ(sums.gradients.Value(), 0);
  });
}

}  // namespace
}  // namespace elastor::cuda
