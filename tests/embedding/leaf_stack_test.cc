#include "embedding/leaf_stack.h"

#include "gtest/gtest.h"

namespace elastor {
namespace {

TEST(CanonicalNodes, AreTheMaximalNodesInside) {
  EXPECT_EQ(CanonicalNodes({0, 16}), (std::vector<Range>{{0, 16}}));
  EXPECT_EQ(CanonicalNodes({8, 12}), (std::vector<Range>{{8, 12}}));
  EXPECT_EQ(CanonicalNodes({5, 10}), (std::vector<Range>{{5, 6}, {6, 8}, {8, 10}}));
  EXPECT_EQ(CanonicalNodes({3, 3}), std::vector<Range>{});
}

// Sums powers of two far apart, so that the order of additions shows in the rounding.
float Fold(const std::vector<int64_t>& leaves, std::vector<float> values) {
  LeafStack<float> stack(1);
  for (size_t i = 0; i < leaves.size(); ++i) {
    stack.MakeRoom(leaves[i]);
    stack.Push(leaves[i], &values[i]);
  }
  stack.Finish();
  return values[0];
}

TEST(LeafStack, AddsAlongTheTree) {
  constexpr float kBig = 0x1p24f;                            // kBig + 1 rounds to kBig
  EXPECT_EQ(Fold({0, 1, 2, 3}, {kBig, 1, 1, 1}), kBig + 2);  // (0+1) + (2+3)
  EXPECT_EQ(Fold({0, 2, 3}, {kBig, 1, 1}), kBig + 2);        // 0 + (2+3)
  EXPECT_EQ(Fold({0, 1, 2}, {kBig, 1, 1}), kBig);            // (0+1) + 2
  EXPECT_EQ(Fold({1, 6, 7}, {kBig, 1, 1}), kBig + 2);        // 1 + (6+7)
  EXPECT_EQ(Fold({3, 4, 5, 6}, {kBig, 1, 0, 1}), kBig + 2);  // 3 + ((4+5) + 6)
  EXPECT_EQ(Fold({9}, {5}), 5);
}

}  // namespace
}  // namespace elastor
