#include "embedding/dense_row_store.h"

#include <map>
#include <numeric>

#include "core/base/random.h"
#include "gtest/gtest.h"

namespace elastor {
namespace {

std::vector<int64_t> AllPartitions() {
  std::vector<int64_t> partitions(kPartitions);
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

TEST(DenseRowStore, RowsAreMadeAtFirstTouch) {
  DenseRowStore<float> store({"t", 5000, 5, 0.5}, 2, AllPartitions(), {7, 0.25f});
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

TEST(DenseRowStore, PartitionsOfARankFillItsArrayWithoutHoles) {
  const std::vector<int64_t> partitions = {1, 2, 700, 4095};
  const int64_t table_rows = 2 * kPartitions + 500;  // partitions 1, 2: three rows each
  DenseRowStore<double> store({"t", table_rows, 4, 1}, 0, partitions, {1, 0});
  ASSERT_EQ(store.rows(), 3 + 3 + 2 + 2);
  EXPECT_EQ(store.memory_bytes(), 10 * 32);
  std::map<int64_t, double*> found;
  for (int64_t i = 0; i < store.rows(); ++i) {
    const int64_t key = store.KeyAt(i);
    EXPECT_LT(key, table_rows);
    double* row;
    store.FindOrCreate(std::span(&key, 1), &row);
    found[key] = row;
    EXPECT_EQ(row, found.begin()->second + 4 * i);
  }
  EXPECT_EQ(found.size(), 10u);
  EXPECT_TRUE(found.contains(2 * kPartitions + 2));
}

TEST(DenseRowStore, VisitsEveryRowOnceOverTheParts) {
  DenseRowStore<float> store({"t", 20000, 3, 1}, 0, AllPartitions(), {1, 0});
  std::map<int64_t, float*> want;
  for (int64_t key = 0; key < 20000; key += 3) {
    store.FindOrCreate(std::span(&key, 1), &want[key]);
    store.SetMark(key, key % 2 == 0);
  }
  std::map<int64_t, float*> all, unmarked;
  for (int part = 0; part < 3; ++part) {
    store.ForEachBlock(RowStore<float>::Visit::kAll, part, 3,
                       [&](std::span<const int64_t> keys, float* const* rows) {
                         for (size_t i = 0; i < keys.size(); ++i) {
                           EXPECT_TRUE(all.emplace(keys[i], rows[i]).second);
                         }
                       });
    store.ForEachBlock(RowStore<float>::Visit::kUnmarked, part, 3,
                       [&](std::span<const int64_t> keys, float* const* rows) {
                         for (size_t i = 0; i < keys.size(); ++i) unmarked[keys[i]] = rows[i];
                       });
  }
  EXPECT_EQ(all, want);
  std::erase_if(want, [](const auto& row) { return row.first % 2 == 0; });
  EXPECT_EQ(unmarked, want);
}

TEST(DenseRowStore, ABillionRowsTakeMemoryOnlyWhereUsed) {
  DenseRowStore<float> store({"t", 1'000'000'000, 16, 1}, 0, AllPartitions(), {1, 0});
  EXPECT_EQ(store.memory_bytes(), 64'000'000'000);
  const int64_t key = 999'999'999;
  float* row;
  store.FindOrCreate(std::span(&key, 1), &row);
  EXPECT_NE(row[0], 0);
}

}  // namespace
}  // namespace elastor
