#include "embedding/sharded_embedding.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <type_traits>
#include <vector>

#include "collective/communicator.h"
#include "core/base/leaves.h"
#include "core/base/log.h"
#include "core/base/thread_pool.h"
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
Expected<T> RunReference(const SparseOptimizerOptions& optimizer, int64_t leaves) {
  SetCanonicalFloatingPoint();
  Expected<T> expected;
  expected.reference =
      std::make_unique<EmbeddingReference<T>>(Tables(), Fields(), optimizer, kSeed, leaves);
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
};

std::string PrintLayout(const Layout& layout) {
  return "ranks " + std::to_string(layout.ranks) + " plan " +
         std::to_string(static_cast<int>(layout.plan)) + " threads " +
         std::to_string(layout.threads) + " leaves " + std::to_string(layout.leaves) +
         (layout.keyed ? " keyed" : "");
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
        embedding_({Tables(layout.keyed), Fields(), optimizer, kSeed, layout.leaves}, plan,
                   communicator, &pool_),
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

TEST_P(ShardedEmbeddingTest, EveryLayoutEqualsTheReference) {
  const SparseOptimizerOptions optimizer = Optimizer(GetParam(), 0.01);
  for (int64_t leaves : {8, 16}) {
    const Expected<float> expected = RunReference<float>(optimizer, leaves);
    for (int ranks : {1, 2, 3, 4, 7, 8}) {
      for (PlanKind plan :
           {PlanKind::kRowWise, PlanKind::kTableWise, PlanKind::kReplicated, PlanKind::kAuto}) {
        const int threads = 1 + (ranks + static_cast<int>(plan)) % 2;
        RunLayout<float>({ranks, plan, threads, leaves}, optimizer, expected);
        if (HasFatalFailure()) return;
      }
    }
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
    const ShardPlan plan = MakePlan(PlanKind::kRowWise, 3);
    auto communicators = MakeThreadCommunicators(3, {});
    std::vector<std::thread> threads;
    std::vector<std::string> messages(3), second(3);
    GlobalBatch batch = MakeBatch(16, 1, Bags::kMultiHot);
    batch.bags[12][1] = {5, bad};
    for (int r = 0; r < 3; ++r) {
      threads.emplace_back([&, r] {
        ThreadPool pool(1);
        ShardedEmbedding<float> embedding(
            {Tables(), Fields(), Optimizer(OptimizerKind::kSgd, 0), kSeed, 8}, &plan,
            communicators[r].get(), &pool);
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

// ---- Rules of keyed tables

// What is left of a stream of keys by the rules' definition, key by key. Scores are those of the
// policy, worked out here from the steps and counts of every row.
class RuledKeys {
 public:
  explicit RuledKeys(const RowRules& rules) : rules_(rules) {}

  // Returns how many rows left.
  int64_t Step(const std::vector<uint64_t>& keys, int64_t step) {
    std::map<uint64_t, int64_t> counts;
    for (const uint64_t key : keys) ++counts[key];
    for (const auto& [key, count] : counts) {
      Row& row = rows_[key];
      row.count += count;
      row.weight += count * Weight(step);
      row.last = step;
    }
    const size_t before = rows_.size();
    const bool full = before > static_cast<size_t>(rules_.capacity);
    if (!full && step % rules_.evict_every_steps != 0) return 0;
    if (rules_.policy == RowRules::Policy::kTtlSteps) {
      std::erase_if(rows_,
                    [&](const auto& row) { return step - row.second.last > rules_.ttl_steps; });
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

struct RuledOutcome {
  std::vector<int64_t> evicted;  // by step
  std::set<uint64_t> keys;
  Digest digest;
};

// The stream under a table's rules on one layout.
RuledOutcome RunRules(const RowRules& rules, const Layout& layout, int64_t steps) {
  TableSpec table = {"t", rules.capacity, 3, 0.1};
  table.keyed = true;
  table.keeps_use = rules.keeps_use();
  table.rules = rules;
  const int64_t bytes = 16;
  const ShardPlan plan = *ShardPlan::Make(layout.plan, {&table, 1}, {&bytes, 1}, layout.ranks, 0);
  auto communicators = MakeThreadCommunicators(layout.ranks, {});
  std::vector<std::thread> threads;
  RuledOutcome outcome;
  std::mutex mutex;
  for (int r = 0; r < layout.ranks; ++r) {
    threads.emplace_back([&, r] {
      ThreadPool pool(layout.threads);
      Communicator& communicator = *communicators[r];
      ShardedEmbedding<float> embedding({{table},
                                         {{"a", 0, Pooling::kSum}, {"b", 0, Pooling::kSum}},
                                         Optimizer(OptimizerKind::kRowWiseAdagrad, 0),
                                         kSeed,
                                         layout.leaves},
                                        &plan, &communicator, &pool);
      auto routing = embedding.MakeRouting();
      for (int64_t step = 1; step <= steps; ++step) {
        const std::vector<uint64_t> keys = StreamKeys(step);
        GlobalBatch batch;
        for (size_t i = 0; i < keys.size(); i += 2) {
          batch.bags.push_back(
              {{static_cast<int64_t>(keys[i])}, {static_cast<int64_t>(keys[i + 1])}});
        }
        const SparseBatch mine = RankBatch(batch, 2, r, layout.ranks, layout.leaves);
        ASSERT_TRUE(embedding.RouteIds(mine, routing.get()).ok());
        ASSERT_TRUE(embedding.Lookup(ShardedEmbedding<float>::Purpose::kTrain, routing.get()).ok());
        std::vector<float> memory(PanelElements(mine.rows, 6), 0.5f);
        embedding.TakeGradients(0, {memory.data(), mine.rows, 6, PanelStride(6)}, routing.get());
        ExactSum norm, weights;
        ASSERT_TRUE(embedding.RouteGradients(batch.rows(), routing.get(), &norm, &weights).ok());
        std::vector<int64_t> counts = embedding.CountKeyedRows(*routing);
        ASSERT_TRUE(communicator.AllReduceSum(Phase::kScalars, counts).ok());
        embedding.Update(1, 0.1, step, routing.get());
        ASSERT_EQ(embedding.ApplyRules(step, counts).message(), "");
        if (r == 0) outcome.evicted.push_back(embedding.keyed_tables()[0].evicted);
      }
      const std::lock_guard lock(mutex);
      embedding.AddToDigest(&outcome.digest);
      embedding.ForEachRow([&](int, int64_t key, const float*, const float*) {
        outcome.keys.insert(static_cast<uint64_t>(key));
      });
    });
  }
  for (std::thread& thread : threads) thread.join();
  return outcome;
}

TEST(RowRulesTest, RowsLeaveByScoreAndKeyOnAnyLayout) {
  using Policy = RowRules::Policy;
  constexpr int64_t kSteps = 40;
  for (const Policy policy :
       {Policy::kLru, Policy::kLfu, Policy::kDecayedLfu, Policy::kTtlSteps, Policy::kL2}) {
    SCOPED_TRACE(static_cast<int>(policy));
    const RowRules rules = {.policy = policy,
                            .capacity = 70,
                            .evicts_when_full = true,
                            .evict_to = 45,
                            .evict_every_steps = 9,
                            .ttl_steps = 2,
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
                                 {4, PlanKind::kTableWise, 2, 8},
                                 {3, PlanKind::kReplicated, 2, 8},
                                 {8, PlanKind::kRowWise, 1, 8}}) {
      SCOPED_TRACE(PrintLayout(layout));
      const RuledOutcome found = RunRules(rules, layout, kSteps);
      EXPECT_EQ(found.evicted, expected.evicted);
      EXPECT_EQ(found.keys, expected.keys);
      EXPECT_EQ(found.digest.Hex(), expected.digest.Hex());
    }
  }
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
