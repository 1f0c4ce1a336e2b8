#ifndef ELASTOR_TESTS_TRAINER_CHECKPOINT_CHECKPOINT_TESTING_H_
#define ELASTOR_TESTS_TRAINER_CHECKPOINT_CHECKPOINT_TESTING_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "collective/communicator.h"
#include "core/base/status.h"
#include "core/base/thread_pool.h"
#include "embedding/shard_plan.h"
#include "embedding/sharded_embedding.h"
#include "trainer/checkpoint/checkpoint.h"
#include "trainer/step/dense_optimizer.h"

namespace elastor {

// A small training state: three dense parameters in two buckets, a long table, a short one and one
// whose rows training never met.
struct SmallModel {
  std::vector<TableSpec> tables = {
      {"long", 10000, 3, 0.1}, {"short", 20, 5, 0.1}, {"unseen", 7, 3, 0.1}};
  std::vector<int64_t> weight_shape = {4, 300};
  OptimizerKind dense = OptimizerKind::kDenseAdam;
  OptimizerKind sparse = OptimizerKind::kLazyAdam;
  bool track_touched = false;
  bool track_unpublished = false;
};

struct Layout {
  int ranks = 1;
  PlanKind plan = PlanKind::kRowWise;
  int threads = 1;
};

// Bytes that a writer may hold; more than any test has.
inline constexpr int64_t kStaging = int64_t{1} << 30;

// What SomeFacts is of.
ModelIdentity SomeModel();

// One rank's memory.
struct StateRank {
  StateRank(const SmallModel& model, const Layout& layout, Communicator* communicator);

  StateView View() {
    return {&parameters, [this] { return weights.data(); }, optimizer.get(), &tables,
            embedding.get()};
  }
  // The state after "training" with this seed: every value is a function of it, of names and
  // places. Rows of every third key of the long table and a few of the short one.
  void Fill(int seed);
  // An embedding step, in which each of these keys of the long table occurs in one row; no key
  // twice. CHECKs that it succeeds. step counts from 1.
  void Train(const std::vector<int64_t>& keys, int64_t step);
  // Marks as unpublished what such a step would have marked.
  void MarkUnpublished(const std::vector<int64_t>& keys);
  std::string Digest(const ControlRecord& control);

  Communicator* communicator;
  std::vector<TableSpec> tables;
  ShardPlan plan;
  ThreadPool pool;
  ParameterLayout parameters;
  std::vector<float> weights;
  std::unique_ptr<DenseOptimizer<float>> optimizer;
  std::unique_ptr<ShardedEmbedding<float>> embedding;
};

// fn on every rank, on threads; the status, which all must return.
Status OnRanks(const SmallModel& model, const Layout& layout,
               const std::function<Status(StateRank&)>& fn);

CheckpointMetadata SomeMetadata(Contents contents);

// Start and Finish of a state of this seed. digest: the state's.
Status Save(const SmallModel& model, const Layout& layout, const std::string& path,
            Contents contents, int seed, std::string* digest);
// A new folder of the running test.
std::string ScratchDirectory();

}  // namespace elastor

#endif  // ELASTOR_TESTS_TRAINER_CHECKPOINT_CHECKPOINT_TESTING_H_
