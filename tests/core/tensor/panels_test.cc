#include "core/tensor/panels.h"

#include <gtest/gtest.h>

#include <vector>

namespace elastor {
namespace {

// Element (row, feature) holds 1000 row + feature.
class PanelsTest : public testing::Test {
 protected:
  static constexpr int64_t kRows = 37, kFeatures = 10;

  PanelsTest()
      : memory_(PanelElements(kRows, kFeatures)),
        panels_{memory_.data(), kRows, kFeatures, PanelStride(kFeatures)} {
    for (int64_t row = 0; row < kRows; ++row) {
      for (int64_t f = 0; f < kFeatures; ++f) panels_.At(row, f) = 1000.0 * row + f;
    }
  }

  std::vector<double> memory_;
  Panels<double> panels_;
};

TEST_F(PanelsTest, ElementsOfOneFeatureOfAPanelAreAdjacent) {
  EXPECT_EQ(panels_.panels(), 3);
  EXPECT_EQ(&panels_.At(16, 3), panels_.Panel(1) + 3 * kPanelRows);
  EXPECT_EQ(&panels_.At(21, 3), &panels_.At(16, 3) + 5);
  EXPECT_EQ(&panels_.At(0, 0), memory_.data());
  // The last padded element lies inside the memory.
  EXPECT_LT(&panels_.At(47, kFeatures - 1) - memory_.data(), static_cast<int64_t>(memory_.size()));
}

TEST_F(PanelsTest, EveryElementHasItsOwnPlace) {
  for (int64_t row = 0; row < kRows; ++row) {
    for (int64_t f = 0; f < kFeatures; ++f) ASSERT_EQ(panels_.At(row, f), 1000.0 * row + f);
  }
}

TEST_F(PanelsTest, SlicesAndSteps) {
  const Panels<const double> slice = panels_.Slice(4, 3);
  EXPECT_EQ(slice.features, 3);
  EXPECT_EQ(slice.At(20, 2), 20006);
  const Panels<const double> every = panels_.Every(1, 3, 3);
  EXPECT_EQ(every.features, 3);
  EXPECT_EQ(every.At(36, 2), 36007);
  EXPECT_EQ(every.Slice(1, 2).At(5, 0), 5004);
}

TEST_F(PanelsTest, RefusesFeaturesOutside) {
  EXPECT_DEATH(panels_.Slice(8, 3), "11 vs. 10");
  EXPECT_DEATH(panels_.Every(1, 3, 4), "10 vs. 9");
}

TEST(PanelStrideTest, IsAnOddNumberOfCacheLines) {
  EXPECT_EQ(PanelStride(1), 16);
  EXPECT_EQ(PanelStride(2), 48);
  EXPECT_EQ(PanelStride(390), 391 * 16);
  EXPECT_EQ(PanelElements(1, 3), 48);
  EXPECT_EQ(PanelElements(17, 3), 96);
  EXPECT_EQ(PanelElements(0, 3), 0);
}

}  // namespace
}  // namespace elastor
