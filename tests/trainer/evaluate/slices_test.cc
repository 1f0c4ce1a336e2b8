#include "trainer/evaluate/slices.h"

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "core/base/leaves.h"
#include "gtest/gtest.h"

namespace elastor {
namespace {

DatasetInfo MakeInfo() {
  DatasetInfo info;
  info.categorical = {{.name = "site", .ids = 50},
                      {.name = "tags", .ids = 9, .multi_hot = true},
                      {.name = "device", .keyed = true}};
  return info;
}

// Bags of the fields of MakeInfo: one id, up to four with repetitions, one id.
using Row = std::vector<std::vector<int64_t>>;

std::vector<Row> MakeRows(int count) {
  std::mt19937 random(count);
  std::vector<Row> rows(count);
  for (Row& row : rows) {
    const auto draw = [&](int64_t n) { return static_cast<int64_t>(random() % n); };
    const int64_t site = draw(50);
    row = {{site * site / 50}, {}, {draw(4) - 2}};  // keys from 2^63 on are negative
    for (int64_t i = draw(5); i > 0; --i) row[1].push_back(draw(9));
  }
  return rows;
}

SparseBatch MakeBatch(const std::vector<Row>& rows, const Range& part) {
  SparseBatch batch;
  batch.rows = part.size();
  batch.fields = 3;
  batch.offsets = {0};
  for (int64_t i = part.begin; i < part.end; ++i) {
    for (const auto& bag : rows[i]) {
      batch.ids.insert(batch.ids.end(), bag.begin(), bag.end());
      batch.offsets.push_back(static_cast<int64_t>(batch.ids.size()));
    }
  }
  return batch;
}

using Chosen = std::vector<std::tuple<int64_t, int64_t, int64_t>>;  // field, id, rows

Chosen ByDefinition(const std::vector<Row>& rows, const std::vector<int64_t>& fields,
                    size_t values) {
  Chosen chosen;
  for (const int64_t field : fields) {
    std::map<int64_t, int64_t> counts;
    for (const Row& row : rows) {
      for (const int64_t id : std::set<int64_t>(row[field].begin(), row[field].end())) {
        ++counts[id];
      }
    }
    std::vector<std::pair<int64_t, int64_t>> order;  // -rows, id
    for (const auto& [id, count] : counts) order.emplace_back(-count, id);
    std::sort(order.begin(), order.end());
    order.resize(std::min(order.size(), values));
    for (const auto& [count, id] : order) chosen.emplace_back(field, id, -count);
  }
  return chosen;
}

// Every rank's Slices after counting its rows in two batches.
std::vector<Slices> ChooseOver(int ranks, const SliceOptions& options,
                               const std::vector<Row>& rows) {
  const auto communicators = MakeThreadCommunicators(ranks, {});
  std::vector<Slices> slices(ranks, Slices(options, MakeInfo()));
  std::vector<std::thread> threads;
  for (int r = 0; r < ranks; ++r) {
    threads.emplace_back([&, r] {
      const Range own = PartOf(r, ranks, static_cast<int64_t>(rows.size()));
      const int64_t middle = (own.begin + own.end) / 2;
      slices[r].Count(MakeBatch(rows, {own.begin, middle}));
      slices[r].Count(MakeBatch(rows, {middle, own.end}));
      EXPECT_TRUE(slices[r].Choose(*communicators[r]).ok());
    });
  }
  for (std::thread& thread : threads) thread.join();
  return slices;
}

TEST(SlicesTest, IdsWithMostRowsOnAnyNumberOfRanks) {
  const std::vector<Row> rows = MakeRows(300);
  const SliceOptions options = {.fields = {"tags", "site"}, .values = 6};
  const Chosen expected = ByDefinition(rows, {1, 0}, 6);
  ASSERT_EQ(expected.size(), 12u);
  for (const int ranks : {1, 2, 3, 4, 7}) {
    for (const Slices& slices : ChooseOver(ranks, options, rows)) {
      Chosen chosen;
      for (const auto& slice : slices.slices()) {
        chosen.emplace_back(slice.field, slice.id, slice.rows);
      }
      EXPECT_EQ(chosen, expected) << ranks;
    }
  }
}

TEST(SlicesTest, TiesGoToTheSmallerId) {
  std::vector<Row> rows;
  for (const int64_t id : {3, 2, 1, 0, 2, 1}) rows.push_back({{0}, {}, {id}});
  const SliceOptions options = {.fields = {"device"}, .values = 3};
  for (const Slices& slices : ChooseOver(3, options, rows)) {
    ASSERT_EQ(slices.slices().size(), 3u);
    EXPECT_EQ(slices.slices()[0].id, 1);
    EXPECT_EQ(slices.slices()[1].id, 2);
    EXPECT_EQ(slices.slices()[2].id, 0);
  }
}

TEST(SlicesTest, KeysAreUnsigned) {
  std::vector<Row> rows;
  for (const int64_t id : {-18, 7, -18, 7, 5}) rows.push_back({{0}, {}, {id}});
  const SliceOptions options = {.fields = {"device"}, .values = 2};
  for (const Slices& slices : ChooseOver(2, options, rows)) {
    ASSERT_EQ(slices.slices().size(), 2u);
    EXPECT_EQ(slices.slices()[0].id, 7);
    EXPECT_EQ(slices.slices()[1].id, -18);
  }
}

TEST(SlicesTest, FindsEveryMembershipOnce) {
  const std::vector<Row> rows = MakeRows(120);
  const Slices slices = ChooseOver(2, {.fields = {"site", "tags"}, .values = 4}, rows)[0];
  std::set<std::pair<int64_t, int64_t>> expected;
  for (int64_t i = 0; i < static_cast<int64_t>(rows.size()); ++i) {
    for (int64_t s = 0; s < static_cast<int64_t>(slices.slices().size()); ++s) {
      const auto& bag = rows[i][slices.slices()[s].field];
      if (std::count(bag.begin(), bag.end(), slices.slices()[s].id) > 0) expected.emplace(i, s);
    }
  }
  std::vector<RowSlice> found = {{99, 99}};
  slices.Find(MakeBatch(rows, {0, 120}), &found);
  std::set<std::pair<int64_t, int64_t>> pairs;
  for (const RowSlice& slice : found) pairs.emplace(slice.row, slice.slice);
  EXPECT_EQ(pairs, expected);
  EXPECT_EQ(found.size(), expected.size());
}

TEST(SlicesTest, WithoutOffsetsABagIsOneId) {
  DatasetInfo info;
  info.categorical = {{.name = "a", .ids = 5}, {.name = "b", .ids = 5}};
  Slices slices({.fields = {"b"}, .values = 1}, info);
  SparseBatch batch;
  batch.rows = 3;
  batch.fields = 2;
  batch.ids = {0, 4, 0, 3, 0, 4};
  slices.Count(batch);
  ASSERT_TRUE(slices.Choose(*MakeSelfCommunicator()).ok());
  ASSERT_EQ(slices.slices().size(), 1u);
  EXPECT_EQ(slices.slices()[0].id, 4);
  EXPECT_EQ(slices.slices()[0].rows, 2);
}

TEST(SlicesTest, MistakesInOneLine) {
  EXPECT_TRUE(ValidateSlices({.fields = {"site", "device"}}, MakeInfo()).ok());
  EXPECT_EQ(ValidateSlices({.fields = {"site", "sight"}}, MakeInfo()).message(),
            "evaluation.slice_by: 'sight' is no categorical field of the data; it has: site, tags, "
            "device");
  EXPECT_EQ(ValidateSlices({.fields = {"site", "site"}}, MakeInfo()).message(),
            "evaluation.slice_by: 'site' stands twice");
}

}  // namespace
}  // namespace elastor
