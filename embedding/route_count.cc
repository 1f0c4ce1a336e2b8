#include "embedding/route_count.h"

#include <memory>
#include <utility>

#include "core/base/log.h"
#include "embedding/early_rows.h"
#include "embedding/id_route.h"

namespace elastor {

StatusOr<RouteCounts> CountRoutes(const EmbeddingLayout& layout, const ShardPlan& plan,
                                  int64_t leaves, const RankHosts* hosts, const UniqueIds* updated,
                                  const std::function<SparseBatch(int rank)>& batch_of) {
  const int ranks = plan.ranks();
  RouteCounts counts;
  counts.of_rank.resize(ranks);
  const auto count = [&](int rank) -> StatusOr<std::unique_ptr<IdRoute>> {
    auto route = std::make_unique<IdRoute>(&layout, &plan, rank, leaves,
                                           /*changes_gradients=*/true, hosts);
    ELASTOR_ASSIGN_OR_RETURN(counts.of_rank[rank], route->Count(batch_of(rank), /*pool=*/nullptr));
    return route;
  };
  if (hosts == nullptr) {
    for (int r = 0; r < ranks; ++r) {
      ELASTOR_ASSIGN_OR_RETURN(const std::unique_ptr<IdRoute> route, count(r));
      if (updated == nullptr) continue;
      counts.early.push_back(CountEarlyRows(layout, plan, r, *updated, *route));
    }
    return counts;
  }
  CHECK(updated == nullptr) << "no rows are early by host";
  counts.between.resize(ranks);
  for (int host = 0; host < hosts->hosts(); ++host) {
    std::vector<std::unique_ptr<IdRoute>> routes;
    std::vector<IdRoute*> within;
    for (const int r : hosts->RanksOf(host)) {
      ELASTOR_ASSIGN_OR_RETURN(std::unique_ptr<IdRoute> route, count(r));
      within.push_back(route.get());
      routes.push_back(std::move(route));
    }
    for (size_t i = 0; i < within.size(); ++i) {
      within[i]->Gather(within);
      counts.between[hosts->RanksOf(host)[i]] = IdRoute(within[i]).CountGathered();
    }
  }
  return counts;
}

}  // namespace elastor
