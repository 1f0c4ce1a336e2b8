#ifndef ELASTOR_EMBEDDING_SHARD_PLAN_H_
#define ELASTOR_EMBEDDING_SHARD_PLAN_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "embedding/key_space.h"
#include "embedding/table.h"

namespace elastor {

enum class PlanKind {
  kRowWise,     // partitions of every table dealt round robin to the ranks
  kTableWise,   // every table whole on one rank, largest first to the least loaded; keyed tables
                // without a limit row-wise
  kReplicated,  // every table on every rank
  kAuto,        // tiny tables replicated while the budget allows it, the rest row-wise
};

// Where the rows of one table are.
enum class Placement {
  kRowWise,     // its partitions dealt to the ranks
  kTableWise,   // whole on one rank; a keyed table without a limit is row-wise all the same
  kReplicated,  // on every rank
};

inline constexpr int kAllRanks = -1;

// Returns the elements of a table's rows, kMostSize (core/base/sizes.h) for more. A keyed table
// without a limit counts so, since it may become the largest.
int64_t Elements(const TableSpec& table);

// One map (table, partition) -> owner rank, or kAllRanks for a replicated table. A pure function
// of its inputs, alike on every rank. Immutable.
class ShardPlan {
 public:
  // bytes_per_row[t]: weights and optimizer slots of one row of table t (RowBytes in row_store.h).
  // budget_bytes: embedding memory per rank (0: no limit). User error when a rank would exceed the
  // budget, naming the rank, the bytes and the budget, and what to change; or when a table has no
  // rows or no width.
  static StatusOr<ShardPlan> Make(PlanKind kind, std::span<const TableSpec> tables,
                                  std::span<const int64_t> bytes_per_row, int ranks,
                                  int64_t budget_bytes);

  // As above, with a placement for every table.
  static StatusOr<ShardPlan> Make(std::span<const Placement> placements,
                                  std::span<const TableSpec> tables,
                                  std::span<const int64_t> bytes_per_row, int ranks,
                                  int64_t budget_bytes);

  int ranks() const { return ranks_; }
  bool replicated(int table) const { return replicated_[table]; }
  // Returns the owner of a partition; kAllRanks if the table is replicated.
  int Owner(int table, int64_t partition) const {
    return replicated_[table] ? kAllRanks : owners_[table * kPartitions + partition];
  }
  // Returns the rank with the primary replica of a partition, the replica that counts in norms,
  // digests and checkpoints: the owner, or partition % ranks if the table is replicated.
  int PrimaryRank(int table, int64_t partition) const {
    return replicated_[table] ? static_cast<int>(partition % ranks_)
                              : owners_[table * kPartitions + partition];
  }
  // Returns whether `rank` stores the rows of a partition: it owns them or the table is replicated.
  bool Stores(int table, int64_t partition, int rank) const {
    return replicated_[table] || owners_[table * kPartitions + partition] == rank;
  }
  // Returns the partitions of a table that `rank` stores, ascending.
  std::vector<int32_t> PartitionsOnRank(int table, int rank) const;
  // Returns the number of rows of `table` that `rank` stores (a replicated table in full). A keyed
  // table counts with an even share of its capacity.
  int64_t RowsOnRank(int table, int rank) const;
  // Returns the bytes of embedding memory of every rank; kMostSize (core/base/sizes.h) for more.
  std::vector<int64_t> BytesOfRanks() const;
  // Returns a text table for people: one line per table (rows, width, bytes, placement), then the
  // size on each rank.
  std::string ToString() const;

 private:
  // The plan without a look at the budget.
  static StatusOr<ShardPlan> Place(std::span<const Placement> placements,
                                   std::span<const TableSpec> tables,
                                   std::span<const int64_t> bytes_per_row, int ranks);
  void DealPartitions();
  void PlaceWholeTables(std::span<const Placement> placements);
  void ReplicateSmallTables(int64_t budget_bytes);
  // Puts tables of other roles where those are that they serve.
  void PlaceBeside();
  Status CheckBudget(int64_t budget_bytes) const;
  std::string PlacementOf(int table) const;
  int64_t BytesOf(size_t table) const;

  int ranks_ = 1;
  std::vector<TableSpec> tables_;
  std::vector<int64_t> bytes_per_row_;
  std::vector<bool> replicated_;
  std::vector<int> owners_;  // [table][partition]
};

}  // namespace elastor

#endif  // ELASTOR_EMBEDDING_SHARD_PLAN_H_
