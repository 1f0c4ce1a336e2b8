#ifndef ELASTOR_TESTS_EMBEDDING_CUDA_TEST_MODELS_H_
#define ELASTOR_TESTS_EMBEDDING_CUDA_TEST_MODELS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "collective/communicator.h"
#include "core/base/log.h"
#include "core/base/thread_pool.h"
#include "embedding/embedding_state.h"
#include "embedding/shard_plan.h"
#include "embedding/sharded_embedding.h"
#include "embedding/sparse_optimizer.h"
#include "embedding/table.h"

namespace elastor::cuda {

inline constexpr uint64_t kSeed = 20260;
inline constexpr int64_t kLeaves = 8;

struct Model {
  std::vector<TableSpec> tables;
  std::vector<FieldSpec> fields;
};

// Any widths: loads of one element.
inline Model OddModel() {
  return {{{"many", 5000, 20, 0.1},
           {"shared", 37, 3, 0.1},
           {"one_row", 1, 8, 0.1},
           {"long", 9001, 5, 0.1},
           {"unused", 3, 4, 0.1}},
          {{"a", 0, Pooling::kSum},
           {"b", 1, Pooling::kSum},
           {"c", 3, Pooling::kMean},
           {"d", 1, Pooling::kMean},
           {"e", 2, Pooling::kSum},
           {"f", 3, Pooling::kSum}}};
}

// Widths of a multiple of four: loads of four. The widest takes two turns of a warp.
inline Model EvenModel() {
  return {{{"many", 5000, 16, 0.1}, {"wide", 37, 132, 0.1}, {"one_row", 1, 4, 0.1}},
          {{"a", 0, Pooling::kSum}, {"b", 1, Pooling::kMean}, {"c", 2, Pooling::kSum}}};
}

inline SparseOptimizerOptions Optimizer(OptimizerKind kind, double l2) {
  SparseOptimizerOptions options;
  options.rule.kind = kind;
  options.l2 = l2;
  options.rule.initial_accumulator = 0.1;
  return options;
}

using RowMap = std::map<std::pair<int, int64_t>, std::vector<float>>;  // weights, then slots

inline RowMap RowsOf(const EmbeddingState<float>& state, const Model& model) {
  RowMap rows;
  state.ForEachRow([&](int table, int64_t key, const float* weights, const float* slots) {
    const int64_t width = model.tables[table].width;
    std::vector<float>& row = rows[{table, key}];
    CHECK(row.empty()) << "visited twice";
    row.assign(weights, weights + width);
    row.insert(row.end(), slots, slots + SlotElements(state.optimizer_kind(), width));
  });
  return rows;
}

inline ShardPlan MakePlan(const Model& model, PlanKind kind, int ranks) {
  std::vector<int64_t> bytes;
  for (const TableSpec& table : model.tables) bytes.push_back(table.width * 4);
  StatusOr<ShardPlan> plan = ShardPlan::Make(kind, model.tables, bytes, ranks, 0);
  CHECK(plan.ok());
  return *plan;
}

// The CPU's rank 0 of 1.
struct CpuRank {
  CpuRank(const Model& model, const SparseOptimizerOptions& optimizer, uint64_t seed)
      : plan(MakePlan(model, PlanKind::kRowWise, 1)),
        communicator(MakeSelfCommunicator()),
        pool(1),
        embedding({model.tables, model.fields, optimizer, seed, kLeaves}, &plan, communicator.get(),
                  &pool),
        routing(embedding.MakeRouting()) {}

  ShardPlan plan;
  std::unique_ptr<Communicator> communicator;
  ThreadPool pool;
  ShardedEmbedding<float> embedding;
  std::unique_ptr<ShardedEmbedding<float>::Routing> routing;
};

// work(rank, its host communicator) on a thread each.
template <typename Work>
void OnRanks(int ranks, const Work& work) {
  auto communicators = MakeThreadCommunicators(ranks, {});
  std::vector<std::thread> threads;
  for (int r = 0; r < ranks; ++r) {
    threads.emplace_back([&, r] { work(r, communicators[r].get()); });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace elastor::cuda

#endif  // ELASTOR_TESTS_EMBEDDING_CUDA_TEST_MODELS_H_
