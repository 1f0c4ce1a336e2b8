#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "collective/communicator.h"
#include "embedding/cuda/device_embedding.h"
#include "gtest/gtest.h"
#include "tests/embedding/cuda/device_rank.h"
#include "tests/embedding/cuda/test_models.h"
#include "tests/embedding/embedding_batches.h"

// The face of device tables to checkpoints and digests, against that of the CPU's tables.

namespace elastor::cuda {
namespace {

constexpr int64_t kInHost = 40'000;  // device_bytes: the large tables lie in the host's memory

DeviceEmbedding::Options Options(OptimizerKind kind, uint64_t seed, int64_t device_bytes) {
  const Model model = OddModel();
  return {{model.tables, model.fields, Optimizer(kind, 0), seed, kLeaves}, device_bytes};
}

// Tables with some rows, on the CPU.
void Fill(CpuRank* cpu, int64_t rows) {
  const Model model = OddModel();
  const GlobalBatch batch = MakeBatch(model.tables, model.fields, rows, 3, Bags::kMultiHot);
  const auto fields = static_cast<int64_t>(model.fields.size());
  ASSERT_TRUE(
      cpu->embedding.RouteIds(RankBatch(batch, fields, 0, 1, kLeaves), cpu->routing.get()).ok());
  ASSERT_TRUE(
      cpu->embedding.Lookup(ShardedEmbedding<float>::Purpose::kTrain, cpu->routing.get()).ok());
}

void CopyRows(const EmbeddingState<float>& from, EmbeddingState<float>* to) {
  from.ForEachRow([&](int table, int64_t key, const float* weights, const float* slots) {
    to->SetRow(table, key, weights, slots);
  });
}

std::string DigestOf(const EmbeddingState<float>& state) {
  Digest digest;
  state.AddToDigest(&digest);
  return digest.Hex();
}

// Rows of some partitions, through ForEachRowOf; keys must ascend.
RowMap RowsOfPartitions(const EmbeddingState<float>& state, int table, const Range& partitions) {
  const int64_t width = OddModel().tables[table].width;
  const int64_t length = width + SlotElements(state.optimizer_kind(), width);
  RowMap found;
  int64_t last = -1;
  state.ForEachRowOf(table, partitions,
                     [&](std::span<const int64_t> keys, const float* const* rows) {
                       for (size_t i = 0; i < keys.size(); ++i) {
                         EXPECT_GT(keys[i], last);
                         last = keys[i];
                         found[{table, keys[i]}].assign(rows[i], rows[i] + length);
                       }
                     });
  return found;
}

// Visits cut at 1, 100 and 4,000 of 4,096 partitions give what the CPU's give.
void ExpectSameVisits(const EmbeddingState<float>& want, const EmbeddingState<float>& found) {
  for (int table = 0; table < static_cast<int>(OddModel().tables.size()); ++table) {
    EXPECT_EQ(found.CountRows(table), want.CountRows(table));
    int64_t begin = 0;
    for (int64_t end : {int64_t{1}, int64_t{100}, int64_t{4000}, kPartitions}) {
      EXPECT_EQ(RowsOfPartitions(found, table, {begin, end}),
                RowsOfPartitions(want, table, {begin, end}));
      begin = end;
    }
  }
}

class DeviceStateTest : public testing::TestWithParam<int64_t> {};

TEST_P(DeviceStateTest, RowsMoveThereAndBack) {
  // Large enough that table "long" has a last, partial run of partitions with rows in it.
  CpuRank cpu(OddModel(), Optimizer(OptimizerKind::kAdagrad, 0), kSeed);
  Fill(&cpu, 2000);
  const ShardPlan plan = MakePlan(OddModel(), PlanKind::kRowWise, 1);
  const auto communicator = MakeSelfCommunicator();
  DeviceRank rank(Options(OptimizerKind::kAdagrad, kSeed + 1, GetParam()), &plan,
                  communicator.get());
  CopyRows(cpu.embedding, &rank.embedding());
  EXPECT_EQ(DigestOf(rank.embedding()), DigestOf(cpu.embedding));
  EXPECT_EQ(RowsOf(rank.embedding(), OddModel()), RowsOf(cpu.embedding, OddModel()));
  ExpectSameVisits(cpu.embedding, rank.embedding());
  CpuRank back(OddModel(), Optimizer(OptimizerKind::kAdagrad, 0), kSeed + 2);
  CopyRows(rank.embedding(), &back.embedding);
  EXPECT_EQ(DigestOf(back.embedding), DigestOf(cpu.embedding));
}

TEST_P(DeviceStateTest, RowsMoveToSeveralRanks) {
  CpuRank cpu(OddModel(), Optimizer(OptimizerKind::kLazyAdam, 0), kSeed);
  Fill(&cpu, 300);
  for (PlanKind kind : {PlanKind::kRowWise, PlanKind::kReplicated}) {
    const ShardPlan plan = MakePlan(OddModel(), kind, 3);
    std::vector<Digest> digests(3);
    std::vector<RowMap> rows(3);
    std::vector<RowMap> rows_by_partition(3);
    OnRanks(3, [&](int r, Communicator* communicator) {
      DeviceRank rank(Options(OptimizerKind::kLazyAdam, kSeed + 1, GetParam()), &plan,
                      communicator);
      CopyRows(cpu.embedding, &rank.embedding());
      rank.embedding().AddToDigest(&digests[r]);
      rows[r] = RowsOf(rank.embedding(), OddModel());
      for (int table = 0; table < 5; ++table) {
        rows_by_partition[r].merge(RowsOfPartitions(rank.embedding(), table, {0, kPartitions}));
      }
    });
    Digest digest;
    RowMap all;
    for (int r = 0; r < 3; ++r) {
      digest.Merge(digests[r]);
      EXPECT_EQ(rows[r], rows_by_partition[r]);
      all.merge(rows[r]);
      EXPECT_TRUE(rows[r].empty()) << "rows of two primary replicas";
    }
    Digest want;
    cpu.embedding.AddToDigest(&want);
    EXPECT_EQ(digest.Hex(), want.Hex());
    EXPECT_EQ(all, RowsOf(cpu.embedding, OddModel()));
  }
}

TEST_P(DeviceStateTest, WeightsAloneKeepOrStartSlots) {
  const ShardPlan plan = MakePlan(OddModel(), PlanKind::kRowWise, 1);
  const auto communicator = MakeSelfCommunicator();
  DeviceRank rank(Options(OptimizerKind::kRowWiseAdagrad, kSeed, GetParam()), &plan,
                  communicator.get());
  DeviceEmbedding& embedding = rank.embedding();
  const std::vector<float> first = {1, 2, 3, 4, 5}, second = {6, 7, 8, 9, 10};
  const float slot = 7;
  embedding.SetRow(3, 9000, first.data(), nullptr);  // new: the initial slot
  embedding.SetRow(3, 4, first.data(), &slot);
  embedding.SetRow(3, 4, second.data(), nullptr);  // both wait to be sent
  embedding.SetRow(3, 5, first.data(), &slot);
  Digest digest;
  embedding.AddToDigest(&digest);                  // sends them
  embedding.SetRow(3, 5, second.data(), nullptr);  // one is there already
  const RowMap want = {{{3, 4}, {6, 7, 8, 9, 10, 7}},
                       {{3, 5}, {6, 7, 8, 9, 10, 7}},
                       {{3, 9000}, {1, 2, 3, 4, 5, 0.1f}}};
  EXPECT_EQ(RowsOf(embedding, OddModel()), want);
  embedding.ForgetRows();
  EXPECT_EQ(RowsOf(embedding, OddModel()), RowMap());
}

TEST_P(DeviceStateTest, RowsSetBetweenStepsAreLookedUp) {
  const Model model = OddModel();
  const ShardPlan plan = MakePlan(model, PlanKind::kRowWise, 1);
  const auto communicator = MakeSelfCommunicator();
  DeviceRank rank(Options(OptimizerKind::kSgd, kSeed, GetParam()), &plan, communicator.get());
  const GlobalBatch batch = MakeBatch(model.tables, model.fields, 16, 1, Bags::kSingleId);
  const std::vector<float> ones(20, 1.0f);
  for (int pass = 0; pass < 2; ++pass) {  // the second time rows may lie in the cache
    ASSERT_TRUE(rank.RouteIds(batch).ok());
    ASSERT_TRUE(rank.Lookup(DeviceEmbedding::Purpose::kTrain).ok());
    rank.Place(batch);
    const float first = rank.ReturnRows<float>()[5][0];
    EXPECT_EQ(first == 1.0f, pass == 1);
    rank.embedding().SetRow(0, batch.bags[5][0][0], ones.data(), nullptr);
  }
}

TEST_P(DeviceStateTest, SetAndVisitedByThreads) {
  const ShardPlan plan = MakePlan(OddModel(), PlanKind::kRowWise, 1);
  const auto communicator = MakeSelfCommunicator();
  DeviceRank rank(Options(OptimizerKind::kSgd, kSeed, GetParam()), &plan, communicator.get());
  const auto on_threads = [](const auto& work) {
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) threads.emplace_back([&, i] { work(i); });
    for (std::thread& thread : threads) thread.join();
  };
  on_threads([&](int thread) {
    for (int64_t key = thread; key < 5000; key += 4) {
      const std::vector<float> row(20, static_cast<float>(key));
      rank.embedding().SetRow(0, key, row.data(), nullptr);
    }
  });
  std::vector<RowMap> rows(4);
  on_threads([&](int thread) {
    rows[thread] = RowsOfPartitions(rank.embedding(), 0, {1024 * thread, 1024 * (thread + 1)});
  });
  RowMap all;
  for (RowMap& part : rows) all.merge(part);
  EXPECT_EQ(all.size(), 5000u);
  for (const auto& [key, row] : all) {
    EXPECT_EQ(row, std::vector<float>(20, static_cast<float>(key.second)));
  }
}

INSTANTIATE_TEST_SUITE_P(Places, DeviceStateTest, testing::Values(0, kInHost),
                         [](const auto& info) {
                           return std::string(info.param == 0 ? "Device" : "Host");
                         });

TEST(DeviceState, DenseAdamHasAllRows) {
  const Model model = EvenModel();
  const ShardPlan plan = MakePlan(model, PlanKind::kRowWise, 1);
  const auto communicator = MakeSelfCommunicator();
  const SparseOptimizerOptions optimizer = Optimizer(OptimizerKind::kDenseAdam, 0);
  CpuRank cpu(model, optimizer, kSeed);
  DeviceRank rank({model.tables, model.fields, optimizer, kSeed, kLeaves, 0}, &plan,
                  communicator.get());
  EXPECT_EQ(DigestOf(rank.embedding()), DigestOf(cpu.embedding));
  const std::vector<float> zeros(200, 0.0f);
  rank.embedding().SetRow(0, 7, zeros.data(), zeros.data());
  EXPECT_NE(DigestOf(rank.embedding()), DigestOf(cpu.embedding));
  rank.embedding().ForgetRows();
  EXPECT_EQ(DigestOf(rank.embedding()), DigestOf(cpu.embedding));
}

}  // namespace
}  // namespace elastor::cuda
