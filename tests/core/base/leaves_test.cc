#include "core/base/leaves.h"

#include <gtest/gtest.h>

namespace elastor {
namespace {

TEST(LeavesTest, PartsCoverTheWholeInOrderAndDifferByOneAtMost) {
  for (const int64_t total : {0, 1, 5, 16, 1000, 1001}) {
    for (const int64_t parts : {1, 2, 3, 7, 16}) {
      int64_t next = 0;
      for (int64_t part = 0; part < parts; ++part) {
        const Range range = PartOf(part, parts, total);
        EXPECT_EQ(range.begin, next);
        EXPECT_GE(range.size(), total / parts);
        EXPECT_LE(range.size(), total / parts + 1);
        next = range.end;
      }
      EXPECT_EQ(next, total);
    }
  }
}

TEST(LeavesTest, ShortBatchLeavesSomeLeavesWithoutRows) {
  EXPECT_EQ(RowsOfLeaf(0, 4, 3), (Range{0, 0}));
  EXPECT_EQ(RowsOfLeaf(1, 4, 3), (Range{0, 1}));
  EXPECT_EQ(RowsOfLeaf(2, 4, 3), (Range{1, 2}));
  EXPECT_EQ(RowsOfLeaf(3, 4, 3), (Range{2, 3}));
}

}  // namespace
}  // namespace elastor
