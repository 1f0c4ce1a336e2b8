#include "embedding/row_store.h"

#include <sys/resource.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "core/base/random.h"
#include "gtest/gtest.h"

namespace elastor {
namespace {

std::vector<int32_t> AllPartitions() {
  std::vector<int32_t> partitions(kPartitions);
  std::iota(partitions.begin(), partitions.end(), 0);
  return partitions;
}

TEST(RowBytes, WholeLinesOrAPowerOfTwoWithinOne) {
  EXPECT_EQ(RowBytes({1, 0}, 4), 4);
  EXPECT_EQ(RowBytes({8, 1}, 4), 64);
  EXPECT_EQ(RowBytes({16, 0}, 4), 64);
  EXPECT_EQ(RowBytes({20, 1}, 4), 128);
  EXPECT_EQ(RowBytes({20, 40}, 4), 256);
}

TEST(RowIndex, KeysOfStoredPartitionsHaveIndexesWithoutHoles) {
  for (const std::vector<int32_t>& partitions :
       {std::vector<int32_t>{1, 2, 700, 4095}, AllPartitions()}) {
    const StoredPartitions stored(partitions);
    const RowIndex index = stored.index();
    int64_t next = 0;
    for (int64_t quotient = 0; quotient < 3; ++quotient) {
      for (const int32_t partition : partitions) {
        const int64_t key = quotient * kPartitions + partition;
        EXPECT_EQ(index.IndexOf(key), next);
        EXPECT_EQ(index.KeyAt(next), key);
        ++next;
      }
    }
  }
  EXPECT_EQ(StoredPartitions({1, 2, 700, 4095}).NumbersIn({2, 701}), (Range{1, 3}));
}

// The bytes are a multiple of 2^64.
TEST(RowStoreDeathTest, ATableLargerThanAnyMemoryIsRefused) {
  const TableSpec table = {"t", int64_t{1} << 48, int64_t{1} << 30, 0.5};
  EXPECT_EXIT(RowStore<float>(table, 0, AllPartitions(), {7, 0.25f}), testing::ExitedWithCode(3),
              "cannot allocate 4611686018427387904 bytes for rows of embedding table 't'");
}

TEST(RowStore, RowsAreMadeAtFirstTouch) {
  RowStore<float> store({"t", 5000, 5, 0.5}, 2, AllPartitions(), {7, 0.25f});
  const std::vector<int64_t> keys = {4999, 3};
  float* rows[2];
  store.Find(keys, rows);
  EXPECT_EQ(rows[0], nullptr);
  store.FindOrCreate(keys, rows);
  float want[5];
  FillNormal(MakeRandomKey(7, RandomPurpose::kRowInit, HashName("t")), 4999, 0.5, 5, want);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(rows[0][i], want[i]);
  EXPECT_EQ(rows[0][5], 0.25f);
  EXPECT_EQ(rows[0][6], 0.25f);
  rows[0][0] = 42;
  float* again[2];
  store.FindOrCreate(keys, again);
  EXPECT_EQ(again[0], rows[0]);
  EXPECT_EQ(again[0][0], 42);
  store.Find(keys, again);
  EXPECT_EQ(again[1], rows[1]);
}

TEST(RowStore, PartitionsOfARankFillItsArrayWithoutHoles) {
  const std::vector<int32_t> partitions = {1, 2, 700, 4095};
  const int64_t table_rows = 2 * kPartitions + 500;  // partitions 1, 2: three rows each
  RowStore<double> store({"t", table_rows, 4, 1}, 0, partitions, {1, 0});
  EXPECT_EQ(store.memory_bytes(), 10 * 32);
  std::map<int64_t, double*> found;
  int64_t i = 0;
  for (const int64_t key : {1, 2, 700, 4095, 4097, 4098, 4796, 8191, 8193, 8194}) {
    double* row;
    store.FindOrCreate(std::span(&key, 1), &row);
    found[key] = row;
    EXPECT_EQ(row, found.begin()->second + 4 * i++);
  }
  EXPECT_EQ(found.size(), 10u);
  EXPECT_TRUE(found.contains(2 * kPartitions + 2));
}

TEST(RowStore, VisitsEveryRowOnceOverTheParts) {
  RowStore<float> store({"t", 20000, 3, 1}, 0, AllPartitions(), {1, 0});
  std::map<int64_t, float*> want;
  for (int64_t key = 0; key < 20000; key += 3) {
    store.FindOrCreate(std::span(&key, 1), &want[key]);
    store.SetTouched(key, key % 2 == 0);
  }
  std::map<int64_t, float*> all, untouched;
  for (int part = 0; part < 3; ++part) {
    store.ForEachBlock(RowSet::kAll, part, 3,
                       [&](std::span<const int64_t> keys, float* const* rows) {
                         for (size_t i = 0; i < keys.size(); ++i) {
                           EXPECT_TRUE(all.emplace(keys[i], rows[i]).second);
                         }
                       });
    store.ForEachBlock(RowSet::kUntouched, part, 3,
                       [&](std::span<const int64_t> keys, float* const* rows) {
                         for (size_t i = 0; i < keys.size(); ++i) untouched[keys[i]] = rows[i];
                       });
  }
  EXPECT_EQ(all, want);
  std::erase_if(want, [](const auto& row) { return row.first % 2 == 0; });
  EXPECT_EQ(untouched, want);
}

// Counts and visits by partition against the definition, for a rank with few partitions and for
// others with more and all, of all rows and of touched ones. Rows lie in some of the store's
// groups.
class RowSetTest : public testing::TestWithParam<RowSet> {};

TEST_P(RowSetTest, RowsByPartition) {
  constexpr int64_t kRows = 43 * kPartitions + 500;
  std::vector<int32_t> most = AllPartitions();
  most.resize(3001);
  for (const std::vector<int32_t>& partitions :
       {std::vector<int32_t>{3, 4, 499, 500, 4000}, most, AllPartitions()}) {
    RowStore<float> store({"t", kRows, 4, 1}, 0, partitions, {1, 0});
    std::map<int64_t, std::vector<int64_t>> want;  // by partition
    for (const int64_t p : partitions) {
      for (int64_t key = p; key < kRows; key += kPartitions) {
        const bool gap = key >= 50'000 && key < 120'000;
        if (key % 3 == 0 || gap) continue;
        float* row;
        store.FindOrCreate(std::span(&key, 1), &row);
        if (key % 5 == 0) store.SetTouched(key, true);
        if (GetParam() == RowSet::kAll || (key % 5 == 0) == (GetParam() == RowSet::kTouched)) {
          want[p].push_back(key);
        }
      }
    }
    std::vector<int64_t> counts(kPartitions, 0);
    for (int part = 0; part < 3; ++part) store.CountRows(GetParam(), part, 3, counts.data());
    for (int64_t p = 0; p < kPartitions; ++p) {
      EXPECT_EQ(counts[p], static_cast<int64_t>(want.count(p) > 0 ? want[p].size() : 0)) << p;
    }
    for (const Range range : {Range{0, kPartitions}, Range{4, 500}, Range{5, 400}}) {
      std::map<int64_t, std::vector<int64_t>> found;
      store.ForEachOfPartitions(GetParam(), range,
                                [&](std::span<const int64_t> keys, float* const* rows) {
                                  for (size_t i = 0; i < keys.size(); ++i) {
                                    float* row;
                                    store.Find(keys.subspan(i, 1), &row);
                                    EXPECT_EQ(row, rows[i]);
                                    found[keys[i] % kPartitions].push_back(keys[i]);
                                  }
                                });
      std::map<int64_t, std::vector<int64_t>> expected;
      for (const auto& [p, keys] : want) {
        if (p >= range.begin && p < range.end && !keys.empty()) expected[p] = keys;
      }
      EXPECT_EQ(found, expected);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sets, RowSetTest,
                         testing::Values(RowSet::kAll, RowSet::kTouched, RowSet::kUntouched));

TEST(RowStore, TouchedRowsAndTheirRecords) {
  using Store = RowStore<float>;
  using Keys = std::vector<int64_t>;
  const Keys keys = {3, 70, 4999};
  for (const Store::NewRows created : {Store::NewRows::kUntouched, Store::NewRows::kTouched}) {
    Store store({"t", 5000, 2, 1}, 0, AllPartitions(), {1, 0}, created);
    const auto touched = [&] {
      Keys found;
      store.ForEachBlock(RowSet::kTouched, 0, 1,
                         [&](std::span<const int64_t> block, float* const*) {
                           found.insert(found.end(), block.begin(), block.end());
                         });
      return found;
    };
    float* rows[3];
    store.FindOrCreate(keys, rows);
    EXPECT_EQ(touched(), created == Store::NewRows::kTouched ? keys : Keys());
    store.Touch(keys);
    EXPECT_EQ(touched(), keys);
    store.ForgetTouched();
    EXPECT_EQ(touched(), Keys());
    store.Touch(Keys{70});
    store.Touch(Keys{70, 4999});
    EXPECT_EQ(touched(), Keys({70, 4999}));
    if (created == Store::NewRows::kUntouched) continue;

    const auto record_of = [](int64_t key) { return Digest::OfRecord(1, key, "record", 6); };
    const auto sum_of = [&](RowSet set) {
      Digest sum;
      for (int part = 0; part < 3; ++part) store.AddRecords(set, part, 3, &sum);
      return sum;
    };
    EXPECT_EQ(store.memory_bytes(), 5000 * (2 * 4 + 16));
    store.SetRecord(3, record_of(3));
    store.SetRecord(4999, record_of(1));
    store.SetRecord(4999, record_of(4999));
    EXPECT_EQ(sum_of(RowSet::kUntouched), record_of(3));
    EXPECT_EQ(sum_of(RowSet::kTouched), record_of(4999));  // 70 has none
    Digest both = record_of(3);
    both.Merge(record_of(4999));
    EXPECT_EQ(sum_of(RowSet::kAll), both);
    store.ForgetTouched();
    store.Clear();
    store.FindOrCreate(keys, rows);
    EXPECT_EQ(sum_of(RowSet::kAll), Digest());
  }
}

TEST(RowStore, ClaimedAndClearedRows) {
  RowStore<float> store({"t", 5000, 2, 1}, 0, AllPartitions(), {1, 0});
  bool created = false;
  float* const row = store.Claim(4999, &created);
  EXPECT_TRUE(created);
  row[0] = 42;
  EXPECT_EQ(store.Claim(4999, &created), row);
  EXPECT_FALSE(created);
  EXPECT_EQ(row[0], 42);
  store.Clear();
  const int64_t key = 4999;
  float* found;
  store.Find(std::span(&key, 1), &found);
  EXPECT_EQ(found, nullptr);
  store.FindOrCreate(std::span(&key, 1), &found);
  EXPECT_NE(found[0], 42);
}

TEST(RowStore, ABillionRowsTakeMemoryOnlyWhereUsed) {
  RowStore<float> store({"t", 1'000'000'000, 16, 1}, 0, AllPartitions(), {1, 0});
  EXPECT_EQ(store.memory_bytes(), 64'000'000'000);
  const int64_t key = 999'999'999;
  float* row;
  store.FindOrCreate(std::span(&key, 1), &row);
  EXPECT_NE(row[0], 0);
}

// A table of 2^36 rows has 16 GiB of marks, in 4 million pages: nothing goes through them all. A
// fault is the first look into one.
TEST(RowStore, CostFollowsTheRowsThatAreThere) {
  const auto faults = [] {
    rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_minflt;
  };
  const int64_t before = faults();
  RowStore<float> store({"t", int64_t{1} << 36, 2, 1}, 0, AllPartitions(), {1, 0},
                        RowStore<float>::NewRows::kTouched);
  const std::vector<int64_t> keys = {5, int64_t{1} << 35, (int64_t{1} << 36) - 1};
  float* rows[3];
  store.FindOrCreate(keys, rows);
  std::vector<int64_t> found, counts(kPartitions, 0);
  const auto visit = [&](std::span<const int64_t> block, float* const*) {
    found.insert(found.end(), block.begin(), block.end());
  };
  for (int part = 0; part < 3; ++part) {
    store.CountRows(RowSet::kAll, part, 3, counts.data());
    store.ForEachBlock(RowSet::kTouched, part, 3, visit);
  }
  EXPECT_EQ(found, keys);
  EXPECT_EQ(counts[0] + counts[5] + counts[kPartitions - 1], 3);
  found.clear();
  store.ForEachOfPartitions(RowSet::kAll, {0, 6}, visit);
  EXPECT_EQ(found, (std::vector<int64_t>{5, int64_t{1} << 35}));
  store.ForgetTouched();
  store.Clear();
  found.clear();
  store.ForEachBlock(RowSet::kAll, 0, 1, visit);
  EXPECT_EQ(found.size(), 0u);
  EXPECT_LT(faults() - before, 100'000);
}

// ---- Keyed tables

// Against a map, with keys that come and go: chains are moved up, tables grow, slots are used
// again.
TEST(KeySlots, FindsWhatAMapFinds) {
  for (const std::vector<int32_t>& partitions : {std::vector<int32_t>{3, 700}, AllPartitions()}) {
    KeySlots slots(StoredPartitions(partitions), 5000, "keys");
    std::map<int64_t, uint32_t> want;
    std::vector<int64_t> keys;
    for (int64_t i = 0; keys.size() < 4000; ++i) {
      const int64_t key = i * 3 - 9000;  // negative: beyond 2^63
      const KeySpace space = {.keyed = true};
      if (std::ranges::count(partitions, space.PartitionOf(key)) > 0) keys.push_back(key);
    }
    for (uint32_t i = 0; i < 20000; ++i) {
      const int64_t key = keys[Philox(1, {i, 0, 0, 0})[0] % keys.size()];
      const uint32_t slot = slots.Find(key);
      ASSERT_EQ(slot, want.contains(key) ? want[key] : KeySlots::kNone) << i;
      if (slot == KeySlots::kNone) {
        want[key] = slots.Insert(key);
        ASSERT_EQ(slots.KeyAt(want[key]), key);
      } else if (Philox(2, {i, 0, 0, 0})[0] % 3 == 0) {
        slots.Remove(key);
        want.erase(key);
      }
    }
    EXPECT_EQ(slots.size(), static_cast<int64_t>(want.size()));
    std::vector<uint32_t> found(keys.size());
    slots.Find(keys, found.data());
    for (size_t i = 0; i < keys.size(); ++i) {
      EXPECT_EQ(found[i], want.contains(keys[i]) ? want[keys[i]] : KeySlots::kNone);
    }
    std::map<int64_t, uint32_t> listed;
    for (int64_t n = 0; n < slots.partitions(); ++n) {
      slots.ForEachOf(n, [&](int64_t key, uint32_t slot) { listed[key] = slot; });
    }
    EXPECT_EQ(listed, want);
    EXPECT_LE(slots.slots_used(), 4000);
  }
}

// Keys that are alone in their partitions, or all in one, find the address space that they need.
TEST(KeySlots, HaveRoomForAllSlots) {
  const std::vector<int32_t> all = AllPartitions();
  for (const auto& [stored, count] : std::vector<std::pair<int64_t, int64_t>>{
           {1, 1}, {1, 7}, {1, 3000}, {kPartitions, 1}, {kPartitions, 9}, {kPartitions, 60000}}) {
    KeySlots slots(StoredPartitions({all.begin(), all.begin() + stored}), count, "keys");
    const KeySpace space = {.keyed = true};
    for (int64_t key = 0; slots.size() < count; ++key) {
      if (space.PartitionOf(key) < stored) slots.Insert(key);
    }
    EXPECT_EQ(slots.slots_used(), count);
  }
}

// A row that left begins anew, its slot does not show what was there, and its key is gone until
// touched rows are forgotten; one that was born and left in between never shows.
TEST(RowStore, RemovedRowsOfAKeyedTable) {
  TableSpec table = {"t", 0, 5, 0.5};
  table.keyed = table.keeps_use = true;
  using Store = RowStore<float>;
  Store store(table, 2, AllPartitions(), {7, 0.25f}, Store::NewRows::kTouched);
  const int64_t old_key = -5, young = 3, returning = 4;
  const auto create = [&](int64_t key) {
    float* row;
    store.FindOrCreate({&key, 1}, &row);
    return row;
  };
  const auto gone = [&] {
    std::vector<int64_t> keys;
    store.ForEachGone({0, kPartitions}, [&](int64_t key) { keys.push_back(key); });
    return keys;
  };
  create(old_key);
  create(returning);
  Digest record, all, kept;
  record.Add("row", 1, nullptr, 0);
  store.ForgetTouched();
  store.SetRecord(old_key, record);
  store.SetRecord(returning, record);
  store.AddRecords(RowSet::kAll, 0, 1, &all);
  store.Remove(old_key);
  store.Remove(returning);
  float* const row = create(young);
  std::fill_n(row, 7, 42.0f);
  store.UseRows({.policy = RowRules::Policy::kLru}, {&row, 1}, nullptr, 9);
  store.Remove(young);
  const float* const again = create(returning);
  float want[7];
  store.MakeInitial(returning, want);
  EXPECT_TRUE(std::equal(want, want + 7, again));
  EXPECT_EQ(gone(), std::vector<int64_t>{old_key});
  store.AddRecords(RowSet::kTouched, 0, 1, &kept);  // of what the base has
  EXPECT_EQ(kept, all);
  int64_t rows = 0;
  store.ForEachOfPartitions(RowSet::kTouched, {0, kPartitions},
                            [&](std::span<const int64_t> keys, float* const* visited) {
                              rows += static_cast<int64_t>(keys.size());
                              EXPECT_EQ(keys[0], returning);
                              for (int i = 7; i < 11; ++i) EXPECT_EQ(visited[0][i], 0) << "use";
                            });
  EXPECT_EQ(rows, 1);
  store.ForgetTouched();
  EXPECT_TRUE(gone().empty());
}

// The keys of rows that the last publication has and that left since: not of those that were born
// since, nor of those that returned, also when one leaves again.
TEST(RowStore, RecalledKeysOfAKeyedTable) {
  TableSpec table = {"t", 0, 5, 0.5};
  table.keyed = true;
  using Store = RowStore<float>;
  Store store(table, 2, AllPartitions(), {7, 0.25f}, Store::NewRows::kUntouched,
              Store::Published::kNoted);
  const auto create = [&](int64_t key) {
    float* row;
    store.FindOrCreate({&key, 1}, &row);
    store.MarkRowsUnpublished({&row, 1});
  };
  const auto recalled = [&] {
    std::set<int64_t> keys;
    store.ForEachRecalled({0, kPartitions}, [&](int64_t key) { keys.insert(key); });
    return keys;
  };
  const auto unpublished = [&] {
    std::set<int64_t> keys;
    store.ForEachOfPartitions(RowSet::kUnpublished, {0, kPartitions},
                              [&](std::span<const int64_t> some, float* const*) {
                                keys.insert(some.begin(), some.end());
                              });
    return keys;
  };
  for (const int64_t key : {-5, 1, 2, 3}) create(key);
  store.Remove(3);
  EXPECT_TRUE(recalled().empty()) << "nothing is published yet";
  store.ForgetUnpublished();
  for (const int64_t key : {-5, 1, 2}) store.Remove(key);
  for (const int64_t key : {1, 2, 9, 10}) create(key);
  for (const int64_t key : {2, 10}) store.Remove(key);
  EXPECT_EQ(recalled(), (std::set<int64_t>{-5, 2}));
  EXPECT_EQ(unpublished(), (std::set<int64_t>{1, 9}));
  // What a store that has just these rows is told.
  Store again(table, 2, AllPartitions(), {7, 0.25f}, Store::NewRows::kUntouched,
              Store::Published::kNoted);
  bool created;
  for (const int64_t key : {1, 9}) again.Claim(key, &created);
  for (const int64_t key : {-5, 1, 2, 4}) again.NotePublished(key, true);
  for (const int64_t key : {4, 9}) again.NotePublished(key, false);
  const int64_t marked[] = {9, 2, 1};
  again.MarkExistingUnpublished(marked);
  std::swap(store, again);
  EXPECT_EQ(recalled(), (std::set<int64_t>{-5, 2}));
  EXPECT_EQ(unpublished(), (std::set<int64_t>{1, 9}));
  for (const int64_t key : {1, 9}) store.Remove(key);
  EXPECT_EQ(recalled(), (std::set<int64_t>{-5, 1, 2}));
  store.ForgetUnpublished();
  EXPECT_TRUE(recalled().empty());
}

// A row that a warm start brought is not older than the clock; a row with a use keeps it.
TEST(RowStore, UsesBeginWithTheClock) {
  TableSpec table = {"t", 0, 5, 0.5};
  table.keyed = table.keeps_use = true;
  using Store = RowStore<float>;
  Store store(table, 2, AllPartitions(), {7, 0.25f}, Store::NewRows::kTouched);
  const int64_t keys[] = {8, 9};
  float* rows[2];
  store.FindOrCreate(keys, rows);
  store.ForgetTouched();
  const RowRules rules = {.policy = RowRules::Policy::kTtlEventTime};
  store.UseRows(rules, {rows, 1}, nullptr, 70);
  for (int part = 0; part < 3; ++part) store.BeginUses(50, part, 3);
  std::map<int64_t, uint64_t> uses;
  store.ForEachScore(rules, 0, 1, [&](int64_t key, uint64_t score) { uses[key] = score; });
  EXPECT_EQ(uses, (std::map<int64_t, uint64_t>{{8, 70}, {9, 50}}));
  std::vector<int64_t> counts(kPartitions, 0);
  store.CountRows(RowSet::kTouched, 0, 1, counts.data());
  EXPECT_EQ(std::accumulate(counts.begin(), counts.end(), int64_t{0}), 1);
}

}  // namespace
}  // namespace elastor
