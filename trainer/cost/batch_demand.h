#ifndef ELASTOR_TRAINER_COST_BATCH_DEMAND_H_
#define ELASTOR_TRAINER_COST_BATCH_DEMAND_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "embedding/embedding_layout.h"
#include "embedding/shard_plan.h"
#include "embedding/table.h"
#include "trainer/data/dataset.h"
#include "trainer/experiment/resolved_model.h"
#include "trainer/step/step_calls.h"

namespace elastor {

class Experiment;

// What one batch asks of every rank of a job.
struct JobDemand {
  BatchDemand batch;
  std::vector<int64_t> rows;        // of the batch, by rank
  std::vector<int64_t> owned_keys;  // by owner: different keys
  // By owner, and by rank that gathers for owners: keys on the lists of all ranks, its own
  // included; elements of rows for other ranks; elements of gradients that it adds.
  std::vector<int64_t> listed_keys;
  std::vector<int64_t> sent_rows;
  std::vector<int64_t> summed;
  std::vector<int64_t> early_rows;  // those of sent_rows that are early
};

// Counts the demand of the batch `whole`, of all ranks' rows, by the code that routes ids
// (CountRoutes). before: the batch of the step before, if rows are sent early; else null. User
// error if an id is outside its table.
StatusOr<JobDemand> CountDemand(const SparseBatch& whole, const SparseBatch* before,
                                const EmbeddingLayout& layout, const ShardPlan& plan,
                                int64_t leaves, const RankHosts* hosts);

// Returns the first `count` training batches of the data set, as one rank reads them, epoch after
// epoch.
StatusOr<std::vector<SparseBatch>> FirstBatches(const Experiment& experiment,
                                                const ResolvedModel& model, const Dataset& dataset,
                                                int count);
// Returns a batch of ids that lie uniformly among those of their tables, from a fixed seed for each
// stream. bags: ids of a row by field; empty: one each.
SparseBatch UniformBatch(int64_t rows, std::span<const int32_t> bags, const ResolvedModel& model,
                         uint64_t stream = 0);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_COST_BATCH_DEMAND_H_
