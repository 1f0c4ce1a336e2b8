#include "trainer/prepare/guess/libsvm.h"

#include <gtest/gtest.h>

namespace elastor {
namespace {

TEST(LibsvmTest, NearlyAllLinesAreALabelAndPairs) {
  EXPECT_TRUE(IsLibsvm({"1 3:1 5:0.5", "-1\t2:1"}));
  EXPECT_FALSE(IsLibsvm({"1 3:1", "1 a:1"}));
  EXPECT_FALSE(IsLibsvm({"1", "0"}));
}

TEST(LibsvmTest, AsManyPairsInEveryRowAreFieldsAndOtherwiseABag) {
  const auto fields = LibsvmProposal({{"f"}, {{"1 1:.5 2:3", "0 1:2 2:7"}}});
  ASSERT_TRUE(fields.ok()) << fields.status().message();
  EXPECT_TRUE(fields->ends_with("fields { names: \"f1..f2\" type: NUMERIC }\n")) << *fields;
  const auto bag = LibsvmProposal({{"f"}, {{"1 1:1 2:1", "0 7:1"}}});
  ASSERT_TRUE(bag.ok()) << bag.status().message();
  EXPECT_TRUE(bag->ends_with("fields { name: \"features\" type: MULTI_HOT max_length: 2 }\n"))
      << *bag;
  const auto neither = LibsvmProposal({{"f"}, {{"1 1:.5 2:3", "0 7:1"}}});
  ASSERT_FALSE(neither.ok());
  EXPECT_TRUE(neither.status().message().starts_with("f: pairs with values other than 1"));
}

}  // namespace
}  // namespace elastor
