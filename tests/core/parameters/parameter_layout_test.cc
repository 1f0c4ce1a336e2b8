#include "core/parameters/parameter_layout.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace elastor {
namespace {

constexpr int64_t kBucket = 2048;

ParameterLayout MakeLayout() {
  ParameterLayout layout(kBucket);
  layout.Declare("a", {3, 5}, Init::Constant(2), Decay::kNone);
  layout.Declare("b", {1000}, Init{0.5, 0}, Decay::kDense);
  layout.Declare("c", {1200}, Init{0.5, 0}, Decay::kDense);
  layout.Declare("d", {7}, Init::Constant(0), Decay::kEmbedding);
  layout.Finish();
  return layout;
}

TEST(ParameterLayoutTest, PlacesDoNotOverlapAndAreAligned) {
  const ParameterLayout layout = MakeLayout();
  int64_t end = 0;
  int64_t elements = 0;
  for (const ParameterInfo& p : layout.parameters()) {
    EXPECT_GE(p.offset, end) << p.name;
    EXPECT_EQ(p.offset % 16, 0) << p.name;
    end = p.offset + p.size;
    elements += p.size;
  }
  EXPECT_LE(end, layout.flat_size());
  EXPECT_EQ(layout.flat_size() % kParameterBlock, 0);
  EXPECT_EQ(layout.element_count(), elements);
  EXPECT_EQ(layout[0].size, 15);
}

TEST(ParameterLayoutTest, StatisticsLieAmongTheParameters) {
  ParameterLayout layout(kBucket);
  layout.Declare("a", {20}, Init::Constant(2), Decay::kDense);
  const int mean = layout.DeclareStatistic("mean", {3, 2}, 0.5);
  layout.Declare("b", {7}, Init::Constant(3), Decay::kNone);
  layout.Finish();
  EXPECT_FALSE(layout[0].statistic);
  EXPECT_TRUE(layout[mean].statistic);
  EXPECT_EQ(layout[mean].decay, Decay::kNone);
  EXPECT_EQ(layout.element_count(), 27);
  std::vector<double> values(layout.flat_size());
  layout.Initialize(/*seed=*/1, values.data());
  EXPECT_EQ(values[layout[mean].offset], 0.5);
  EXPECT_EQ(values[layout[mean].offset + 5], 0.5);
}

// A bucket is closed by the parameter after the one that fills it; buckets cover the array.
TEST(ParameterLayoutTest, BucketsAreWholeBlocks) {
  const ParameterLayout layout = MakeLayout();
  ASSERT_EQ(layout.buckets().size(), 2u);
  int64_t end = 0;
  for (const Range& bucket : layout.buckets()) {
    EXPECT_EQ(bucket.begin, end);
    EXPECT_EQ(bucket.size() % kParameterBlock, 0);
    end = bucket.end;
  }
  EXPECT_EQ(end, layout.flat_size());
  for (const ParameterInfo& p : layout.parameters()) {
    const Range bucket = layout.buckets()[p.bucket];
    EXPECT_GE(p.offset, bucket.begin) << p.name;
    EXPECT_LE(p.offset + p.size, bucket.end) << p.name;
  }
  EXPECT_EQ(layout[2].bucket, 0);
  EXPECT_EQ(layout[3].bucket, 1);
}

template <typename T>
std::vector<T> Initial(const ParameterLayout& layout, uint64_t seed) {
  std::vector<T> values(layout.flat_size(), T{9});
  layout.Initialize(seed, values.data());
  return values;
}

TEST(ParameterLayoutTest, InitialValues) {
  const ParameterLayout layout = MakeLayout();
  const std::vector<float> values = Initial<float>(layout, 1);
  for (int64_t i = 0; i < 15; ++i) EXPECT_EQ(values[layout[0].offset + i], 2);
  EXPECT_EQ(values[15], 0);  // padding
  EXPECT_EQ(values.back(), 0);
  double squares = 0;
  for (int64_t i = 0; i < 1000; ++i) squares += std::pow(values[layout[1].offset + i], 2);
  // Four standard deviations of the estimate.
  EXPECT_NEAR(squares / 1000, 0.25, 4 * 0.25 * std::sqrt(2.0 / 1000));
  EXPECT_EQ(Initial<float>(layout, 1), values);
  EXPECT_NE(Initial<float>(layout, 2), values);
}

TEST(ParameterLayoutTest, DoubleAndFloatStartAlike) {
  const ParameterLayout layout = MakeLayout();
  const std::vector<float> single = Initial<float>(layout, 1);
  const std::vector<double> wide = Initial<double>(layout, 1);
  for (size_t i = 0; i < wide.size(); ++i) ASSERT_NEAR(single[i], wide[i], 1e-6) << i;
}

// Values are keyed by name: what else a model declares, and where, does not matter.
TEST(ParameterLayoutTest, ValuesFollowTheName) {
  ParameterLayout other;
  other.Declare("c", {1200}, Init{0.5, 0}, Decay::kDense);
  other.Finish();
  const ParameterLayout layout = MakeLayout();
  const std::vector<float> values = Initial<float>(layout, 1);
  const std::vector<float> alone = Initial<float>(other, 1);
  bool differs_from_b = false;
  for (int64_t i = 0; i < 1000; ++i) {
    ASSERT_EQ(alone[i], values[layout[2].offset + i]);
    differs_from_b = differs_from_b || alone[i] != values[layout[1].offset + i];
  }
  EXPECT_TRUE(differs_from_b);
}

TEST(InitTest, XavierNormal) {
  EXPECT_DOUBLE_EQ(Init::XavierNormal(6, 2).stddev, 0.5);
  EXPECT_EQ(Init::XavierNormal(6, 2).constant, 0);
}

}  // namespace
}  // namespace elastor
