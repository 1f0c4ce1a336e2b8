#include "embedding/sharded_embedding.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <type_traits>
#include <vector>

#include "collective/communicator.h"
#include "collective/rank_hosts.h"
#include "core/base/floating_point.h"
#include "core/base/leaves.h"
#include "core/base/log.h"
#include "core/base/thread_pool.h"
#include "embedding/admission.h"
#include "embedding/row_tier.h"
#include "embedding/wire_format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/embedding/embedding_batches.h"
#include "tests/embedding/embedding_reference.h"

namespace elastor {
namespace {

constexpr uint64_t kSeed = 20260;
constexpr double kScale = 0.5;  // power of two: a clipped step
constexpr double kLearningRate = 0.05;

std::vector<TableSpec> Tables(bool keyed = false) {
  std::vector<TableSpec> tables = {{"many", 5000, 20, 0.1},
                                   {"shared", 37, 3, 0.1},
                                   {"one_row", 1, 8, 0.1},
                                   {"long", 9001, 5, 0.1},
                                   {"unused", 3, 4, 0.1}};
  for (TableSpec& table : tables) table.keyed = keyed;
  return tables;
}

std::vector<FieldSpec> Fields() {
  return {{"a", 0, Pooling::kSum},  {"b", 1, Pooling::kSum}, {"c", 3, Pooling::kMean},
          {"d", 1, Pooling::kMean}, {"e", 2, Pooling::kSum}, {"f", 3, Pooling::kSum}};
}

GlobalBatch MakeBatch(int64_t rows, uint64_t stream, Bags bags) {
  return MakeBatch(Tables(), Fields(), rows, stream, bags);
}

SparseBatch RankBatch(const GlobalBatch& batch, int rank, int ranks, int64_t leaves) {
  return RankBatch(batch, static_cast<int64_t>(Fields().size()), rank, ranks, leaves);
}

struct Step {
  GlobalBatch batch;
  bool train;
};

// One row a leaf or fewer, absent leaves, more than 32 occurrences in a leaf, late rows, an
// evaluation that sees new rows, bags of one id and of several.
std::vector<Step> Steps() {
  return {{MakeBatch(37, 1, Bags::kMultiHot), true},  {MakeBatch(16, 2, Bags::kSingleId), true},
          {MakeBatch(30, 3, Bags::kMultiHot), false}, {MakeBatch(3, 4, Bags::kMultiHot), true},
          {MakeBatch(500, 5, Bags::kSingleId), true}, {MakeBatch(9, 6, Bags::kSingleId), false},
          {MakeBatch(411, 7, Bags::kMultiHot), true}};
}

template <typename T>
struct Expected {
  std::vector<std::vector<std::vector<T>>> e;   // [step][row][feature]
  std::vector<std::vector<std::vector<T>>> de;  // of training steps
  std::vector<double> squared_norm, squared_weights;
  std::unique_ptr<EmbeddingReference<T>> reference;
};

template <typename T>
Expected<T> RunReference(const SparseOptimizerOptions& optimizer, int64_t leaves,
                         WireFormats wire = {}) {
  SetCanonicalFloatingPoint();
  Expected<T> expected;
  expected.reference =
      std::make_unique<EmbeddingReference<T>>(Tables(), Fields(), optimizer, kSeed, leaves, wire);
  int64_t trained = 0;
  for (const Step& step : Steps()) {
    expected.e.push_back(expected.reference->Pool(step.batch, step.train));
    expected.de.emplace_back();
    if (!step.train) continue;
    const auto features = static_cast<int64_t>(expected.e.back()[0].size());
    expected.de.back() = MakeGradients<T>(step.batch.rows(), features, 99 + trained);
    expected.reference->TakeGradients(step.batch, expected.de.back());
    expected.squared_norm.push_back(expected.reference->squared_norm().Value());
    expected.squared_weights.push_back(expected.reference->squared_weights().Value());
    expected.reference->Update(kScale, kLearningRate, ++trained);
  }
  return expected;
}

template <typename T>
bool SameBits(T a, T b) {
  using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  return std::bit_cast<Bits>(a) == std::bit_cast<Bits>(b);
}

// What one rank contributes at the end.
template <typename T>
struct RankResult {
  std::vector<ExactSum> squared_norm, squared_weights;
  Digest digest;
  std::map<std::pair<int, int64_t>, std::vector<T>> rows;  // weights, then slots
};

struct Layout {
  int ranks;
  PlanKind plan;
  int threads;
  int64_t leaves;
  bool keyed = false;
  WireFormats wire = {};
  bool early = false;                // the next batch's rows are looked up early
  std::vector<uint64_t> hosts = {};  // of the ranks, if vectors go by host
};

std::string PrintLayout(const Layout& layout) {
  return "ranks " + std::to_string(layout.ranks) + " plan " +
         std::to_string(static_cast<int>(layout.plan)) + " threads " +
         std::to_string(layout.threads) + " leaves " + std::to_string(layout.leaves) +
         (layout.keyed ? " keyed" : "") + (layout.early ? " early" : "") + " hosts " +
         testing::PrintToString(layout.hosts);
}

ShardPlan MakePlan(PlanKind kind, int ranks) {
  const std::vector<TableSpec> tables = Tables();
  std::vector<int64_t> bytes;
  for (const TableSpec& table : tables) bytes.push_back(table.width * 4);
  StatusOr<ShardPlan> plan = ShardPlan::Make(kind, tables, bytes, ranks, 0);
  CHECK(plan.ok());
  return *plan;
}

template <typename T>
class Rank {
 public:
  Rank(const Layout& layout, const SparseOptimizerOptions& optimizer, const ShardPlan* plan,
       Communicator* communicator)
      : layout_(layout),
        rank_(communicator->rank()),
        pool_(layout.threads),
        embedding_(
            {.tables = Tables(layout.keyed),
             .fields = Fields(),
             .optimizer = optimizer,
             .seed = kSeed,
             .leaves = layout.leaves,
             .wire = layout.wire,
             .hosts = layout.hosts.empty() ? std::nullopt : std::optional(RankHosts(layout.hosts))},
            plan, communicator, &pool_),
        routing_(embedding_.MakeRouting()) {}

  void Run(const Expected<T>& expected, RankResult<T>* result) {
    const std::vector<Step> steps = Steps();
    int64_t trained = 0;
    for (size_t s = 0; s < steps.size(); ++s) {
      const SparseBatch batch = RankBatch(steps[s].batch, rank_, layout_.ranks, layout_.leaves);
      ASSERT_TRUE(embedding_.RouteIds(batch, routing_.get()).ok());
      const auto purpose = steps[s].train ? ShardedEmbedding<T>::Purpose::kTrain
                                          : ShardedEmbedding<T>::Purpose::kEvaluate;
      ASSERT_TRUE(embedding_.Lookup(purpose, routing_.get()).ok());
      VisitLeaves(steps[s], batch, expected.e[s], expected.de[s]);
      if (!steps[s].train) continue;
      ExactSum norm, weights;
      ASSERT_TRUE(
          embedding_.RouteGradients(steps[s].batch.rows(), routing_.get(), &norm, &weights).ok());
      result->squared_norm.push_back(norm);
      result->squared_weights.push_back(weights);
      embedding_.Update(kScale, kLearningRate, ++trained, routing_.get());
    }
    embedding_.AddToDigest(&result->digest);
    embedding_.ForEachRow([&](int table, int64_t key, const T* weights, const T* slots) {
      std::vector<T>& row = result->rows[{table, key}];
      EXPECT_TRUE(row.empty()) << "visited twice";
      row.assign(weights, slots + slot_elements(table));
    });
  }

  void set_slot_kind(OptimizerKind kind) { kind_ = kind; }

 private:
  int64_t slot_elements(int table) const { return SlotElements(kind_, Tables()[table].width); }

  void VisitLeaves(const Step& step, const SparseBatch& batch, const std::vector<std::vector<T>>& e,
                   const std::vector<std::vector<T>>& de) {
    const int64_t features = embedding_.output_features();
    for (size_t i = 0; i + 1 < batch.leaf_offsets.size(); ++i) {
      const int64_t leaf = batch.first_leaf + static_cast<int64_t>(i);
      const int64_t begin = batch.leaf_offsets[i];
      const int64_t rows = batch.leaf_offsets[i + 1] - begin;
      const int64_t global = RowsOfLeaf(leaf, layout_.leaves, step.batch.rows()).begin;
      std::vector<T> memory(PanelElements(rows, features));
      const Panels<T> panels{memory.data(), rows, features, PanelStride(features)};
      embedding_.ReturnRows(*routing_, begin, panels);
      for (int64_t r = 0; r < rows; ++r) {
        for (int64_t f = 0; f < features; ++f) {
          ASSERT_TRUE(SameBits(panels.At(r, f), e[global + r][f])) << "row " << r << " " << f;
          if (step.train) panels.At(r, f) = de[global + r][f];
        }
      }
      if (step.train) embedding_.TakeGradients(begin, panels, routing_.get());
    }
  }

  Layout layout_;
  int rank_;
  OptimizerKind kind_ = OptimizerKind::kSgd;
  ThreadPool pool_;
  ShardedEmbedding<T> embedding_;
  std::unique_ptr<typename ShardedEmbedding<T>::Routing> routing_;
};

template <typename T>
void CheckResults(const Expected<T>& expected, const std::vector<RankResult<T>>& results) {
  Digest digest;
  size_t rows = 0;
  std::vector<ExactSum> norm(expected.squared_norm.size()), weights(norm.size());
  for (const RankResult<T>& result : results) {
    digest.Merge(result.digest);
    rows += result.rows.size();
    ASSERT_EQ(result.squared_norm.size(), norm.size());
    for (size_t s = 0; s < norm.size(); ++s) {
      norm[s].Merge(result.squared_norm[s]);
      weights[s].Merge(result.squared_weights[s]);
    }
    for (const auto& [key, row] : result.rows) {
      const auto& want = expected.reference->rows().at(key);
      std::vector<T> record = want.weights;
      record.insert(record.end(), want.slots.begin(), want.slots.end());
      ASSERT_EQ(row, record) << "table " << key.first << " key " << key.second;
    }
  }
  for (size_t s = 0; s < norm.size(); ++s) {
    EXPECT_EQ(norm[s].Value(), expected.squared_norm[s]);
    EXPECT_EQ(weights[s].Value(), expected.squared_weights[s]);
  }
  EXPECT_EQ(rows, expected.reference->rows().size());
  EXPECT_EQ(digest.Hex(), expected.reference->StateDigest().Hex());
}

template <typename T>
void RunLayout(const Layout& layout, const SparseOptimizerOptions& optimizer,
               const Expected<T>& expected) {
  SCOPED_TRACE(PrintLayout(layout));
  const ShardPlan plan = MakePlan(layout.plan, layout.ranks);
  auto communicators = MakeThreadCommunicators(layout.ranks, {});
  std::vector<RankResult<T>> results(layout.ranks);
  std::vector<std::thread> threads;
  for (int r = 0; r < layout.ranks; ++r) {
    threads.emplace_back([&, r] {
      Rank<T> rank(layout, optimizer, &plan, communicators[r].get());
      rank.set_slot_kind(optimizer.rule.kind);
      rank.Run(expected, &results[r]);
    });
  }
  for (std::thread& thread : threads) thread.join();
  CheckResults(expected, results);
}

SparseOptimizerOptions Optimizer(OptimizerKind kind, double l2) {
  SparseOptimizerOptions options;
  options.rule.kind = kind;
  options.l2 = l2;
  options.rule.initial_accumulator = 0.1;
  return options;
}

class ShardedEmbeddingTest : public testing::TestWithParam<OptimizerKind> {};

// Leaves take turns, so that among the optimizers every pair of ranks and plan occurs with both.
TEST_P(ShardedEmbeddingTest, EveryLayoutEqualsTheReference) {
  const SparseOptimizerOptions optimizer = Optimizer(GetParam(), 0.01);
  const Expected<float> expected[] = {RunReference<float>(optimizer, 8),
                                      RunReference<float>(optimizer, 16)};
  int turn = static_cast<int>(GetParam());
  for (int ranks : {1, 2, 3, 4, 7, 8}) {
    for (PlanKind plan :
         {PlanKind::kRowWise, PlanKind::kTableWise, PlanKind::kReplicated, PlanKind::kAuto}) {
      const int threads = 1 + (ranks + static_cast<int>(plan)) % 2;
      const int of_16 = (turn + static_cast<int>(plan) / 2) % 2;
      RunLayout<float>({ranks, plan, threads, of_16 == 1 ? 16 : 8}, optimizer, expected[of_16]);
      if (HasFatalFailure()) return;
    }
    if (ranks % 2 == 0) ++turn;
  }
}

// Keyed tables begin with the same rows as arrays.
TEST_P(ShardedEmbeddingTest, KeyedTablesEqualTheReference) {
  if (GetParam() == OptimizerKind::kDenseAdam) GTEST_SKIP() << "touches rows that never occurred";
  const SparseOptimizerOptions optimizer = Optimizer(GetParam(), 0.01);
  const Expected<float> expected = RunReference<float>(optimizer, 8);
  for (const auto& [ranks, plan, threads] :
       {std::tuple{1, PlanKind::kRowWise, 2}, std::tuple{3, PlanKind::kReplicated, 1},
        std::tuple{4, PlanKind::kRowWise, 2}, std::tuple{7, PlanKind::kTableWise, 1}}) {
    RunLayout<float>({ranks, plan, threads, 8, true}, optimizer, expected);
  }
}

// Hosts in order, in turns, of different sizes, and with ranks of others between theirs. Every
// other layout has vectors in 16 bits, other ones for each optimizer.
TEST_P(ShardedEmbeddingTest, VectorsThatGoByHostEqualTheReference) {
  using Hosts = std::vector<uint64_t>;
  const SparseOptimizerOptions optimizer = Optimizer(GetParam(), 0.01);
  const WireFormats wires[] = {{}, {WireFormat::kFloat16, WireFormat::kFloat16}};
  const Expected<float> expected[] = {RunReference<float>(optimizer, 16, wires[0]),
                                      RunReference<float>(optimizer, 16, wires[1])};
  int turn = static_cast<int>(GetParam());
  for (const auto& [hosts, plan, threads, keyed] :
       {std::tuple{Hosts{0, 0, 1}, PlanKind::kRowWise, 2, false},
        std::tuple{Hosts{7, 3, 7, 3}, PlanKind::kRowWise, 1, true},
        std::tuple{Hosts{0, 0, 1, 1}, PlanKind::kAuto, 1, false},
        std::tuple{Hosts{1, 0, 0, 1, 2}, PlanKind::kReplicated, 1, false},
        std::tuple{Hosts{0, 1, 1, 1, 0, 0, 0}, PlanKind::kTableWise, 2, false},
        std::tuple{Hosts{0, 0, 0, 0, 0, 1, 1, 2}, PlanKind::kRowWise, 1, false}}) {
    const int wire = turn++ % 2;
    if (keyed && GetParam() == OptimizerKind::kDenseAdam) continue;
    RunLayout<float>({static_cast<int>(hosts.size()), plan, threads, 16, keyed, wires[wire],
                      /*early=*/false, hosts},
                     optimizer, expected[wire]);
    if (HasFatalFailure()) return;
  }
}

TEST_P(ShardedEmbeddingTest, WireFormatsEqualTheReferenceOnAnyLayout) {
  constexpr WireFormat kFloat32 = WireFormat::kFloat32, kFloat16 = WireFormat::kFloat16,
                       kBFloat16 = WireFormat::kBFloat16;
  for (const WireFormats wire : {WireFormats{kFloat16, kBFloat16}, WireFormats{kBFloat16, kFloat16},
                                 WireFormats{kFloat32, kFloat16}}) {
    const SparseOptimizerOptions optimizer =
        Optimizer(GetParam(), wire.rows == kFloat32 ? 0 : 0.01);
    const Expected<float> expected = RunReference<float>(optimizer, 8, wire);
    for (const auto& [ranks, plan, threads, keyed] :
         {std::tuple{1, PlanKind::kRowWise, 2, false}, std::tuple{1, PlanKind::kRowWise, 1, true},
          std::tuple{3, PlanKind::kReplicated, 1, false}, std::tuple{4, PlanKind::kAuto, 2, false},
          std::tuple{5, PlanKind::kRowWise, 1, true}, std::tuple{7, PlanKind::kTableWise, 1, false},
          std::tuple{8, PlanKind::kRowWise, 1, false}}) {
      if (keyed && GetParam() == OptimizerKind::kDenseAdam) continue;
      RunLayout<float>({ranks, plan, threads, 8, keyed, wire}, optimizer, expected);
      if (HasFatalFailure()) return;
    }
  }
}

// Every 16-bit number comes back, and what lies between two of them goes where the definition says.
TEST(WireFormat, RoundsAsItsDefinitionSays) {
  SetCanonicalFloatingPoint();
  const auto through = [](WireFormat format, std::vector<float> vector) {
    std::vector<uint16_t> words(WireWords(format, vector.size(), 1));
    WriteWire(format, vector.data(), vector.size(), words.data());
    std::vector<float> read(vector.size());
    ReadWire(format, words.data(), vector.size(), read.data());
    RoundToWire(format, vector.size(), vector.data());
    for (size_t i = 0; i < read.size(); ++i) EXPECT_TRUE(SameBits(read[i], vector[i]));
    RoundToWire(format, vector.size(), vector.data());
    for (size_t i = 0; i < read.size(); ++i) {
      const bool same = SameBits(read[i], vector[i]) || !std::isfinite(read[0]);
      EXPECT_TRUE(same) << read[i] << " travels again: " << vector[i];
    }
    return read;
  };
  const auto check = [&](const std::vector<float>& vector) {
    for (const WireFormat format : {WireFormat::kFloat16, WireFormat::kBFloat16}) {
      const std::vector<float> read = through(format, vector);
      const std::vector<float> want = Travelled(format, vector);
      for (size_t i = 0; i < vector.size(); ++i) {
        ASSERT_TRUE(SameBits(read[i], want[i] + 0.0f))
            << vector[i] << " of " << vector.size() << ": " << read[i] << ", not " << want[i];
      }
    }
  };
  // Neighbours of the middle between two halves, at several scales of the vector.
  for (const float scale : {1e-30f, 1e-9f, 0.01f, 1.0f, 1e20f}) {
    for (uint32_t mantissa = 0; mantissa < 1u << 12; ++mantissa) {
      std::vector<float> vector{scale};
      for (const int below : {0, 1, 9, 13, 14, 15, 23, 24, 25, 26}) {
        const uint32_t one = std::bit_cast<uint32_t>(std::ldexp(1.0f, -below)) | mantissa << 11;
        for (const uint32_t last : {0u, 1u, 0x7ffu}) {
          const float value = std::bit_cast<float>(one | last) * scale;
          vector.push_back(mantissa % 2 == 0 ? value : -value);
        }
      }
      check(vector);
      if (HasFatalFailure()) return;
    }
  }
  check({1.9999f, std::ldexp(2047.0f, -24)});  // the largest number becomes 2
  check({0.0f, 0.0f});
  check({1.2e-38f, 2e-38f, -3e-38f});
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const WireFormat format : {WireFormat::kFloat16, WireFormat::kBFloat16}) {
    EXPECT_EQ(through(format, {kInfinity, -kInfinity, 1.0f}),
              (std::vector<float>{kInfinity, -kInfinity, 1.0f}));
    EXPECT_TRUE(std::isnan(through(format, {std::nanf("7"), 1.0f})[0]));
    EXPECT_EQ(through(format, {std::numeric_limits<float>::max()})[0], kInfinity)
        << "rounds up to 2^128";
    EXPECT_TRUE(SameBits(through(format, {-0.0f})[0], 0.0f));
  }
}

TEST_P(ShardedEmbeddingTest, DoubleWithoutL2) {
  const SparseOptimizerOptions optimizer = Optimizer(GetParam(), 0);
  const Expected<double> expected = RunReference<double>(optimizer, 8);
  for (int ranks : {1, 3}) {
    for (int threads : {1, 2}) {
      RunLayout<double>({ranks, PlanKind::kAuto, threads, 8}, optimizer, expected);
    }
  }
}

std::string OptimizerName(const testing::TestParamInfo<OptimizerKind>& info) {
  constexpr const char* kNames[] = {"Sgd", "Adagrad", "RowWiseAdagrad", "LazyAdam", "DenseAdam"};
  return kNames[static_cast<int>(info.param)];
}

INSTANTIATE_TEST_SUITE_P(Optimizers, ShardedEmbeddingTest,
                         testing::Values(OptimizerKind::kSgd, OptimizerKind::kAdagrad,
                                         OptimizerKind::kRowWiseAdagrad, OptimizerKind::kLazyAdam,
                                         OptimizerKind::kDenseAdam),
                         OptimizerName);

TEST(ShardedEmbedding, BadIdIsReportedOnEveryRank) {
  for (int64_t bad : {int64_t{37}, int64_t{-1}}) {
    std::optional<RankHosts> hosts;
    if (bad == -1) hosts.emplace(std::vector<uint64_t>{0, 0, 1});
    const ShardPlan plan = MakePlan(PlanKind::kRowWise, 3);
    auto communicators = MakeThreadCommunicators(3, {});
    std::vector<std::thread> threads;
    std::vector<std::string> messages(3), second(3);
    GlobalBatch batch = MakeBatch(16, 1, Bags::kMultiHot);
    batch.bags[12][1] = {5, bad};
    for (int r = 0; r < 3; ++r) {
      threads.emplace_back([&, r] {
        ThreadPool pool(1);
        ShardedEmbedding<float> embedding({.tables = Tables(),
                                           .fields = Fields(),
                                           .optimizer = Optimizer(OptimizerKind::kSgd, 0),
                                           .seed = kSeed,
                                           .leaves = 8,
                                           .hosts = hosts},
                                          &plan, communicators[r].get(), &pool);
        auto routing = embedding.MakeRouting();
        const Status status = embedding.RouteIds(RankBatch(batch, r, 3, 8), routing.get());
        EXPECT_EQ(status.code(), StatusCode::kUser);
        messages[r] = status.message();
        const GlobalBatch good = MakeBatch(16, 1, Bags::kSingleId);
        EXPECT_TRUE(embedding.RouteIds(RankBatch(good, r, 3, 8), routing.get()).ok());
        EXPECT_TRUE(embedding.Lookup(ShardedEmbedding<float>::Purpose::kTrain, routing.get()).ok());
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (const std::string& message : messages) {
      EXPECT_EQ(message, "field 'b': found id " + std::to_string(bad) +
                             ", expected 0 <= id < 37 (rows of table 'shared')");
    }
  }
}

TEST(ShardedEmbedding, SingleIdBagsMayComeWithOffsets) {
  // The same ids with and without offsets lead to the same state.
  Digest digests[2];
  for (bool with_offsets : {false, true}) {
    const ShardPlan plan = MakePlan(PlanKind::kRowWise, 1);
    auto communicator = MakeSelfCommunicator();
    ThreadPool pool(1);
    ShardedEmbedding<float> embedding(
        {Tables(), Fields(), Optimizer(OptimizerKind::kLazyAdam, 0), kSeed, 8}, &plan,
        communicator.get(), &pool);
    auto routing = embedding.MakeRouting();
    SparseBatch batch = RankBatch(MakeBatch(100, 3, Bags::kSingleId), 0, 1, 8);
    if (with_offsets) {
      for (size_t i = 0; i <= batch.ids.size(); ++i) batch.offsets.push_back(i);
    }
    ASSERT_TRUE(embedding.RouteIds(batch, routing.get()).ok());
    ASSERT_TRUE(embedding.Lookup(ShardedEmbedding<float>::Purpose::kTrain, routing.get()).ok());
    const int64_t features = embedding.output_features();
    std::vector<float> memory(PanelElements(100, features));
    const Panels<float> panels{memory.data(), 100, features, PanelStride(features)};
    embedding.ReturnRows(*routing, 0, panels);
    embedding.TakeGradients(0, panels, routing.get());
    ExactSum norm, weights;
    ASSERT_TRUE(embedding.RouteGradients(100, routing.get(), &norm, &weights).ok());
    EXPECT_GT(norm.Value(), 0);
    EXPECT_EQ(weights.Value(), 0);  // only counted with L2
    embedding.Update(1, 0.1, 1, routing.get());
    embedding.AddToDigest(&digests[with_offsets]);
  }
  EXPECT_EQ(digests[0].Hex(), digests[1].Hex());
}

TEST(ShardedEmbedding, RowsMoveBetweenLayouts) {
  // Rows read with ForEachRow on 1 rank and set on 3 (row-wise) make the same state.
  const SparseOptimizerOptions optimizer = Optimizer(OptimizerKind::kAdagrad, 0);
  const ShardPlan one = MakePlan(PlanKind::kRowWise, 1);
  auto self = MakeSelfCommunicator();
  ThreadPool pool(1);
  ShardedEmbedding<float> source({Tables(), Fields(), optimizer, kSeed, 8}, &one, self.get(),
                                 &pool);
  auto routing = source.MakeRouting();
  const SparseBatch batch = RankBatch(MakeBatch(200, 3, Bags::kMultiHot), 0, 1, 8);
  ASSERT_TRUE(source.RouteIds(batch, routing.get()).ok());
  ASSERT_TRUE(source.Lookup(ShardedEmbedding<float>::Purpose::kTrain, routing.get()).ok());
  Digest want, found;
  source.AddToDigest(&want);
  for (PlanKind kind : {PlanKind::kRowWise, PlanKind::kReplicated}) {
    const ShardPlan three = MakePlan(kind, 3);
    auto communicators = MakeThreadCommunicators(3, {});
    found = Digest();
    for (int r = 0; r < 3; ++r) {
      ShardedEmbedding<float> copy({Tables(), Fields(), optimizer, kSeed + 1, 8}, &three,
                                   communicators[r].get(), &pool);
      source.ForEachRow([&](int table, int64_t key, const float* weights, const float* slots) {
        copy.SetRow(table, key, weights, slots);
      });
      copy.AddToDigest(&found);
    }
    EXPECT_EQ(found.Hex(), want.Hex());
  }
}

// With dense-equivalent Adam and L2 a step's sums are made while the step before updates the rows.
TEST(ShardedEmbedding, NormsFollowRowsThatWereSet) {
  const ShardPlan plan = MakePlan(PlanKind::kRowWise, 1);
  auto self = MakeSelfCommunicator();
  ThreadPool pool(1);
  using Embedding = ShardedEmbedding<float>;
  const Embedding::Options options = {Tables(), Fields(),
                                      Optimizer(OptimizerKind::kDenseAdam, 0.01), kSeed, 1};
  const SparseBatch batch = RankBatch(MakeBatch(20, 3, Bags::kMultiHot), 0, 1, 1);
  const auto step = [&](Embedding* embedding) {
    auto routing = embedding->MakeRouting();
    const int64_t features = embedding->output_features();
    std::vector<float> gradient(PanelElements(batch.rows, features), 1.0f);
    ExactSum norm, weights;
    CHECK(embedding->RouteIds(batch, routing.get()).ok());
    CHECK(embedding->Lookup(Embedding::Purpose::kTrain, routing.get()).ok());
    embedding->TakeGradients(0, {gradient.data(), batch.rows, features, PanelStride(features)},
                             routing.get());
    CHECK(embedding->RouteGradients(batch.rows, routing.get(), &norm, &weights).ok());
    embedding->Update(kScale, kLearningRate, 1, routing.get());
    return std::pair(norm.Value(), weights.Value());
  };
  const Embedding unchanged(options, &plan, self.get(), &pool);
  Embedding embedding(options, &plan, self.get(), &pool);
  const auto first = step(&embedding);
  EXPECT_NE(step(&embedding), first);
  unchanged.ForEachRow([&](int table, int64_t key, const float* weights, const float* slots) {
    embedding.SetRow(table, key, weights, slots);
  });
  EXPECT_EQ(step(&embedding), first);
  embedding.ForgetRows();
  EXPECT_EQ(step(&embedding), first);
}

// ---- Rows that wait

using SetRows = std::map<std::pair<int, int64_t>, std::vector<float>>;  // weights, then slots

// A run of dense-equivalent Adam without L2, of which a layout makes the steps [begin, end).
struct DenseAdamRun {
  OptimizerOptions rule;
  std::function<double(int64_t step)> rate;
  SetRows start;
};

// What all ranks show, by step: the state after some, and what they and evaluations read. The rows
// at the end.
struct DenseAdamOutcome {
  std::mutex mutex;
  std::map<int64_t, Digest> states, read;
  SetRows rows;
};

void RunDenseAdam(const DenseAdamRun& run, const Layout& layout, bool rows_wait, const Range& steps,
                  const SetRows& start, Communicator* communicator, DenseAdamOutcome* outcome) {
  using Embedding = ShardedEmbedding<float>;
  const ShardPlan plan = MakePlan(layout.plan, layout.ranks);
  ThreadPool pool(layout.threads);
  SparseOptimizerOptions optimizer = {.rule = run.rule};
  optimizer.rule.kind = OptimizerKind::kDenseAdam;
  Embedding embedding({.tables = Tables(),
                       .fields = Fields(),
                       .optimizer = optimizer,
                       .seed = kSeed,
                       .leaves = layout.leaves,
                       .rows_wait = rows_wait},
                      &plan, communicator, &pool);
  for (const auto& [key, values] : start) {
    embedding.SetRow(key.first, key.second, values.data(),
                     values.data() + Tables()[key.first].width);
  }
  const auto routing = embedding.MakeRouting();
  const int64_t features = embedding.output_features();
  constexpr int64_t kRows = 5;
  const Range leaves = LeavesOfRank(communicator->rank(), layout.ranks, layout.leaves);
  const int64_t first = RowsOfLeaf(leaves.begin, layout.leaves, kRows).begin;
  for (int64_t step = steps.begin; step < steps.end; ++step) {
    // Returns the memory of the pooled rows of a batch.
    const auto read = [&](uint64_t stream, Embedding::Purpose purpose) {
      const SparseBatch mine = RankBatch(MakeBatch(kRows, stream, Bags::kMultiHot),
                                         communicator->rank(), layout.ranks, layout.leaves);
      std::vector<float> memory(PanelElements(mine.rows, features));
      CHECK(embedding.RouteIds(mine, routing.get()).ok());
      CHECK(embedding.Lookup(purpose, routing.get()).ok());
      const Panels<float> panels{memory.data(), mine.rows, features, PanelStride(features)};
      embedding.ReturnRows(*routing, 0, panels);
      const std::lock_guard lock(outcome->mutex);
      for (int64_t r = 0; r < mine.rows; ++r) {
        std::vector<float> row(features);
        for (int64_t f = 0; f < features; ++f) row[f] = panels.At(r, f);
        outcome->read[step].Merge(
            Digest::OfRecord(stream, first + r, row.data(), row.size() * sizeof(float)));
      }
      return std::pair(std::move(memory), mine.rows);
    };
    if (step % 61 == 0) read(5000 + step, Embedding::Purpose::kEvaluate);
    auto [memory, rows] = read(step, Embedding::Purpose::kTrain);
    const Panels<float> panels{memory.data(), rows, features, PanelStride(features)};
    const auto de = MakeGradients<float>(kRows, features, step);
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t f = 0; f < features; ++f) panels.At(r, f) = de[first + r][f] * 1e-3f;
    }
    if (rows > 0) embedding.TakeGradients(0, panels, routing.get());
    ExactSum norm, weights;
    CHECK(embedding.RouteGradients(kRows, routing.get(), &norm, &weights).ok());
    embedding.Update(kScale, run.rate(step), step, routing.get());
    if (step % 97 != 0) continue;
    Digest digest;
    embedding.AddToDigest(&digest);
    const std::lock_guard lock(outcome->mutex);
    outcome->states[step].Merge(digest);
  }
  // As a checkpoint is written: by a thread of its own, whose floating point is the system's.
  std::thread writer([&] {
    FloatingPoint::Set(FloatingPoint::kDefault);
    const std::lock_guard lock(outcome->mutex);
    for (int t = 0; t < static_cast<int>(Tables().size()); ++t) {
      embedding.ForEachRowOf(
          t, {0, kPartitions}, [&](std::span<const int64_t> keys, const float* const* values) {
            for (size_t i = 0; i < keys.size(); ++i) {
              outcome->rows[{t, keys[i]}].assign(values[i], values[i] + 3 * Tables()[t].width);
            }
          });
    }
  });
  writer.join();
}

void RunDenseAdam(const DenseAdamRun& run, const Layout& layout, bool rows_wait, const Range& steps,
                  const SetRows& start, DenseAdamOutcome* outcome) {
  auto communicators = MakeThreadCommunicators(layout.ranks, {});
  std::vector<std::thread> threads;
  for (int r = 0; r < layout.ranks; ++r) {
    threads.emplace_back([&, r] {
      RunDenseAdam(run, layout, rows_wait, steps, start, communicators[r].get(), outcome);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// Rows whose weights and slots are beside 0, and some that will never change.
SetRows RowsNearZero() {
  SetRows rows;
  for (int64_t key = 0; key < 40; ++key) {
    std::vector<float>& row = rows[{3, key * 211}];
    for (int i = 0; i < 15; ++i) {
      const float numbers[] = {0, -0.0f, 0x1p-149f, -0x1p-126f, 0x1p-110f, -0x1p-80f, 0x1p-20f, 1};
      const float number = numbers[(key + i * i) % 8];
      row.push_back(i < 10 ? number : std::abs(number));
    }
    if (key % 5 == 0) std::fill(row.begin() + 5, row.end(), 0.0f);
  }
  return rows;
}

// The eager pass is the reference, on one rank. The others stop and go on on other ranks.
TEST(WaitingRowsTest, HaveTheBitsOfTheEagerPass) {
  constexpr double kPi = 3.14159265358979;
  DenseAdamRun cosine, warm_up, plateau, no_beta1, slow_beta1;
  cosine.start = RowsNearZero();
  cosine.rate = [](int64_t step) { return 1e-3 * (1 + std::cos(kPi * step / 380)); };
  warm_up.rate = [](int64_t step) { return 1e-6 * std::min<double>(step, 200); };
  plateau.rate = [](int64_t step) { return step < 200 ? 1e-2 : step < 270 ? 1e-3 : 0.1; };
  no_beta1.rate = slow_beta1.rate = plateau.rate;
  no_beta1.rule.beta1 = 0;
  slow_beta1.rule.beta1 = 0.9997;
  int turn = 0;
  for (const DenseAdamRun& run : {cosine, warm_up, plateau, no_beta1, slow_beta1}) {
    constexpr Range kSteps = {1, 381};
    constexpr int64_t kStop = 290;
    SCOPED_TRACE(turn);
    DenseAdamOutcome eager;
    RunDenseAdam(run, {1, PlanKind::kRowWise, 1, 8}, false, kSteps, run.start, &eager);
    const Layout layouts[] = {{1, PlanKind::kRowWise, 2, 8},
                              {3, PlanKind::kReplicated, 1, 8},
                              {4, PlanKind::kRowWise, 1, 8},
                              {3, PlanKind::kAuto, 2, 8}};
    DenseAdamOutcome waiting;
    const auto layout = [&](int i) { return layouts[(turn + i) % 4]; };
    RunDenseAdam(run, layout(0), true, {kSteps.begin, kStop}, run.start, &waiting);
    RunDenseAdam(run, layout(1), true, {kStop, kSteps.end}, SetRows(waiting.rows), &waiting);
    ASSERT_EQ(waiting.states.size(), eager.states.size());
    for (const auto& [step, digest] : eager.states) {
      ASSERT_EQ(waiting.states.at(step).Hex(), digest.Hex()) << step;
    }
    for (const auto& [step, digest] : eager.read) {
      ASSERT_EQ(waiting.read.at(step).Hex(), digest.Hex()) << step;
    }
    for (const auto& [key, row] : eager.rows) {
      const std::vector<float>& found = waiting.rows.at(key);
      ASSERT_EQ(std::memcmp(found.data(), row.data(), row.size() * sizeof(float)), 0)
          << "table " << key.first << " key " << key.second;
    }
    ++turn;
  }
}

// A row that gets weights keeps the slots that it has by then, and all rows are new again later.
TEST(WaitingRowsTest, RowsThatAreSetDoNotOwe) {
  const auto run = [](bool rows_wait) {
    const ShardPlan plan = MakePlan(PlanKind::kRowWise, 1);
    auto self = MakeSelfCommunicator();
    ThreadPool pool(1);
    using Embedding = ShardedEmbedding<float>;
    Embedding embedding({.tables = Tables(),
                         .fields = Fields(),
                         .optimizer = Optimizer(OptimizerKind::kDenseAdam, 0),
                         .seed = kSeed,
                         .leaves = 1,
                         .rows_wait = rows_wait},
                        &plan, self.get(), &pool);
    const auto routing = embedding.MakeRouting();
    const auto step = [&](int64_t number) {
      const SparseBatch batch = RankBatch(MakeBatch(9, number, Bags::kMultiHot), 0, 1, 1);
      const int64_t features = embedding.output_features();
      std::vector<float> gradient(PanelElements(batch.rows, features), 1.0f);
      ExactSum norm, weights;
      CHECK(embedding.RouteIds(batch, routing.get()).ok());
      CHECK(embedding.Lookup(Embedding::Purpose::kTrain, routing.get()).ok());
      embedding.TakeGradients(0, {gradient.data(), batch.rows, features, PanelStride(features)},
                              routing.get());
      CHECK(embedding.RouteGradients(batch.rows, routing.get(), &norm, &weights).ok());
      embedding.Update(kScale, kLearningRate, number, routing.get());
    };
    std::vector<std::string> digests;
    const auto note = [&] {
      Digest digest;
      embedding.AddToDigest(&digest);
      digests.push_back(digest.Hex());
    };
    for (int64_t number = 1; number < 20; ++number) step(number);
    const std::vector<float> weights(20, 0.25f);
    for (int64_t key = 0; key < 5000; ++key) embedding.SetRow(0, key, weights.data(), nullptr);
    for (int64_t number = 20; number < 40; ++number) step(number);
    note();
    embedding.ForgetRows();
    for (int64_t number = 1; number < 20; ++number) step(number);
    note();
    return digests;
  };
  EXPECT_EQ(run(true), run(false));
}

// ---- Rules of keyed tables

// The largest TIME of some rows of a step: they do not come in order, and some are of long ago.
int64_t LatestOf(int64_t step, const Range& rows) {
  int64_t latest = 0;
  for (int64_t row = rows.begin; row < rows.end; ++row) {
    latest = std::max(latest, 1000000 + 100 * step + row * 37 % 48 * 5 - (row % 3) * 90);
  }
  return latest;
}

// What is left of a stream of keys by the rules' definition, key by key. Scores are those of the
// policy, worked out here from the steps and counts of every row.
class RuledKeys {
 public:
  explicit RuledKeys(const RowRules& rules) : rules_(rules) {}

  // Returns how many rows left.
  int64_t Step(const std::vector<uint64_t>& keys, int64_t step) {
    std::map<uint64_t, int64_t> counts;
    for (const uint64_t key : keys) ++counts[key];
    event_time_ = std::max(event_time_, LatestOf(step, {0, std::ssize(keys) / 2}));
    const int64_t now = rules_.policy == RowRules::Policy::kTtlEventTime ? event_time_ : step;
    const int64_t ttl =
        rules_.policy == RowRules::Policy::kTtlEventTime ? rules_.ttl_seconds : rules_.ttl_steps;
    for (const auto& [key, count] : counts) {
      Row& row = rows_[key];
      row.count += count;
      row.weight += count * Weight(step);
      row.last = now;
    }
    const size_t before = rows_.size();
    const bool full = before > static_cast<size_t>(rules_.capacity);
    if (!full && step % rules_.evict_every_steps != 0) return 0;
    if (rules_.policy == RowRules::Policy::kTtlSteps ||
        rules_.policy == RowRules::Policy::kTtlEventTime) {
      std::erase_if(rows_, [&](const auto& row) { return now - row.second.last > ttl; });
      if (rows_.size() <= static_cast<size_t>(rules_.capacity)) return before - rows_.size();
    }
    while (rows_.size() > static_cast<size_t>(rules_.evict_to)) {
      auto first = rows_.begin();
      for (auto row = rows_.begin(); row != rows_.end(); ++row) {
        if (Score(row->second) < Score(first->second)) first = row;
      }
      rows_.erase(first);
    }
    return before - rows_.size();
  }
  std::vector<uint64_t> keys() const {
    std::vector<uint64_t> keys;
    for (const auto& [key, row] : rows_) keys.push_back(key);
    return keys;
  }

 private:
  struct Row {
    int64_t count = 0;
    int64_t weight = 0;
    int64_t last = 0;
  };
  // An occurrence's weight against older ones: twice as much a half-life later, on lines.
  int64_t Weight(int64_t step) const {
    const int64_t half_life = rules_.half_life_steps;
    return (half_life + step % half_life) << (step / half_life);
  }
  int64_t Score(const Row& row) const {
    switch (rules_.policy) {
      case RowRules::Policy::kLfu:
        return row.count;
      case RowRules::Policy::kDecayedLfu:
        return row.weight;
      default:
        return row.last;
    }
  }

  RowRules rules_;
  int64_t event_time_ = 0;
  std::map<uint64_t, Row> rows_;
};

// A stream of keys that come, return and go; many occur several times in a batch. They fill all 64
// bits, so that signed keys have another order.
std::vector<uint64_t> StreamKeys(int64_t step) {
  std::vector<uint64_t> keys;
  for (uint32_t i = 0; i < 96; ++i) {
    const double u = UniformFromBits(Philox(step, {i, 0, 0, 5})[0]);
    const uint64_t id = static_cast<uint64_t>(u * u * 60) + 7 * step;
    keys.push_back(i % 31 == 0 ? 0 : (id % 90) * 0x9e3779b97f4a7c15);
  }
  return keys;
}

using Vectors = std::map<uint64_t, std::vector<float>>;  // by key

struct RuledOutcome {
  std::vector<int64_t> evicted, admitted, unadmitted;  // by step
  std::vector<ExactSum> norm;
  std::vector<Vectors> vectors;  // that the lookup of the step returned; last an evaluation's
  std::vector<Digest> states;    // behind each step
  int64_t early = 0;             // rows that were sent early, and not again
  std::set<uint64_t> keys;
  Digest digest;
};

// A stream under a table's rules on one layout. Gradients are .5 everywhere.
RuledOutcome RunRules(const RowRules& rules, const Layout& layout, int64_t steps,
                      std::vector<uint64_t> (*stream)(int64_t step) = StreamKeys,
                      OptimizerKind optimizer = OptimizerKind::kRowWiseAdagrad) {
  TableSpec table = {"t", rules.capacity, 3, 0.1};
  table.keyed = true;
  table.keeps_use = rules.keeps_use();
  table.rules = rules;
  const std::vector<TableSpec> tables = WithAdmission({table});
  const std::vector<int64_t> bytes(tables.size(), 16);
  const ShardPlan plan = *ShardPlan::Make(layout.plan, tables, bytes, layout.ranks, 0);
  auto communicators = MakeThreadCommunicators(layout.ranks, {});
  std::vector<std::thread> threads;
  RuledOutcome outcome;
  outcome.norm.resize(steps);
  outcome.vectors.resize(steps + 1);
  outcome.states.resize(steps);
  std::vector<Digest> before(layout.ranks);  // the last evaluation
  std::mutex mutex;
  for (int r = 0; r < layout.ranks; ++r) {
    threads.emplace_back([&, r] {
      ThreadPool pool(layout.threads);
      Communicator& communicator = *communicators[r];
      ShardedEmbedding<float> embedding({tables,
                                         {{"a", 0, Pooling::kSum}, {"b", 0, Pooling::kSum}},
                                         Optimizer(optimizer, 0),
                                         kSeed,
                                         layout.leaves},
                                        &plan, &communicator, &pool);
      auto routing = embedding.MakeRouting();
      auto next = embedding.MakeRouting();
      using Purpose = ShardedEmbedding<float>::Purpose;
      const auto batch_of = [&](int64_t step) {
        const std::vector<uint64_t> keys = stream(step);
        GlobalBatch batch;
        for (size_t i = 0; i < keys.size(); i += 2) {
          batch.bags.push_back(
              {{static_cast<int64_t>(keys[i])}, {static_cast<int64_t>(keys[i + 1])}});
        }
        SparseBatch mine = RankBatch(batch, 2, r, layout.ranks, layout.leaves);
        const Range own = LeavesOfRank(r, layout.ranks, layout.leaves);
        mine.latest = LatestOf(step, {RowsOfLeaf(own.begin, layout.leaves, batch.rows()).begin,
                                      RowsOfLeaf(own.end - 1, layout.leaves, batch.rows()).end});
        return mine;
      };
      for (int64_t step = 1; step <= steps + 1; ++step) {
        const bool trains = step <= steps;
        if (!trains) embedding.AddToDigest(&before[r]);
        const SparseBatch mine = batch_of(step);
        const auto rows = static_cast<int64_t>(stream(step).size()) / 2;
        if (!layout.early || step == 1 || !trains) {
          ASSERT_TRUE(embedding.RouteIds(mine, routing.get()).ok());
        }
        ASSERT_TRUE(
            embedding.Lookup(trains ? Purpose::kTrain : Purpose::kEvaluate, routing.get()).ok());
        if (layout.early && trains) {
          ASSERT_TRUE(embedding.RouteIds(batch_of(step + 1), next.get()).ok());
          if (embedding.MayLookupEarly(step)) {
            ASSERT_TRUE(embedding.LookupEarly(*routing, next.get()).ok());
          }
        }
        std::vector<float> memory(PanelElements(mine.rows, 6));
        const Panels<float> panels = {memory.data(), mine.rows, 6, PanelStride(6)};
        embedding.ReturnRows(*routing, 0, panels);
        for (int64_t i = 0; i < 2 * mine.rows; ++i) {
          std::vector<float> vector(3);
          for (int64_t c = 0; c < 3; ++c) vector[c] = panels.At(i / 2, i % 2 * 3 + c);
          const std::lock_guard lock(mutex);
          const auto [at, first] = outcome.vectors[step - 1].emplace(mine.ids[i], vector);
          EXPECT_TRUE(first || at->second == vector) << "a key has two vectors";
        }
        if (!trains) continue;
        std::ranges::fill(memory, 0.5f);
        embedding.TakeGradients(0, {memory.data(), mine.rows, 6, PanelStride(6)}, routing.get());
        ExactSum norm, weights;
        ASSERT_TRUE(embedding.RouteGradients(rows, routing.get(), &norm, &weights).ok());
        std::vector<int64_t> counts = embedding.CountKeyedRows();
        ASSERT_TRUE(communicator.AllReduceSum(Phase::kScalars, counts).ok());
        embedding.Update(1, 0.1, step, routing.get());
        ASSERT_EQ(embedding.ApplyRules(step, counts).message(), "");
        if (layout.early) std::swap(routing, next);
        const std::lock_guard lock(mutex);
        outcome.norm[step - 1].Merge(norm);
        embedding.AddToDigest(&outcome.states[step - 1]);
        if (r > 0) continue;
        const auto told = embedding.keyed_tables()[0];
        outcome.evicted.push_back(told.evicted);
        outcome.admitted.push_back(told.admitted);
        outcome.unadmitted.push_back(told.unadmitted);
        EXPECT_EQ(told.occurrences, rules.admits() ? 2 * rows : 0);
      }
      const std::lock_guard lock(mutex);
      Digest after;
      embedding.AddToDigest(&after);
      EXPECT_EQ(after, before[r]) << "an evaluation changed the state";
      outcome.digest.Merge(after);
      outcome.early += embedding.sent_rows().early;
      embedding.ForEachRow([&](int of, int64_t key, const float*, const float*) {
        if (of == 0) outcome.keys.insert(static_cast<uint64_t>(key));
      });
    });
  }
  for (std::thread& thread : threads) thread.join();
  return outcome;
}

TEST(RowRulesTest, RowsLeaveByScoreAndKeyOnAnyLayout) {
  using Policy = RowRules::Policy;
  constexpr int64_t kSteps = 28;
  for (const Policy policy : {Policy::kLru, Policy::kLfu, Policy::kDecayedLfu, Policy::kTtlSteps,
                              Policy::kL2, Policy::kTtlEventTime}) {
    SCOPED_TRACE(static_cast<int>(policy));
    const RowRules rules = {.policy = policy,
                            .capacity = 70,
                            .evicts_when_full = true,
                            .evict_to = 45,
                            .evict_every_steps = 9,
                            .ttl_steps = 2,
                            .ttl_seconds = 210,
                            .half_life_steps = 4,
                            .min_l2 = 0.04};
    const RuledOutcome expected = RunRules(rules, {1, PlanKind::kRowWise, 1, 8}, kSteps);
    int64_t passes = 0;
    RuledKeys naive(rules);
    for (int64_t step = 1; step <= kSteps; ++step) {
      passes += expected.evicted[step - 1] >= 14 ? 1 : 0;
      if (policy == Policy::kL2) continue;  // weights decide
      ASSERT_EQ(expected.evicted[step - 1], naive.Step(StreamKeys(step), step)) << step;
    }
    EXPECT_GE(passes, 3);
    if (policy != Policy::kL2) {
      EXPECT_EQ(std::vector<uint64_t>(expected.keys.begin(), expected.keys.end()), naive.keys());
    }
    for (const Layout& layout : {Layout{1, PlanKind::kRowWise, 2, 8},
                                 {3, PlanKind::kRowWise, 1, 8},
                                 {4, PlanKind::kTableWise, 2, 8, true, {}, true},
                                 {3, PlanKind::kReplicated, 2, 8},
                                 {8, PlanKind::kRowWise, 1, 8, true, {}, true}}) {
      SCOPED_TRACE(PrintLayout(layout));
      const RuledOutcome found = RunRules(rules, layout, kSteps);
      EXPECT_EQ(found.evicted, expected.evicted);
      EXPECT_EQ(found.keys, expected.keys);
      EXPECT_EQ(found.states, expected.states);
      EXPECT_EQ(found.digest.Hex(), expected.digest.Hex());
      EXPECT_EQ(found.early > 0, layout.early);
      if (HasFailure()) return;
    }
  }
}

// ---- Admission

// The places of counters, worked out in Python.
TEST(AdmissionTest, SketchPlacesStay) {
  const auto places = [](uint64_t key, int64_t lines) {
    return SketchPlaces(static_cast<int64_t>(key), lines);
  };
  using Places = std::array<int64_t, kSketchDepth>;
  EXPECT_EQ(places(0, 1), (Places{9, 65549, 131085, 196614}));
  EXPECT_EQ(places(1, 1), (Places{45761, 111302, 176845, 242369}));
  EXPECT_EQ(places(12345, 3), (Places{61329, 323472, 585625, 782236}));
  EXPECT_EQ(places(~uint64_t{4}, 62), (Places{391542, 7010682, 10680699, 12253559}));
}

// Keys of partitions 5, 77 and 4000 whose shared rows therefore serve several, and of others.
std::vector<uint64_t> CrowdedKeys(int64_t step) {
  constexpr uint64_t kKeys[] = {9710,  12022, 21383, 21641, 26838, 29535, 34734, 35171,       15969,
                                20535, 22764, 28192, 35219, 35337, 37476, 39000, 6201,        7265,
                                18605, 19280, 25417, 35240, 37111, 1,     2,     ~uint64_t{0}};
  std::vector<uint64_t> keys;
  for (uint32_t i = 0; i < 64; ++i) {
    const double u = UniformFromBits(Philox(step, {i, 0, 0, 6})[0]);
    keys.push_back(kKeys[(static_cast<int64_t>(u * u * 20) + step) % std::size(kKeys)]);
  }
  return keys;
}

// What admission does by its definition, key by key.
class NaiveAdmission {
 public:
  explicit NaiveAdmission(const RowRules& rules) : rules_(rules) {}

  struct Told {
    int64_t admitted = 0, unadmitted = 0;
    double norm = 0;
  };
  // Checks what the lookup returned, and then does the step.
  Told Step(int64_t step, const Vectors& vectors) {
    Told told;
    std::map<uint64_t, int64_t> counts, waiting;
    for (const uint64_t key : CrowdedKeys(step)) ++counts[key];
    for (const auto& [key, count] : counts) {
      if (rows_.count(key) == 0) AddTo(key, count, step);
    }
    std::map<int64_t, double> shared;  // gradients, by partition
    for (const auto& [key, count] : counts) {
      told.admitted += rows_.count(key) == 0 && CountOf(key) >= rules_.min_count ? 1 : 0;
      if (rows_.count(key) > 0 || CountOf(key) >= rules_.min_count) {
        rows_[key] = step;
        counts_.erase(key);
        told.norm += 3 * (0.5 * count) * (0.5 * count);
        continue;
      }
      told.unadmitted += count;
      CheckUnadmitted(key, vectors.at(key));
      if (rules_.shares_rows) shared[PartitionOf(key)] += 0.5 * count;
    }
    for (const auto& [partition, gradient] : shared) {
      told.norm += 3 * gradient * gradient;
      for (float& w : shared_.at(partition)) w -= 0.1f * static_cast<float>(gradient);
    }
    const auto leave = static_cast<int64_t>(rows_.size()) > rules_.capacity
                           ? static_cast<int64_t>(rows_.size()) - rules_.evict_to
                           : 0;
    for (int64_t i = 0; i < leave; ++i) {
      rows_.erase(std::ranges::min_element(
          rows_, {}, [](const auto& row) { return std::pair(row.second, row.first); }));
    }
    if (rules_.count_ttl_steps > 0) {
      std::erase_if(counts_, [&](const auto& count) {
        return step - count.second.second > rules_.count_ttl_steps;
      });
    }
    return told;
  }
  void CheckUnadmitted(uint64_t key, const std::vector<float>& vector) {
    if (!rules_.shares_rows) {
      EXPECT_THAT(vector, testing::Each(0.0f));
      return;
    }
    // A shared row's first values are not known here, but they are one row's.
    const std::vector<float>& row = shared_.emplace(PartitionOf(key), vector).first->second;
    EXPECT_THAT(vector, testing::Pointwise(testing::FloatNear(1e-6f), row));
    EXPECT_NE(vector[0], 0);
  }
  std::set<uint64_t> keys() const {
    std::set<uint64_t> keys;
    for (const auto& [key, last] : rows_) keys.insert(key);
    return keys;
  }

 private:
  static int64_t PartitionOf(uint64_t key) {
    return KeySpace{.keyed = true}.PartitionOf(static_cast<int64_t>(key));
  }
  void AddTo(uint64_t key, int64_t count, int64_t step) {
    counts_[key].first += count;
    counts_[key].second = step;
    for (const int64_t place : Places(key)) sketch_[place] += count;
  }
  int64_t CountOf(uint64_t key) {
    if (rules_.sketch_lines == 0) return counts_[key].first;
    const auto places = Places(key);
    return sketch_[*std::ranges::min_element(places, {}, [&](int64_t p) { return sketch_[p]; })];
  }
  std::array<int64_t, kSketchDepth> Places(uint64_t key) const {
    return SketchPlaces(static_cast<int64_t>(key), std::max<int64_t>(rules_.sketch_lines, 1));
  }

  const RowRules rules_;
  std::map<uint64_t, int64_t> rows_;                        // last uses
  std::map<uint64_t, std::pair<int64_t, int64_t>> counts_;  // and their last steps
  std::map<int64_t, int64_t> sketch_;
  std::map<int64_t, std::vector<float>> shared_;  // by partition
};

TEST(AdmissionTest, FollowsItsDefinitionOnAnyLayout) {
  constexpr int64_t kSteps = 28;
  for (const auto& [sketch_lines, shares_rows, count_ttl_steps] :
       {std::tuple{0, false, 2}, std::tuple{1, true, 0}, std::tuple{0, true, 0},
        std::tuple{1, false, 0}}) {
    const RowRules rules = {.policy = RowRules::Policy::kLru,
                            .capacity = 21,
                            .evicts_when_full = true,
                            .evict_to = 12,
                            .min_count = 7,
                            .sketch_lines = sketch_lines,
                            .shares_rows = shares_rows,
                            .count_ttl_steps = count_ttl_steps};
    SCOPED_TRACE(testing::Message() << sketch_lines << shares_rows);
    const auto run = [&](const Layout& layout) {
      return RunRules(rules, layout, kSteps, CrowdedKeys, OptimizerKind::kSgd);
    };
    const RuledOutcome expected = run({1, PlanKind::kRowWise, 1, 8});
    NaiveAdmission naive(rules);
    int64_t admitted = 0, unadmitted = 0;
    for (int64_t step = 1; step <= kSteps; ++step) {
      const NaiveAdmission::Told told = naive.Step(step, expected.vectors[step - 1]);
      ASSERT_EQ(expected.admitted[step - 1], told.admitted) << step;
      ASSERT_EQ(expected.unadmitted[step - 1], told.unadmitted) << step;
      ASSERT_EQ(expected.norm[step - 1].Value(), told.norm) << step;
      admitted += told.admitted;
      unadmitted += told.unadmitted;
    }
    EXPECT_GT(admitted, 25);  // of 26 keys: some come back
    EXPECT_GT(unadmitted, 100);
    EXPECT_EQ(expected.keys, naive.keys());
    for (const auto& [key, vector] : expected.vectors[kSteps]) {
      if (expected.keys.count(key) == 0) naive.CheckUnadmitted(key, vector);
    }
    for (const Layout& layout : {Layout{1, PlanKind::kRowWise, 2, 8},
                                 {3, PlanKind::kRowWise, 2, 8, true, {}, true},
                                 {3, PlanKind::kReplicated, 2, 8},
                                 {8, PlanKind::kRowWise, 1, 8}}) {
      SCOPED_TRACE(PrintLayout(layout));
      const RuledOutcome found = run(layout);
      EXPECT_EQ(found.states, expected.states);
      EXPECT_EQ(found.early > 0, layout.early);
      EXPECT_EQ(found.admitted, expected.admitted);
      EXPECT_EQ(found.unadmitted, expected.unadmitted);
      EXPECT_EQ(found.vectors, expected.vectors);
      EXPECT_EQ(found.digest.Hex(), expected.digest.Hex());
      if (HasFailure()) return;
    }
  }
}

// The step's own batch counts: with every key twice in a batch, two occurrences admit at once, and
// the state is that of a table without admission.
TEST(AdmissionTest, ABatchAdmitsItsOwnKeys) {
  const auto twice = [](int64_t step) {
    std::vector<uint64_t> keys = StreamKeys(step);
    keys.insert(keys.end(), keys.begin(), keys.end());
    return keys;
  };
  RowRules rules;
  const Layout layout = {3, PlanKind::kRowWise, 2, 8};
  const RuledOutcome all = RunRules(rules, layout, 9, twice);
  rules.min_count = 2;
  const RuledOutcome admitted = RunRules(rules, layout, 9, twice);
  EXPECT_EQ(admitted.digest.Hex(), all.digest.Hex());
  rules.min_count = 3;
  EXPECT_NE(RunRules(rules, layout, 9, twice).digest.Hex(), all.digest.Hex());
}

// Gradients of a shared row are added in ascending order of the keys, as unsigned numbers.
TEST(AdmissionTest, SharedGradientsAreAddedInTheOrderOfKeys) {
  TableSpec table = {"t", 0, 1, 0.1};
  table.keyed = true;
  table.rules = {.min_count = 9, .shares_rows = true};
  const std::vector<TableSpec> tables = WithAdmission({table});
  ASSERT_EQ(tables.size(), 3u);
  std::vector<int32_t> partitions(kPartitions);
  std::iota(partitions.begin(), partitions.end(), 0);
  std::vector<RowStore<float>> stores;
  stores.reserve(3);
  for (const TableSpec& each : tables) {
    stores.emplace_back(each, 0, partitions, RowStore<float>::Initial{});
  }
  Admission<float> admission(tables[0], &stores[0], &stores[2], &stores[1], false, 1);
  // Of partition 5, and one of it beyond 2^63.
  int64_t last = -1;
  while (KeySpace{.keyed = true}.PartitionOf(last) != 5) --last;
  const std::vector<int64_t> keys = {last, 12022, 9710};
  const std::vector<uint32_t> counts = {1, 1, 1};
  std::vector<float*> rows(3, nullptr);
  admission.Serve(keys, counts.data(), 0, 1, rows.data());
  const std::vector<float> gradients = {-1e8f, 1e8f, 1.0f};  // (1 + 1e8) - 1e8 is 0
  const auto& shared = admission.SumShared(0, [&](int64_t at) { return gradients.data() + at; });
  ASSERT_EQ(shared.size(), 1u);
  EXPECT_EQ(shared[0].partition, 5);
  EXPECT_EQ(shared[0].gradient[0], 0.0f);
  const std::vector<float> other = {1.0f, 1e8f, -1e8f};  // (-1e8 + 1e8) + 1 is 1
  EXPECT_EQ(admission.SumShared(0, [&](int64_t at) { return other.data() + at; })[0].gradient[0],
            1.0f);
}

// A limit that ends the run is judged after the pass of the same step has made room.
TEST(RowRulesTest, ADuePassComesBeforeTheLimit) {
  constexpr int64_t kSteps = 20;
  RowRules rules = {.policy = RowRules::Policy::kTtlSteps,
                    .capacity = 1000,
                    .evict_every_steps = 1,
                    .ttl_steps = 1,
                    .half_life_steps = 1};
  RuledKeys naive(rules);
  int64_t before = 0, after = 0;
  for (int64_t step = 1; step <= kSteps; ++step) {
    const int64_t evicted = naive.Step(StreamKeys(step), step);
    const auto rows = static_cast<int64_t>(naive.keys().size());
    before = std::max(before, rows + evicted);
    after = std::max(after, rows);
  }
  ASSERT_GT(before, after);
  rules.capacity = after;
  EXPECT_EQ(RunRules(rules, {3, PlanKind::kRowWise, 1, 8}, kSteps).keys.size(),
            naive.keys().size());
}

// A decayed count depends on the occurrences and their steps alone: not on how often it was
// touched. The error of every touch is within the bound that row_rules.h states.
TEST(RowRulesTest, DecayedCountsAreSumsOfWeights) {
  constexpr double kBound = 1.0 / (1 << 28);
  const auto weight = [](double step, double half_life) {
    const double doublings = std::floor(step / half_life);
    return std::exp2(doublings) * (1 + step / half_life - doublings);
  };
  const auto value = [](uint64_t use) {
    return std::ldexp(static_cast<double>(use % (1 << 30)), static_cast<int>(use >> 30) - 30);
  };
  for (const int64_t half_life : {1, 7, 1000, 1000000}) {
    SCOPED_TRACE(half_life);
    const RowRules rules = {.policy = RowRules::Policy::kDecayedLfu, .half_life_steps = half_life};
    double sum = 0;
    uint64_t use = 0;
    const int64_t last = std::min<int64_t>(7000, 900 * half_life);
    for (int64_t step = 3; step <= last; ++step) {
      const int64_t times = step == 3 ? 1000000 : step % 5;
      const uint64_t before = use;
      use = UseAfter(rules, use, times, step);
      if (times == 0) {
        ASSERT_EQ(use, before);
      }
      sum += static_cast<double>(times) * weight(step, half_life);
      ASSERT_NEAR(value(use) / sum, 1, kBound * step) << step;
    }
  }
  // Ten half-lives after 2^20 occurrences a key is worth 2^10 that occur now.
  const RowRules rules = {.policy = RowRules::Policy::kDecayedLfu, .half_life_steps = 1000};
  const uint64_t old = UseAfter(rules, 0, 1 << 20, 300);
  EXPECT_EQ(UseAfter(rules, 0, 1 << 10, 10300), old);
  EXPECT_GT(UseAfter(rules, 0, (1 << 10) + 1, 10300), old);
  EXPECT_LT(UseAfter(rules, 0, (1 << 10) - 1, 10300), old);
  // Weights far below and far above the sum; no step corrupts what there is.
  const uint64_t late = UseAfter(rules, old, 1, int64_t{1} << 40);
  EXPECT_EQ(late, UseAfter(rules, 0, 1, int64_t{1} << 40));
  EXPECT_EQ(UseAfter(rules, late, 1000, 5), late);
  EXPECT_GT(UseAfter(rules, late, 1, int64_t{1} << 62), late);
}

// Rows behind a tier: what 24 batches of few rows of large tables leave, and the most that was in
// memory.
struct TierOutcome {
  Digest digest;      // of pooled rows, the state, and rows by partitions
  int64_t early = 0;  // rows that were sent early
  int64_t most_resident = 0;
  int64_t least_files = std::numeric_limits<int64_t>::max();  // of the ranks, in bytes
};

// memory_bytes: of the tier; 0: there is none.
TierOutcome RunTier(int ranks, PlanKind kind, bool keyed, int64_t memory_bytes) {
  constexpr int64_t kRows = 24;
  const std::vector<TableSpec> tables = {{"a", 100'000, 20, 0.1, keyed},
                                         {"b", 200'000, 5, 0.1, keyed}};
  const std::vector<FieldSpec> fields = {{"a", 0, Pooling::kSum}, {"b", 1, Pooling::kSum}};
  const SparseOptimizerOptions optimizer = Optimizer(OptimizerKind::kLazyAdam, 0.01);
  StatusOr<ShardPlan> plan = ShardPlan::Make(kind, tables, {{240, 60}}, ranks, 0);
  CHECK(plan.ok());
  auto communicators = MakeThreadCommunicators(ranks, {});
  std::mutex mutex;
  TierOutcome outcome;
  std::vector<std::thread> threads;
  for (int r = 0; r < ranks; ++r) {
    threads.emplace_back([&, r] {
      std::unique_ptr<RowTier> tier;
      if (memory_bytes > 0) {
        auto opened = RowTier::Open({testing::TempDir(), memory_bytes});
        CHECK(opened.ok()) << opened.status().message();
        tier = std::move(opened).value();
      }
      ThreadPool pool(1 + ranks % 2);
      ShardedEmbedding<float> embedding({.tables = tables,
                                         .fields = fields,
                                         .optimizer = optimizer,
                                         .seed = kSeed,
                                         .leaves = 8,
                                         .tier = tier.get()},
                                        &*plan, communicators[r].get(), &pool);
      auto routing = embedding.MakeRouting();
      auto next = embedding.MakeRouting();
      const auto route = [&](int step, auto* routing) {
        const GlobalBatch batch = MakeBatch(tables, fields, kRows, step % 9, Bags::kMultiHot);
        CHECK(embedding.RouteIds(RankBatch(batch, 2, r, ranks, 8), routing).ok());
        return RankBatch(batch, 2, r, ranks, 8).rows;
      };
      const auto trains = [](int step) { return step % 5 != 3; };
      Digest digest;
      const uint64_t name = Digest::NameSeed("pooled");
      int64_t most = 0;
      int64_t rows = route(0, routing.get());
      for (int step = 0; step < 24; ++step) {
        const bool train = trains(step);
        CHECK(embedding
                  .Lookup(train ? ShardedEmbedding<float>::Purpose::kTrain
                                : ShardedEmbedding<float>::Purpose::kEvaluate,
                          routing.get())
                  .ok());
        const int64_t next_rows = route(step + 1, next.get());
        if (embedding.has_tier() && step % 2 == 0) {
          embedding.FetchAhead(next.get());
          if (train && trains(step + 1) && embedding.MayLookupEarly(step + 1)) {
            CHECK(embedding.LookupEarly(*routing, next.get()).ok());
          }
        }
        const int64_t features = embedding.output_features();
        std::vector<float> memory(PanelElements(rows, features));
        const Panels<float> panels{memory.data(), rows, features, PanelStride(features)};
        if (rows > 0) embedding.ReturnRows(*routing, 0, panels);
        for (int64_t i = 0; i < rows * features; ++i) {
          const float value = panels.At(i / features, i % features);
          const auto key = static_cast<uint64_t>(
              (step * kRows + RowsOfLeaf(LeavesOfRank(r, ranks, 8).begin, 8, kRows).begin) *
                  features +
              i);
          digest.Merge(Digest::OfRecord(name, key, &value, sizeof(value)));
        }
        if (train) {
          if (rows > 0) embedding.TakeGradients(0, panels, routing.get());
          ExactSum norm, weights;
          CHECK(embedding.RouteGradients(kRows, routing.get(), &norm, &weights).ok());
          embedding.Update(kScale, kLearningRate, step + 1, routing.get());
        }
        std::swap(routing, next);
        rows = next_rows;
        if (tier != nullptr) most = std::max(most, tier->resident_bytes());
      }
      embedding.AddToDigest(&digest);
      for (int t = 0; t < 2; ++t) {
        for (int64_t begin = 0; begin < kPartitions; begin += 512) {
          embedding.ForEachRowOf(
              t, {begin, begin + 512},
              [&](std::span<const int64_t> keys, const float* const* rows) {
                for (size_t i = 0; i < keys.size(); ++i) {
                  const size_t bytes = 3 * tables[t].width * sizeof(float);
                  digest.Merge(Digest::OfRecord(t, static_cast<uint64_t>(keys[i]), rows[i], bytes));
                }
              });
        }
      }
      const std::lock_guard lock(mutex);
      outcome.digest.Merge(digest);
      outcome.early += embedding.sent_rows().early;
      outcome.most_resident = std::max(outcome.most_resident, most);
      if (tier != nullptr) outcome.least_files = std::min(outcome.least_files, tier->file_bytes());
    });
  }
  for (std::thread& thread : threads) thread.join();
  return outcome;
}

TEST(RowTierTest, RowsInFilesHaveTheBitsOfRowsInMemory) {
  constexpr int64_t kMemory = int64_t{720} << 10;
  if (const auto tier = RowTier::Open({testing::TempDir(), kMemory}); !tier.ok()) {
    GTEST_SKIP() << tier.status().message();
  }
  for (const bool keyed : {false, true}) {
    const std::string expected = RunTier(1, PlanKind::kRowWise, keyed, 0).digest.Hex();
    for (const auto& [ranks, plan] :
         {std::pair{1, PlanKind::kRowWise}, std::pair{3, PlanKind::kReplicated},
          std::pair{4, PlanKind::kRowWise}}) {
      const TierOutcome outcome = RunTier(ranks, plan, keyed, kMemory);
      SCOPED_TRACE(testing::Message() << ranks << " ranks, keyed " << keyed);
      EXPECT_EQ(outcome.digest.Hex(), expected);
      EXPECT_EQ(outcome.early > 0, ranks == 4);
      EXPECT_LE(outcome.most_resident, kMemory);
      EXPECT_GE(outcome.least_files * ranks, 2 * kMemory);
    }
  }
}

TEST(ShardedEmbedding, ModelWithoutCategoricalFields) {
  StatusOr<ShardPlan> plan = ShardPlan::Make(PlanKind::kAuto, {}, {}, 1, 0);
  ASSERT_TRUE(plan.ok());
  auto communicator = MakeSelfCommunicator();
  ThreadPool pool(1);
  ShardedEmbedding<float> embedding({{}, {}, {}, kSeed, 8}, &*plan, communicator.get(), &pool);
  auto routing = embedding.MakeRouting();
  SparseBatch batch;
  batch.rows = 8;
  for (int64_t i = 0; i <= 8; ++i) batch.leaf_offsets.push_back(i);
  ASSERT_TRUE(embedding.RouteIds(batch, routing.get()).ok());
  ASSERT_TRUE(embedding.Lookup(ShardedEmbedding<float>::Purpose::kTrain, routing.get()).ok());
  embedding.ReturnRows(*routing, 0, Panels<float>{nullptr, 8, 0, 0});
  embedding.TakeGradients(0, Panels<const float>{nullptr, 8, 0, 0}, routing.get());
  ExactSum norm, weights;
  ASSERT_TRUE(embedding.RouteGradients(8, routing.get(), &norm, &weights).ok());
  EXPECT_EQ(norm.Value(), 0);
  embedding.Update(1, 0.1, 1, routing.get());
}

}  // namespace
}  // namespace elastor
