#include "collective/dense_reduce.h"

#include <algorithm>
#include <functional>
#include <thread>
#include <type_traits>

#include "gtest/gtest.h"
#include "tests/collective/tree_reference.h"

namespace elastor {
namespace {

// Begins after other parameters; blocks of 1024 and a remainder: some ranks get no slice.
constexpr Range kBucket = {2 * kSliceBlock, 11 * kSliceBlock + 37};

void OnThreads(int ranks, const std::function<void(Communicator*)>& work) {
  auto communicators = MakeThreadCommunicators(ranks, {.deadline_seconds = 600});
  std::vector<std::thread> threads;
  for (auto& communicator : communicators) {
    threads.emplace_back([&work, c = communicator.get()] { work(c); });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(SliceOfRankTest, SlicesAreWholeBlocksAndCoverTheBucket) {
  for (const int64_t size : {int64_t{0}, int64_t{1}, kSliceBlock, 10 * kSliceBlock + 1}) {
    const Range bucket = {3 * kSliceBlock, 3 * kSliceBlock + size};
    for (const int ranks : {1, 2, 3, 16}) {
      int64_t next = bucket.begin;
      for (int rank = 0; rank < ranks; ++rank) {
        const Range slice = SliceOfRank(bucket, rank, ranks);
        EXPECT_EQ(slice.begin, next);
        EXPECT_TRUE(slice.begin % kSliceBlock == 0 || slice.begin == bucket.end);
        next = slice.end;
      }
      EXPECT_EQ(next, bucket.end);
    }
  }
}

template <typename T>
class DenseReducerTest : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(DenseReducerTest, Types);

// The law: the slices of N ranks are the recursive sum over the leaves, bit for bit.
TYPED_TEST(DenseReducerTest, SlicesAreTheRecursiveSumForEveryNumberOfRanks) {
  using T = TypeParam;
  const int64_t length = kBucket.size();
  for (const int64_t leaves : {1, 2, 4, 8, 16, 64}) {
    if (leaves == 64 && std::is_same_v<T, double>) continue;  // 2,080 threads once are enough
    const auto values = MakeLeaves<T>(leaves, length);
    std::vector<int64_t> row_counts = {0, 1, 3, leaves - 1, leaves, 5 * leaves + 3};
    std::vector<std::vector<T>> expected;
    for (const int64_t rows : row_counts) {
      std::vector<T> root = RecursiveFold(values, rows, 0, leaves);
      if (root.empty()) root.assign(length, T{0});
      expected.push_back(std::move(root));
      if (leaves >= 4 && rows >= leaves - 1) {
        EXPECT_FALSE(SameBits(ChainFold(values, PresentLeaves(leaves, rows)).data(),
                              expected.back().data(), length))
            << "the test cannot fail";
      }
    }
    for (int ranks = 1; ranks <= leaves; ++ranks) {
      // Some go by host: in pairs, in turns, or one host of the first rank and every third.
      std::vector<uint64_t> host_of;
      for (int r = 0; r < ranks; ++r) {
        host_of.push_back(ranks % 3 == 0 ? r / 2 : ranks % 3 == 1 ? r % 2 : r % 3 == 0 ? 0 : r / 2);
      }
      const RankHosts hosts(host_of);
      const bool by_host = ranks % 2 == leaves / 4 % 2 && GoesByHost(hosts, ranks, leaves);
      OnThreads(ranks, [&](Communicator* c) {
        const Range owned = LeavesOfRank(c->rank(), ranks, leaves);
        const Range slice = SliceOfRank(kBucket, c->rank(), ranks);
        TreeFold<T> fold(owned, length);
        DenseReducer<T> reducer(c, leaves, {{kBucket}}, by_host ? &hosts : nullptr);
        for (size_t i = 0; i < row_counts.size(); ++i) {
          fold.Clear();
          for (int64_t leaf = owned.begin; leaf < owned.end; ++leaf) {
            if (RowsOfLeaf(leaf, leaves, row_counts[i]).size() == 0) continue;
            std::copy(values[leaf].begin(), values[leaf].end(), fold.Push(leaf));
          }
          fold.Finish();
          std::vector<T> result(slice.size(), T{7});
          ASSERT_TRUE(reducer.Reduce(kBucket, row_counts[i], fold.nodes(), result.data()).ok());
          EXPECT_TRUE(SameBits(result.data(), expected[i].data() + slice.begin - kBucket.begin,
                               slice.size()))
              << leaves << " leaves, rank " << c->rank() << " of " << ranks << ", " << row_counts[i]
              << " rows";
        }
      });
    }
  }
}

TYPED_TEST(DenseReducerTest, GatherBringsEverySliceEverywhere) {
  using T = TypeParam;
  for (const int ranks : {1, 2, 3, 5, 7, 8}) {
    std::vector<uint64_t> host_of{0, 1, 1, 0, 2, 0, 1, 2};
    host_of.resize(ranks);
    const RankHosts hosts(host_of);
    OnThreads(ranks, [&](Communicator* c) {
      std::vector<T> weights(kBucket.end + 5, T{-1});
      const Range slice = SliceOfRank(kBucket, c->rank(), ranks);
      for (int64_t i = slice.begin; i < slice.end; ++i) weights[i] = static_cast<T>(i);
      DenseReducer<T> reducer(c, 8, {{kBucket}}, ranks == 5 || ranks == 7 ? &hosts : nullptr);
      ASSERT_TRUE(reducer.Gather(kBucket, weights.data()).ok());
      for (int64_t i = 0; i < static_cast<int64_t>(weights.size()); ++i) {
        const bool inside = i >= kBucket.begin && i < kBucket.end;
        ASSERT_EQ(weights[i], inside ? static_cast<T>(i) : T{-1}) << "element " << i;
      }
    });
  }
}

TEST(DenseReducerBytesTest, SendsEachNodeOnceAndNothingToItself) {
  constexpr int64_t kLeaves = 8;
  constexpr int kRanks = 4;
  const Range bucket = {0, kRanks * kSliceBlock};
  OnThreads(kRanks, [&](Communicator* c) {
    std::vector<float> gradient(bucket.size(), 1), slice(kSliceBlock);
    const TreeFold<float>::Node node = {2 * c->rank(), gradient.data()};
    DenseReducer<float> reducer(c, kLeaves, {{bucket}});
    ASSERT_TRUE(reducer.Reduce(bucket, kLeaves, {&node, 1}, slice.data()).ok());
    ASSERT_TRUE(reducer.Gather(bucket, gradient.data()).ok());
    const int64_t expected = (kRanks - 1) * kSliceBlock * static_cast<int64_t>(sizeof(float));
    EXPECT_EQ(c->record(Phase::kDenseReduce).bytes_sent, expected);
    EXPECT_EQ(c->record(Phase::kDenseGather).bytes_sent, expected);
    EXPECT_EQ(slice[0], kRanks);
  });
}

TEST(DenseReducerDeathTest, RefusesNodesThatAreNotTheRanks) {
  const auto self = MakeSelfCommunicator();
  DenseReducer<float> reducer(self.get(), 4, {{Range{0, kSliceBlock}}});
  std::vector<float> gradient(kSliceBlock), slice(kSliceBlock);
  const TreeFold<float>::Node node = {1, gradient.data()};  // with 4 rows leaf 0 is present
  EXPECT_DEATH((void)reducer.Reduce({0, kSliceBlock}, 4, {&node, 1}, slice.data()), "1 vs. 0");
}

}  // namespace
}  // namespace elastor
