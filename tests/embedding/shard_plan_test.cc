#include "embedding/shard_plan.h"

#include <algorithm>

#include "core/base/sizes.h"
#include "gtest/gtest.h"

namespace elastor {
namespace {

StatusOr<ShardPlan> Make(PlanKind kind, const std::vector<TableSpec>& tables, int ranks,
                         int64_t budget = 0) {
  std::vector<int64_t> bytes;
  for (const TableSpec& table : tables) bytes.push_back(4 * table.width);
  return ShardPlan::Make(kind, tables, bytes, ranks, budget);
}

// Seventeen tables, most smaller than the number of partitions.
std::vector<TableSpec> SeventeenTables() {
  std::vector<TableSpec> tables;
  for (int t = 0; t < 17; ++t) {
    tables.push_back({"table" + std::to_string(t), 1 + t * t * t * 7, 8, 1e-4});
  }
  return tables;
}

// Each table where it is said to be; whole ones go to the least loaded rank, the largest first.
TEST(ShardPlan, PlacesEveryTableByItself) {
  const std::vector<TableSpec> tables = {
      {"a", 8192, 8, 1e-4}, {"b", 100, 8, 1e-4}, {"c", 300, 8, 1e-4}, {"d", 8192, 8, 1e-4}};
  const std::vector<int64_t> bytes(4, 32);
  const Placement placements[] = {Placement::kReplicated, Placement::kTableWise,
                                  Placement::kTableWise, Placement::kRowWise};
  const StatusOr<ShardPlan> plan = ShardPlan::Make(placements, tables, bytes, 2, 0);
  ASSERT_TRUE(plan.ok());
  const auto rows = [&](int table) {
    return std::pair(plan->RowsOnRank(table, 0), plan->RowsOnRank(table, 1));
  };
  EXPECT_EQ(rows(0), std::pair(int64_t{8192}, int64_t{8192}));
  EXPECT_EQ(rows(1), std::pair(int64_t{0}, int64_t{100}));
  EXPECT_EQ(rows(2), std::pair(int64_t{300}, int64_t{0}));
  EXPECT_EQ(rows(3), std::pair(int64_t{4096}, int64_t{4096}));
  EXPECT_FALSE(ShardPlan::Make(placements, tables, bytes, 2, 8192 * 32).ok());
}

TEST(ShardPlan, RowsOnRankCountsTheKeysOfItsPartitions) {
  const std::vector<TableSpec> tables = SeventeenTables();
  for (PlanKind kind : {PlanKind::kRowWise, PlanKind::kTableWise, PlanKind::kAuto}) {
    for (int ranks : {1, 3, 8}) {
      const StatusOr<ShardPlan> plan = Make(kind, tables, ranks);
      ASSERT_TRUE(plan.ok());
      for (int t = 0; t < 17; ++t) {
        std::vector<int64_t> rows(ranks, 0), primaries(ranks, 0);
        for (int64_t key = 0; key < tables[t].rows; ++key) {
          const int owner = plan->Owner(t, key % kPartitions);
          for (int r = 0; r < ranks; ++r) rows[r] += owner == r || owner == kAllRanks;
          ++primaries[plan->PrimaryRank(t, key % kPartitions)];
        }
        for (int r = 0; r < ranks; ++r) EXPECT_EQ(plan->RowsOnRank(t, r), rows[r]);
        if (!plan->replicated(t)) {
          EXPECT_EQ(rows, primaries);
        }
      }
    }
  }
}

TEST(ShardPlan, RowWiseSpreadsSmallTablesToo) {
  // 16 tables of one row on 8 ranks: two rows a rank.
  const StatusOr<ShardPlan> plan =
      Make(PlanKind::kRowWise, std::vector<TableSpec>(16, {"t", 1, 4, 1e-4}), 8);
  ASSERT_TRUE(plan.ok());
  for (int64_t bytes : plan->BytesOfRanks()) EXPECT_EQ(bytes, 2 * 16);
}

TEST(ShardPlan, TableWisePutsTheLargestFirstOnTheLeastLoaded) {
  const std::vector<TableSpec> tables = {
      {"a", 10, 4, 0}, {"b", 70, 4, 0}, {"c", 40, 4, 0}, {"d", 35, 4, 0}, {"e", 10, 4, 0}};
  const StatusOr<ShardPlan> plan = Make(PlanKind::kTableWise, tables, 2);
  ASSERT_TRUE(plan.ok());
  // b -> 0 (70); c -> 1 (40); d -> 1 (75); a -> 0 (80); e -> 1 (85).
  const std::vector<int> want = {0, 0, 1, 1, 1};
  for (int t = 0; t < 5; ++t) {
    EXPECT_EQ(plan->Owner(t, 0), want[t]) << t;
    EXPECT_EQ(plan->Owner(t, kPartitions - 1), want[t]) << t;
  }
  EXPECT_EQ(plan->BytesOfRanks(), (std::vector<int64_t>{80 * 16, 85 * 16}));
}

TEST(ShardPlan, ReplicatedPartitionsHaveOnePrimaryReplica) {
  const StatusOr<ShardPlan> plan = Make(PlanKind::kReplicated, {{"t", 10000, 4, 0}}, 3);
  ASSERT_TRUE(plan.ok());
  for (int r = 0; r < 3; ++r) EXPECT_EQ(plan->RowsOnRank(0, r), 10000);
  EXPECT_EQ(plan->Owner(0, 5), kAllRanks);
  EXPECT_EQ(plan->PrimaryRank(0, 5), 2);
}

TEST(ShardPlan, AutoReplicatesTinyTablesWithinTheBudget) {
  const std::vector<TableSpec> tables = {
      {"big", 400000, 8, 0}, {"tiny", 100, 8, 0}, {"small", 512, 8, 0}, {"over", 513, 8, 0}};
  const StatusOr<ShardPlan> free = Make(PlanKind::kAuto, tables, 4);
  ASSERT_TRUE(free.ok());
  EXPECT_FALSE(free->replicated(0));
  EXPECT_TRUE(free->replicated(1));
  EXPECT_TRUE(free->replicated(2));
  EXPECT_FALSE(free->replicated(3));

  const auto row_wise = Make(PlanKind::kRowWise, tables, 4)->BytesOfRanks();
  const int64_t needed = *std::max_element(row_wise.begin(), row_wise.end());
  const StatusOr<ShardPlan> tight = Make(PlanKind::kAuto, tables, 4, needed + 100 * 32);
  ASSERT_TRUE(tight.ok());
  EXPECT_TRUE(tight->replicated(1));
  EXPECT_FALSE(tight->replicated(2));
}

// Nobody knows how large a keyed table without a limit becomes.
TEST(ShardPlan, AutoReplicatesNoTableWithoutALimit) {
  const TableSpec keys = {.name = "keys", .width = 8, .keyed = true};
  const StatusOr<ShardPlan> plan = Make(PlanKind::kAuto, {keys, {"tiny", 100, 8, 0}}, 4);
  ASSERT_TRUE(plan.ok());
  EXPECT_FALSE(plan->replicated(0));
  EXPECT_TRUE(plan->replicated(1));
}

TEST(ShardPlan, TableWisePutsNoTableWithoutALimitOnOneRank) {
  const TableSpec keys = {.name = "keys", .width = 8, .keyed = true};
  const TableSpec limited = {.name = "limited", .rows = 100, .width = 8, .keyed = true};
  const StatusOr<ShardPlan> plan = Make(PlanKind::kTableWise, {keys, limited}, 4);
  ASSERT_TRUE(plan.ok());
  EXPECT_NE(plan->Owner(0, 0), plan->Owner(0, 1));
  EXPECT_EQ(plan->Owner(1, 0), plan->Owner(1, 1));
}

// Where the budget refuses a table, those beside it stay with it.
TEST(ShardPlan, TablesBesideAnotherHaveItsPlaces) {
  const std::vector<TableSpec> tables = {
      {.name = "odd", .rows = 4099, .width = 8},
      {.name = "keys", .rows = 512, .width = 8, .keyed = true},
      {.name = "keys/sketch", .rows = 8192, .width = 8, .role = TableRole::kSketch, .beside = 1}};
  constexpr int64_t kRow = 4 * 8;
  const auto row_wise = Make(PlanKind::kRowWise, tables, 3)->BytesOfRanks();
  const int64_t needed = *std::max_element(row_wise.begin(), row_wise.end());
  for (const int64_t budget : {needed, (8192 + 1600) * kRow, int64_t{0}}) {
    for (const PlanKind kind : {PlanKind::kAuto, PlanKind::kRowWise, PlanKind::kTableWise}) {
      const StatusOr<ShardPlan> plan = Make(kind, tables, 3, kind == PlanKind::kAuto ? budget : 0);
      ASSERT_TRUE(plan.ok()) << budget << ": " << plan.status().message();
      EXPECT_EQ(plan->replicated(1), kind == PlanKind::kAuto && budget == 0);
      for (int64_t p = 0; p < kPartitions; ++p) ASSERT_EQ(plan->Owner(2, p), plan->Owner(1, p));
    }
  }
}

TEST(ShardPlan, BudgetErrorNamesRankBytesAndBudget) {
  const StatusOr<ShardPlan> plan = Make(PlanKind::kAuto, {{"t", 4096000, 8, 0}}, 2, 1000000);
  ASSERT_FALSE(plan.ok());
  EXPECT_EQ(plan.status().code(), StatusCode::kUser);
  EXPECT_EQ(plan.status().message(),
            "parallel.memory_budget_bytes: rank 0 of 2 would hold 65536000 bytes of embedding "
            "rows, the budget is 1000000; use more ranks, a smaller embedding width, an optimizer "
            "with fewer slots or a larger budget");
  EXPECT_TRUE(Make(PlanKind::kAuto, {{"t", 4096000, 8, 0}}, 2, 65536000).ok());
}

TEST(ShardPlan, TableWithoutRowsIsRefused) {
  const StatusOr<ShardPlan> plan = Make(PlanKind::kRowWise, {{"t", 0, 8, 0}}, 2);
  ASSERT_FALSE(plan.ok());
  EXPECT_EQ(plan.status().message(),
            "embedding table 't': expected rows >= 1 and width >= 1, found 0 rows of width 8");
}

TEST(ShardPlan, BillionsOfRowsOnAThousandRanks) {
  const std::vector<TableSpec> tables(26, {"t", 40'000'000'000, 128, 1e-4});
  const StatusOr<ShardPlan> plan = Make(PlanKind::kRowWise, tables, 1000);
  ASSERT_TRUE(plan.ok());
  int64_t rows = 0;
  for (int r = 0; r < 1000; ++r) rows += plan->RowsOnRank(25, r);
  EXPECT_EQ(rows, 40'000'000'000);
}

// 2^48 rows of 2^31 - 1 elements: 2^81 - 2^50 bytes, whose lowest 64 bits are those of -2^50.
TEST(ShardPlan, ATableLargerThanAnyMemoryIsTheLargest) {
  const std::vector<TableSpec> tables = {{"small", 2000, 4, 0},
                                         {"huge", int64_t{1} << 48, (int64_t{1} << 31) - 1, 0}};
  const auto whole = Make(PlanKind::kTableWise, tables, 2);
  ASSERT_TRUE(whole.ok());
  EXPECT_EQ(whole->Owner(1, 0), 0);
  EXPECT_EQ(whole->Owner(0, 0), 1);
  EXPECT_EQ(whole->BytesOfRanks(), (std::vector<int64_t>{kMostSize, 2000 * 16}));

  const auto chosen = Make(PlanKind::kAuto, tables, 2);
  ASSERT_TRUE(chosen.ok());
  EXPECT_FALSE(chosen->replicated(1));
  EXPECT_EQ(chosen->BytesOfRanks(), (std::vector<int64_t>{kMostSize, kMostSize}));

  for (const PlanKind kind : {PlanKind::kRowWise, PlanKind::kTableWise, PlanKind::kReplicated}) {
    const auto refused = Make(kind, tables, 2, int64_t{1} << 50);
    ASSERT_FALSE(refused.ok());
    EXPECT_NE(refused.status().message().find("would hold 4611686018427387904 bytes"),
              std::string::npos)
        << refused.status().message();
  }
}

TEST(ShardPlan, PrintsAsATable) {
  const StatusOr<ShardPlan> plan =
      Make(PlanKind::kAuto, {{"clicks", 1048576, 8, 0}, {"device_type", 4, 8, 0}}, 2);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->ToString(),
            "table                 rows  width           size  placement\n"
            "clicks             1048576      8       32.0 MiB  row-wise\n"
            "device_type              4      8        0.0 MiB  replicated\n"
            "ranks 0-1: 16.0 MiB\n");
}

}  // namespace
}  // namespace elastor
