#include "embedding/shard_plan.h"

#include <algorithm>
#include <iomanip>
#include <numeric>
#include <sstream>

#include "core/base/log.h"
#include "core/base/sizes.h"

namespace elastor {
namespace {

// kAuto replicates a table of at most this many elements: it cannot be spread evenly over many
// ranks, and sending all its gradients to everybody costs next to nothing.
constexpr int64_t kReplicatedElements = 4096;

// Rows of a partition, where a keyed table holds its capacity evenly.
int64_t RowsInPartition(const TableSpec& table, int64_t partition) {
  return KeySpace{.rows = table.rows}.RowsIn(partition);
}

std::string Mebibytes(int64_t bytes) {
  std::ostringstream out;
  out << std::fixed << std::setprecision(1) << static_cast<double>(bytes) / (1 << 20) << " MiB";
  return out.str();
}

Status CheckTable(const TableSpec& table, int64_t bytes_per_row) {
  if (table.rows < (table.keyed ? 0 : 1) || table.width < 1) {
    return UserError("embedding table '" + table.name +
                     "': expected rows >= 1 and width >= 1, found " + std::to_string(table.rows) +
                     " rows of width " + std::to_string(table.width));
  }
  CHECK_GE(bytes_per_row, 1) << table.name;
  return OkStatus();
}

}  // namespace

int64_t Elements(const TableSpec& table) {
  return table.keyed && table.rows == 0 ? kMostSize : SizeProduct({table.rows, table.width});
}

StatusOr<ShardPlan> ShardPlan::Make(PlanKind kind, std::span<const TableSpec> tables,
                                    std::span<const int64_t> bytes_per_row, int ranks,
                                    int64_t budget_bytes) {
  const Placement all = kind == PlanKind::kTableWise    ? Placement::kTableWise
                        : kind == PlanKind::kReplicated ? Placement::kReplicated
                                                        : Placement::kRowWise;
  const std::vector<Placement> placements(tables.size(), all);
  ELASTOR_ASSIGN_OR_RETURN(ShardPlan plan, Place(placements, tables, bytes_per_row, ranks));
  if (kind == PlanKind::kAuto) plan.ReplicateSmallTables(budget_bytes);
  ELASTOR_RETURN_IF_ERROR(plan.CheckBudget(budget_bytes));
  return plan;
}

StatusOr<ShardPlan> ShardPlan::Make(std::span<const Placement> placements,
                                    std::span<const TableSpec> tables,
                                    std::span<const int64_t> bytes_per_row, int ranks,
                                    int64_t budget_bytes) {
  ELASTOR_ASSIGN_OR_RETURN(ShardPlan plan, Place(placements, tables, bytes_per_row, ranks));
  ELASTOR_RETURN_IF_ERROR(plan.CheckBudget(budget_bytes));
  return plan;
}

StatusOr<ShardPlan> ShardPlan::Place(std::span<const Placement> placements,
                                     std::span<const TableSpec> tables,
                                     std::span<const int64_t> bytes_per_row, int ranks) {
  CHECK_GE(ranks, 1);
  CHECK_EQ(tables.size(), bytes_per_row.size());
  CHECK_EQ(tables.size(), placements.size());
  for (size_t t = 0; t < tables.size(); ++t) {
    ELASTOR_RETURN_IF_ERROR(CheckTable(tables[t], bytes_per_row[t]));
  }
  ShardPlan plan;
  plan.ranks_ = ranks;
  plan.tables_.assign(tables.begin(), tables.end());
  plan.bytes_per_row_.assign(bytes_per_row.begin(), bytes_per_row.end());
  for (const Placement placement : placements) {
    plan.replicated_.push_back(placement == Placement::kReplicated);
  }
  plan.owners_.assign(tables.size() * kPartitions, 0);
  plan.DealPartitions();
  plan.PlaceWholeTables(placements);
  plan.PlaceBeside();
  return plan;
}

void ShardPlan::PlaceBeside() {
  for (size_t t = 0; t < tables_.size(); ++t) {
    const int beside = tables_[t].beside;
    if (beside < 0) continue;
    replicated_[t] = replicated_[beside];
    std::copy_n(owners_.begin() + beside * kPartitions, kPartitions,
                owners_.begin() + t * kPartitions);
  }
}

void ShardPlan::DealPartitions() {
  if (ranks_ == 1) return;
  // Dealing goes on where the last table's rows ended, so that small tables spread over the ranks.
  int64_t first = 0;
  for (size_t t = 0; t < tables_.size(); ++t) {
    int owner = static_cast<int>(first);
    for (int64_t p = 0; p < kPartitions; ++p) {
      owners_[t * kPartitions + p] = owner;
      if (++owner == ranks_) owner = 0;
    }
    const int64_t partitions = tables_[t].keyed ? kPartitions : tables_[t].rows;
    first = (first + std::min(partitions, kPartitions)) % ranks_;
  }
}

int64_t ShardPlan::BytesOf(size_t table) const {
  return SizeProduct({tables_[table].rows, bytes_per_row_[table]});
}

// Rows of the other tables lie evenly on the ranks, and do not count. Nobody knows what a keyed
// table without a limit becomes: it stays row-wise, since it may outgrow one rank.
void ShardPlan::PlaceWholeTables(std::span<const Placement> placements) {
  std::vector<size_t> order;
  for (size_t t = 0; t < tables_.size(); ++t) {
    const bool limited = !tables_[t].keyed || tables_[t].rows > 0;
    if (placements[t] == Placement::kTableWise && limited) order.push_back(t);
  }
  std::stable_sort(order.begin(), order.end(),
                   [this](size_t a, size_t b) { return BytesOf(a) > BytesOf(b); });
  std::vector<int64_t> load(ranks_, 0);
  for (size_t t : order) {
    if (!tables_[t].looked_up()) continue;
    const auto least = std::min_element(load.begin(), load.end());
    AddSize(BytesOf(t), &*least);
    std::fill_n(owners_.begin() + t * kPartitions, kPartitions,
                static_cast<int>(least - load.begin()));
  }
}

void ShardPlan::ReplicateSmallTables(int64_t budget_bytes) {
  const auto replicate = [this](size_t table, bool replicated) {
    for (size_t t = 0; t < tables_.size(); ++t) {
      if (t == table || tables_[t].beside == static_cast<int>(table)) replicated_[t] = replicated;
    }
  };
  std::vector<size_t> order(tables_.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [this](size_t a, size_t b) {
    return Elements(tables_[a]) < Elements(tables_[b]);
  });
  for (size_t t : order) {
    if (Elements(tables_[t]) > kReplicatedElements) break;
    if (!tables_[t].looked_up()) continue;
    replicate(t, true);
    if (CheckBudget(budget_bytes).ok()) continue;
    replicate(t, false);
    break;
  }
}

Status ShardPlan::CheckBudget(int64_t budget_bytes) const {
  if (budget_bytes <= 0) return OkStatus();
  const std::vector<int64_t> bytes = BytesOfRanks();
  for (int rank = 0; rank < ranks_; ++rank) {
    if (bytes[rank] <= budget_bytes) continue;
    return UserError("parallel.memory_budget_bytes: rank " + std::to_string(rank) + " of " +
                     std::to_string(ranks_) + " would hold " + std::to_string(bytes[rank]) +
                     " bytes of embedding rows, the budget is " + std::to_string(budget_bytes) +
                     "; use more ranks, a smaller embedding width, an optimizer with fewer slots "
                     "or a larger budget");
  }
  return OkStatus();
}

std::vector<int32_t> ShardPlan::PartitionsOnRank(int table, int rank) const {
  std::vector<int32_t> partitions;
  for (int64_t p = 0; p < kPartitions; ++p) {
    if (Stores(table, p, rank)) partitions.push_back(static_cast<int32_t>(p));
  }
  return partitions;
}

int64_t ShardPlan::RowsOnRank(int table, int rank) const {
  const int64_t rows = tables_[table].rows;
  if (replicated_[table] || ranks_ == 1) return rows;
  int64_t sum = 0;
  for (int64_t p = 0; p < std::min(rows, kPartitions); ++p) {
    if (Owner(table, p) == rank) sum += RowsInPartition(tables_[table], p);
  }
  return sum;
}

std::vector<int64_t> ShardPlan::BytesOfRanks() const {
  std::vector<int64_t> bytes(ranks_, 0);
  for (size_t t = 0; t < tables_.size(); ++t) {
    if (replicated_[t]) {
      for (int64_t& sum : bytes) AddSize(BytesOf(t), &sum);
      continue;
    }
    const int64_t rows = tables_[t].rows;
    for (int64_t p = 0; p < std::min(rows, kPartitions); ++p) {
      AddSize(SizeProduct({RowsInPartition(tables_[t], p), bytes_per_row_[t]}),
              &bytes[owners_[t * kPartitions + p]]);
    }
  }
  return bytes;
}

std::string ShardPlan::PlacementOf(int table) const {
  if (replicated_[table]) return "replicated";
  const auto begin = owners_.begin() + table * kPartitions;
  const bool whole = std::all_of(begin, begin + kPartitions, [&](int r) { return r == *begin; });
  return whole ? "rank " + std::to_string(*begin) : "row-wise";
}

std::string ShardPlan::ToString() const {
  size_t name_width = 5;
  for (const TableSpec& table : tables_) name_width = std::max(name_width, table.name.size());
  std::ostringstream out;
  const auto name = static_cast<int>(name_width);
  out << std::left << std::setw(name) << "table" << std::right << std::setw(15) << "rows"
      << std::setw(7) << "width" << std::setw(15) << "size"
      << "  placement\n";
  for (size_t t = 0; t < tables_.size(); ++t) {
    out << std::left << std::setw(name) << tables_[t].name << std::right << std::setw(15)
        << (tables_[t].keyed && tables_[t].rows == 0 ? "no limit" : std::to_string(tables_[t].rows))
        << std::setw(7) << tables_[t].width << std::setw(15) << Mebibytes(BytesOf(t)) << "  "
        << PlacementOf(static_cast<int>(t)) << (tables_[t].keyed ? ", keyed" : "") << "\n";
  }
  const std::vector<int64_t> bytes = BytesOfRanks();
  // Neighbours that show the same size share a line: a plan for 1,024 ranks stays readable.
  for (int first = 0, rank = 1; rank <= ranks_; ++rank) {
    const std::string size = Mebibytes(bytes[first]);
    if (rank < ranks_ && Mebibytes(bytes[rank]) == size) continue;
    out << (rank - first == 1 ? "rank " + std::to_string(first)
                              : "ranks " + std::to_string(first) + "-" + std::to_string(rank - 1))
        << ": " << size << "\n";
    first = rank;
  }
  return out.str();
}

}  // namespace elastor
