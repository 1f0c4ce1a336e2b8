#include <algorithm>
#include <utility>

#include "configs/proto/experiment.pb.h"
#include "trainer/cost/prediction.h"
#include "trainer/experiment/make_options.h"

namespace elastor {
namespace {

// Predictions of a search: so many, fewer where one takes long, by the ids and the pairs of ranks
// that it plays. A search then takes some ten seconds at most but for thousands of ranks.
constexpr int64_t kMostTries = 200;
constexpr int64_t kFewestTries = 8;
constexpr int64_t kSearchedIds = 50'000'000;
constexpr int64_t kIdsAPair = 30;

int64_t TriesOf(int64_t ids, int ranks) {
  const int64_t pairs = int64_t{ranks} * ranks;
  return std::clamp(kSearchedIds / (ids + kIdsAPair * pairs), kFewestTries, kMostTries);
}

std::vector<Placement> PlacementsOf(const ShardPlan& plan, int kind, size_t tables) {
  const bool whole = kind == ParallelConfig::TABLE_WISE;
  std::vector<Placement> placements(tables, whole ? Placement::kTableWise : Placement::kRowWise);
  for (size_t t = 0; t < tables; ++t) {
    if (plan.replicated(static_cast<int>(t))) placements[t] = Placement::kReplicated;
  }
  return placements;
}

// Nobody knows how many rows a keyed table without a limit will have on every rank.
bool MayReplicate(const TableSpec& table) { return !table.keyed || table.rows > 0; }

}  // namespace

StatusOr<PlanSearch> Predictor::ComparePlans(int ranks, int ranks_per_host, int64_t batch_rows) {
  PlanSearch search;
  Status beyond;
  for (int kind = 0; kind < kSimplePlans; ++kind) {
    Experiment experiment = *experiment_;
    experiment.mutable_parallel()->set_plan(static_cast<ParallelConfig::Plan>(kind));
    const StatusOr<ShardPlan> plan = MakePlan(experiment, tables(), ranks);
    if (!plan.ok()) {
      beyond = plan.status();
      continue;
    }
    ELASTOR_ASSIGN_OR_RETURN(search.simple[kind], PredictPlan(*plan, ranks_per_host, batch_rows));
    if (kind == ParallelConfig::REPLICATED && !std::ranges::all_of(tables(), MayReplicate))
      continue;
    if (!search.placements.empty() &&
        search.simple[kind]->step_seconds >= search.prediction.step_seconds) {
      continue;
    }
    search.prediction = *search.simple[kind];
    search.placements = PlacementsOf(*plan, kind, tables().size());
  }
  if (search.placements.empty() && !beyond.ok()) return beyond;
  return search;
}

StatusOr<PlanSearch> Predictor::SearchPlan(int ranks, int ranks_per_host, int64_t batch_rows) {
  if (searched_ && searched_->prediction.ranks == ranks && searched_rows_ == batch_rows) {
    return *searched_;
  }
  ELASTOR_ASSIGN_OR_RETURN(PlanSearch best, ComparePlans(ranks, ranks_per_host, batch_rows));
  ELASTOR_ASSIGN_OR_RETURN(const std::span<const SparseBatch> batches, BatchesOf(batch_rows));
  const auto ids = static_cast<int64_t>(batches.front().ids.size());
  int64_t tries = ranks == 1 ? 0 : TriesOf(ids, ranks);
  // Returns whether the placements are faster; then they are the best.
  const auto try_placements = [&](const std::vector<Placement>& placements) -> StatusOr<bool> {
    if (tries <= 0 || placements == best.placements) return false;
    const StatusOr<ShardPlan> plan = MakePlan(*experiment_, tables(), ranks, placements);
    if (!plan.ok()) return false;  // beyond the budget
    --tries;
    ELASTOR_ASSIGN_OR_RETURN(Prediction found, PredictPlan(*plan, ranks_per_host, batch_rows));
    if (found.step_seconds >= best.prediction.step_seconds) return false;
    best.prediction = std::move(found);
    best.placements = placements;
    return true;
  };

  // The smallest tables replicated, more and more of them, and the others alike. Those that serve
  // others go with them (ShardPlan::PlaceBeside).
  std::vector<size_t> by_size;
  for (size_t t = 0; t < tables().size(); ++t) {
    if (tables()[t].looked_up()) by_size.push_back(t);
  }
  std::ranges::stable_sort(by_size, {}, [&](size_t t) { return Elements(tables()[t]); });
  for (size_t eighths = 1; eighths < 8; ++eighths) {
    for (const Placement others : {Placement::kRowWise, Placement::kTableWise}) {
      std::vector<Placement> placements(tables().size(), others);
      for (size_t i = 0; i < by_size.size() * eighths / 8; ++i) {
        if (MayReplicate(tables()[by_size[i]])) placements[by_size[i]] = Placement::kReplicated;
      }
      ELASTOR_RETURN_IF_ERROR(try_placements(placements).status());
    }
  }
  // One table at a time, the largest first, until no change helps.
  for (bool changed = true; changed && tries > 0;) {
    changed = false;
    for (auto t = by_size.rbegin(); t != by_size.rend(); ++t) {
      for (const Placement other :
           {Placement::kRowWise, Placement::kTableWise, Placement::kReplicated}) {
        if (other == Placement::kReplicated && !MayReplicate(tables()[*t])) continue;
        std::vector<Placement> placements = best.placements;
        placements[*t] = other;
        ELASTOR_ASSIGN_OR_RETURN(const bool faster, try_placements(placements));
        changed = changed || faster;
      }
    }
  }
  if (const auto& simple = best.simple[ParallelConfig::AUTO];
      simple && (1 + kLeastGain) * best.prediction.step_seconds > simple->step_seconds) {
    Experiment experiment = *experiment_;
    experiment.mutable_parallel()->set_plan(ParallelConfig::AUTO);
    ELASTOR_ASSIGN_OR_RETURN(const ShardPlan plan, MakePlan(experiment, tables(), ranks));
    best.prediction = *simple;
    best.placements = PlacementsOf(plan, ParallelConfig::AUTO, tables().size());
  }
  searched_ = best;
  searched_rows_ = batch_rows;
  return best;
}

}  // namespace elastor
