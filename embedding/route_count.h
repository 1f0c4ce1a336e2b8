#ifndef ELASTOR_EMBEDDING_ROUTE_COUNT_H_
#define ELASTOR_EMBEDDING_ROUTE_COUNT_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "collective/rank_hosts.h"
#include "core/base/status.h"
#include "embedding/embedding_layout.h"
#include "embedding/exchange_places.h"
#include "embedding/shard_plan.h"
#include "embedding/table.h"
#include "embedding/unique_ids.h"

namespace elastor {

// What one batch asks of all ranks, by requester. By host, `of_rank` is the leg within hosts, and
// `between` the leg between them; otherwise `between` is empty.
struct RouteCounts {
  std::vector<RouteDemand> of_rank;
  std::vector<RouteDemand> between;
  // What of these rows is received while the step before computes (CountEarlyRows); empty: no such
  // exchange is made.
  std::vector<VectorExchange> early;
};

// Counts by the code that routes ids (IdRoute), without a communicator. batch_of: returns a rank's
// batch. hosts: null unless vectors go by host. updated: ids of the step before, of all ranks, if
// rows are sent early (HasEarlyRows); else null. User error if an id is outside its table.
StatusOr<RouteCounts> CountRoutes(const EmbeddingLayout& layout, const ShardPlan& plan,
                                  int64_t leaves, const RankHosts* hosts, const UniqueIds* updated,
                                  const std::function<SparseBatch(int rank)>& batch_of);

}  // namespace elastor

#endif  // ELASTOR_EMBEDDING_ROUTE_COUNT_H_
