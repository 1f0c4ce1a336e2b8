#include "core/kernels/cuda/leaf_fold.h"

#include <algorithm>

#include "collective/leaf_tree.h"
#include "tests/core/kernels/cuda/device_views.h"

namespace elastor::cuda {
namespace {

constexpr float kUntouched = 77;

class LeafFoldTest : public testing::Test {
 protected:
  void SetUp() override { SetCanonicalFloatingPoint(); }

  // Folds `leaves` (of which counted) of a flat array of `size` elements, covered by runs of
  // different shape with gaps, and compares every node with FoldNodes.
  void ExpectFoldNodes(const std::vector<int64_t>& leaves, const std::vector<bool>& counted,
                       const std::vector<int64_t>& node_leaves, const Range& range) {
    constexpr int64_t kSize = 1500;
    const auto count = static_cast<int64_t>(leaves.size());
    const std::vector<float> flat = RandomValues<float>(count * kSize, 1);  // [leaf][element]
    struct Part {
      int64_t begin, size, inner;
    };
    const Part parts[] = {{3, 600, 26}, {603, 1, 1}, {700, 300, 300}, {1000, 499, 7}};
    std::vector<std::vector<float>> maps;
    std::vector<bool> covered(kSize);
    for (const Part& part : parts) {
      const int64_t inners = (part.size + part.inner - 1) / part.inner;
      std::vector<float> map(inners * part.inner * count, kUntouched);
      for (int64_t l = 0; l < count; ++l) {
        for (int64_t i = 0; i < part.size; ++i) {
          map[(i / part.inner * count + l) * part.inner + i % part.inner] =
              flat[l * kSize + part.begin + i];
          covered[part.begin + i] = true;
        }
      }
      maps.push_back(map);
    }
    std::vector<Buffer<float>> buffers;
    std::vector<FoldRun> runs;
    for (size_t p = 0; p < maps.size(); ++p) {
      buffers.push_back(Upload(stream_, maps[p]));
      runs.push_back({parts[p].begin, parts[p].size, parts[p].inner, buffers[p].data()});
    }
    const Buffer<FoldRun> device_runs = Upload(stream_, runs);
    LeafFold fold(&stream_);
    fold.SetLeaves(leaves, counted, node_leaves);
    const auto nodes = static_cast<int64_t>(std::max<size_t>(1, node_leaves.size()));
    ASSERT_EQ(fold.nodes(), nodes);
    const int64_t stride = range.size() + 3;
    const Buffer<float> folded = Upload(stream_, std::vector<float>(nodes * stride, kUntouched));
    fold.Fold(stream_, device_runs.data(), static_cast<int64_t>(runs.size()), range, folded.data(),
              stride);

    std::vector<float> expected(nodes * stride, kUntouched);
    for (int64_t n = 0; n < nodes; ++n) {
      std::vector<int64_t> below;
      std::vector<const float*> data;
      for (int64_t l = 0; l < count; ++l) {
        const bool before_next = n + 1 == nodes || leaves[l] < node_leaves[n + 1];
        if (!counted[l] || leaves[l] < node_leaves[n] || !before_next) continue;
        below.push_back(leaves[l]);
        data.push_back(&flat[l * kSize]);
      }
      std::vector<float> node(kSize);
      FoldNodes<float>(below, data, kSize, node.data());
      for (int64_t e = range.begin; e < range.end; ++e) {
        expected[n * stride + e - range.begin] = covered[e] ? node[e] : 0.0f;
      }
    }
    ExpectSameBits(Download(stream_, folded), expected);
  }

  // A rank's leaves in a batch of `rows` rows.
  void ExpectRank(int64_t rank, int64_t ranks, int64_t all_leaves, int64_t rows) {
    SCOPED_TRACE(testing::Message() << "rank " << rank << " of " << ranks << ", V " << all_leaves
                                    << ", rows " << rows);
    const Range owned = LeavesOfRank(rank, ranks, all_leaves);
    std::vector<int64_t> leaves;
    std::vector<bool> counted;
    for (int64_t leaf = owned.begin; leaf < owned.end; ++leaf) {
      leaves.push_back(leaf);
      counted.push_back(RowsOfLeaf(leaf, all_leaves, rows).size() > 0);
    }
    ExpectFoldNodes(leaves, counted, NodeLeaves(rank, ranks, all_leaves, rows), {0, 1500});
  }

  Stream stream_;
};

TEST_F(LeafFoldTest, WholeTrees) {
  for (const int64_t leaves : {1, 2, 4, 16, 64, 128}) ExpectRank(0, 1, leaves, 1000);
}

TEST_F(LeafFoldTest, AbsentLeaves) {
  for (const int64_t rows : {1, 2, 3, 5, 13, 31, 63}) ExpectRank(0, 1, 64, rows);
}

TEST_F(LeafFoldTest, NodesOfRanks) {
  for (const int64_t ranks : {2, 3, 5, 7}) {
    for (int64_t rank = 0; rank < ranks; ++rank) {
      ExpectRank(rank, ranks, 32, 1000);
      ExpectRank(rank, ranks, 32, 11);
    }
  }
}

TEST_F(LeafFoldTest, PartOfTheElements) {
  const std::vector<int64_t> leaves = {8, 9, 10, 11};
  ExpectFoldNodes(leaves, {true, true, true, true}, std::vector<int64_t>{8}, {590, 1203});
  ExpectFoldNodes(leaves, {true, false, true, true}, std::vector<int64_t>{8}, {590, 1203});
}

// Leaves that do not follow each other; a listed one that is not there.
TEST_F(LeafFoldTest, ScatteredLeaves) {
  ExpectFoldNodes({1, 4, 6, 7}, {true, true, true, true}, std::vector<int64_t>{1}, {0, 1500});
  ExpectFoldNodes({1, 4, 6, 7}, {false, true, true, true}, std::vector<int64_t>{4}, {0, 1500});
}

// Four leaves that are added as a complete tree's, as equal subtrees' are, and four that are not.
TEST_F(LeafFoldTest, FirstLeavesOfSubtrees) {
  for (const std::vector<int64_t>& leaves :
       std::vector<std::vector<int64_t>>{{0, 4, 8, 12}, {1, 3, 4, 6}, {0, 1, 2, 4}, {0, 4, 5, 6}}) {
    ExpectFoldNodes(leaves, {true, true, true, true}, {leaves.front()}, {0, 1500});
  }
}

TEST_F(LeafFoldTest, WithoutLeavesOneNodeOfZeros) {
  LeafFold fold(&stream_);
  fold.SetLeaves(std::vector<int64_t>{4, 5}, {false, false}, {});
  EXPECT_EQ(fold.nodes(), 1);
  const Buffer<float> node = Upload(stream_, std::vector<float>(10, kUntouched));
  const Buffer<FoldRun> runs = Upload<FoldRun>(stream_, {{0, 10, 1, nullptr}});
  fold.Fold(stream_, runs.data(), 1, {0, 10}, node.data(), 10);
  ExpectSameBits(Download(stream_, node), std::vector<float>(10, 0.0f));
}

// -0 of a lone child passes upward as it is.
TEST_F(LeafFoldTest, LoneChildKeepsItsSign) {
  LeafFold fold(&stream_);
  fold.SetLeaves(std::vector<int64_t>{0, 1, 2}, {false, true, false}, std::vector<int64_t>{1});
  const Buffer<float> data = Upload<float>(stream_, {5.0f, -0.0f, 7.0f});
  const Buffer<FoldRun> runs = Upload<FoldRun>(stream_, {{0, 1, 1, data.data()}});
  const Buffer<float> node(&stream_, 1);
  fold.Fold(stream_, runs.data(), 1, {0, 1}, node.data(), 1);
  ExpectSameBits(Download(stream_, node), {-0.0f});
}

}  // namespace
}  // namespace elastor::cuda
