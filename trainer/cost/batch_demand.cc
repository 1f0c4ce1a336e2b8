#include "trainer/cost/batch_demand.h"

#include <utility>

#include "configs/proto/experiment.pb.h"
#include "core/base/random.h"
#include "embedding/id_route.h"
#include "embedding/route_count.h"
#include "embedding/unique_ids.h"
#include "trainer/data/batch.h"
#include "trainer/data/batch_source.h"
#include "trainer/experiment/make_options.h"

namespace elastor {
namespace {

// Returns rows of a batch, as the batch of a rank whose leaves have them.
SparseBatch RowsOf(const SparseBatch& whole, const Range& rows, const Range& own_leaves,
                   int64_t leaves) {
  SparseBatch part;
  part.rows = rows.size();
  part.fields = whole.fields;
  const int64_t first_bag = rows.begin * whole.fields;
  const int64_t last_bag = rows.end * whole.fields;
  int64_t first_id = first_bag, last_id = last_bag;
  if (!whole.offsets.empty()) {
    first_id = whole.offsets[first_bag];
    last_id = whole.offsets[last_bag];
    for (int64_t b = first_bag; b <= last_bag; ++b) {
      part.offsets.push_back(whole.offsets[b] - first_id);
    }
  }
  part.ids.assign(whole.ids.begin() + first_id, whole.ids.begin() + last_id);
  part.first_leaf = own_leaves.begin;
  for (int64_t leaf = own_leaves.begin; leaf < own_leaves.end; ++leaf) {
    part.leaf_offsets.push_back(RowsOfLeaf(leaf, leaves, whole.rows).begin - rows.begin);
  }
  part.leaf_offsets.push_back(rows.size());
  return part;
}

}  // namespace

StatusOr<JobDemand> CountDemand(const SparseBatch& whole, const SparseBatch* before,
                                const EmbeddingLayout& layout, const ShardPlan& plan,
                                int64_t leaves, const RankHosts* hosts) {
  const int ranks = plan.ranks();
  UniqueIds updated(&layout);
  if (before != nullptr) ELASTOR_RETURN_IF_ERROR(updated.Build(*before, nullptr));
  JobDemand demand;
  demand.batch.rows = whole.rows;
  demand.listed_keys.assign(ranks, 0);
  demand.sent_rows.assign(ranks, 0);
  demand.early_rows.assign(ranks, 0);
  demand.summed.assign(ranks, 0);
  for (int r = 0; r < ranks; ++r) {
    demand.rows.push_back(LocalPositions(whole.rows, r, ranks, leaves).size());
  }
  ELASTOR_ASSIGN_OR_RETURN(
      demand.batch.routes,
      CountRoutes(layout, plan, leaves, hosts, before == nullptr ? nullptr : &updated, [&](int r) {
        return RowsOf(whole, LocalPositions(whole.rows, r, ranks, leaves),
                      LeavesOfRank(r, ranks, leaves), leaves);
      }));
  for (const auto* leg : {&demand.batch.routes.of_rank, &demand.batch.routes.between}) {
    for (const RouteDemand& asked : *leg) {
      for (int owner = 0; owner < ranks; ++owner) {
        demand.listed_keys[owner] += asked.keys[owner];
        demand.sent_rows[owner] += asked.rows.receive[owner];
        demand.summed[owner] += asked.gradients.send[owner];
      }
    }
  }
  for (const VectorExchange& early : demand.batch.routes.early) {
    for (int owner = 0; owner < ranks; ++owner) demand.early_rows[owner] += early.receive[owner];
  }
  // One rank that has all rows asks every owner for each of its keys once.
  IdRoute all(&layout, &plan, /*rank=*/0, /*leaves=*/ranks, /*changes_gradients=*/true);
  ELASTOR_ASSIGN_OR_RETURN(RouteDemand different,
                           all.Count(RowsOf(whole, {0, whole.rows}, {0, 1}, 1), nullptr));
  demand.owned_keys = std::move(different.keys);
  return demand;
}

StatusOr<std::vector<SparseBatch>> FirstBatches(const Experiment& experiment,
                                                const ResolvedModel& model, const Dataset& dataset,
                                                int count) {
  BatchSource source(&dataset, MakeRowOrder(experiment),
                     {.batch_rows = experiment.training().batch_size(),
                      .leaves = experiment.parallel().virtual_shards(),
                      .epochs = count,
                      .sequences = model.graph.features().sequences});
  std::vector<SparseBatch> batches(count);
  for (SparseBatch& sparse : batches) {
    LocalBatch batch;
    ELASTOR_RETURN_IF_ERROR(source.Next(&batch));
    sparse = std::move(batch.sparse);
  }
  return batches;
}

SparseBatch UniformBatch(int64_t rows, std::span<const int32_t> bags, const ResolvedModel& model,
                         uint64_t stream) {
  SparseBatch batch;
  batch.rows = rows;
  batch.fields = static_cast<int64_t>(model.fields.size());
  const uint64_t key = MakeRandomKey(1, RandomPurpose::kSynthetic, stream);
  if (!bags.empty()) batch.offsets.push_back(0);
  for (int64_t bag = 0; bag < rows * batch.fields; ++bag) {
    const int64_t field = bag % batch.fields;
    const int64_t table_rows = model.tables[model.fields[field].table].rows;
    for (int i = 0; i < (bags.empty() ? 1 : bags[field]); ++i) {
      const auto at = static_cast<int64_t>(batch.ids.size());
      const auto bits =
          Philox(key, {static_cast<uint32_t>(at), static_cast<uint32_t>(at >> 32), 0, 0});
      const double share = UniformFromBits(bits[0]) + UniformFromBits(bits[1]) / 4294967296.0;
      batch.ids.push_back(
          std::min(table_rows - 1, static_cast<int64_t>(share * static_cast<double>(table_rows))));
    }
    if (!bags.empty()) batch.offsets.push_back(static_cast<int64_t>(batch.ids.size()));
  }
  batch.leaf_offsets = {0, rows};
  return batch;
}

}  // namespace elastor
