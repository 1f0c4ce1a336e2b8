#include "launcher/scaling_law/law_fit.h"

#include "gtest/gtest.h"
#include "launcher/scaling_law/noise.h"
#include "launcher/scaling_law/sizes.h"
#include "tests/launcher/scaling_law/drawn_points.h"

namespace elastor {
namespace {

constexpr double kDelta = 1e-3;
// A descent ends within 1e-6 of the exponent's logarithm.
constexpr double kExact = 1e-4;

// Width by depth, without noise.
std::vector<Configuration> JointPoints(const Law& law) {
  std::vector<Configuration> configurations;
  for (const double width : {16, 32, 64, 128, 256}) {
    for (const double depth : {1, 2, 4, 8}) {
      configurations.push_back({{width, depth}, {law.At(std::vector<double>{width, depth})}});
    }
  }
  return configurations;
}

TEST(LawFit, FindsTheLawOfPointsWithoutNoise) {
  for (const double exponent : {0.05, 0.35, 1.0, 2.5}) {
    const Law law = {0.44, {0.02}, {exponent}, {1e6}};
    std::vector<Configuration> points = DrawPoints({.seeds = 1, .seed_spread = 0}, 0);
    for (Configuration& point : points) point.values = {law.At(point.sizes)};
    const LawFitter::Fit fit = LawFitter(points, kDelta).Minimise(64);
    EXPECT_NEAR(fit.law.exponents[0], exponent, kExact * exponent);
    EXPECT_NEAR(fit.law.limit, 0.44, kExact);
    EXPECT_NEAR(fit.law.At(std::vector<double>{1e6}), 0.46, 1e-8);
    EXPECT_EQ(fit.optima, 1);
    EXPECT_EQ(fit.starts, 64);
  }
}

TEST(LawFit, FindsTheJointLawOfPointsWithoutNoise) {
  const Law law = {0.44, {0.03, 0.01}, {0.3, 0.8}, {64, 3}};
  const LawFitter::Fit fit = LawFitter(JointPoints(law), kDelta).Minimise(24);
  EXPECT_NEAR(fit.law.limit, 0.44, 1e-4);
  EXPECT_NEAR(fit.law.exponents[0], 0.3, 1e-3);
  EXPECT_NEAR(fit.law.exponents[1], 0.8, 1e-3);
  EXPECT_EQ(fit.starts, 24 * 24);
  EXPECT_EQ(fit.optima, 1);
}

TEST(LawFit, NeverNegative) {
  // Rising values: no A > 0 helps, and the limit is their middle.
  std::vector<Configuration> points = DrawPoints({.seed_spread = 0}, 0);
  for (size_t i = 0; i < points.size(); ++i) points[i].values = {0.4 + 0.01 * i};
  const LawFitter::Fit rising = LawFitter(points, 1.0).Minimise(32);
  EXPECT_EQ(rising.law.coefficients[0], 0);
  EXPECT_NEAR(rising.law.limit, 0.435, 1e-3);
  // A straight line over log(size) falls below any limit in the end: none is found.
  for (size_t i = 0; i < points.size(); ++i) points[i].values = {1 - 0.1 * i};
  EXPECT_EQ(LawFitter(points, 1.0).Minimise(32).law.limit, 0);
}

// One run in fifteen that went wrong: least squares follows it, Huber's loss hardly.
TEST(LawFit, OneOutlierMovesItLittle) {
  std::vector<Configuration> points = DrawPoints({.seeds = 3, .seed_spread = 1e-4}, 1);
  const std::vector<double> at = {1e6};
  const double before = LawFitter(points, 2e-4).Minimise(32).law.At(at);
  points[4].values[0] *= 1.02;
  const double huber = LawFitter(points, 2e-4).Minimise(32).law.At(at);
  const double squares = LawFitter(points, 1.0).Minimise(32).law.At(at);
  EXPECT_LT(std::abs(huber / before - 1), 1e-4);
  EXPECT_GT(std::abs(squares / before - 1), 1e-3);
}

TEST(LawFit, TheProfilesLowestPointIsTheFit) {
  const Law law = {0.44, {0.03, 0.01}, {0.3, 0.8}, {64, 3}};
  const std::vector<Configuration> points = JointPoints(law);
  const LawFitter fitter(points, kDelta);
  const double at_truth = fitter.MinimiseWithFixed(1, 0.8, 12).objective;
  EXPECT_LT(at_truth, 1e-12);
  EXPECT_GT(fitter.MinimiseWithFixed(1, 0.6, 12).objective, at_truth);
  EXPECT_GT(fitter.MinimiseWithFixed(1, 1.1, 12).objective, at_truth);
}

TEST(LawFit, SpreadIsPooledOverConfigurations) {
  const std::vector<Configuration> points = {
      {{1}, {std::exp(0.1), std::exp(-0.1)}}, {{2}, {1.0, 1.0, 1.0}}, {{3}, {5.0}}};
  EXPECT_NEAR(*SeedSpread(points), std::sqrt(0.02 / 3), 1e-15);
  EXPECT_FALSE(SeedSpread(std::span(points).last(1)).has_value());
}

// Sizes 1, 2, 4, ... whose runs have these logarithms.
std::vector<Configuration> PointsOf(const std::vector<std::vector<double>>& logs) {
  std::vector<Configuration> points;
  for (size_t i = 0; i < logs.size(); ++i) {
    points.push_back({{std::pow(2.0, i)}, {}});
    for (const double log : logs[i]) points.back().values.push_back(std::exp(log));
  }
  return points;
}

// About the law L = 1; the right values are from a script of Python's floats: an analysis of
// variance where sizes have equally many runs, Paule and Mandel's equation by bisection where not.
TEST(Noise, IsOfSizesAndOfSeeds) {
  const Law one = {1, {0}, {1}, {1}};
  const LawNoise even = NoiseOf(
      PointsOf({{.010, .014}, {-.021, -.019}, {.004, 0}, {.013, .010}, {-.009, -.012}}), one);
  EXPECT_EQ(even.size_freedom, 2);
  EXPECT_EQ(even.freedom, 2);
  EXPECT_NEAR(even.seed_spread, 0.0023237900077, 1e-12);
  EXPECT_NEAR(even.size_spread, 0.0198128746021, 1e-11);
  EXPECT_EQ(even.drawn_size_spread, even.size_spread);
  const LawNoise uneven = NoiseOf(
      PointsOf(
          {{.010, .014, .011, .015}, {-.021, -.019}, {.004}, {.013, .010, .011}, {-.009, -.012}}),
      one);
  EXPECT_NEAR(uneven.seed_spread, 0.0020059435495, 1e-12);
  EXPECT_NEAR(uneven.size_spread, 0.0200928184261, 1e-11);
  // Means that differ less than the seeds allow.
  const LawNoise less = NoiseOf(
      PointsOf({{.010, -.011}, {-.021, .019}, {.004, -.003}, {.013, -.010}, {-.009, .012}}), one);
  EXPECT_EQ(less.size_spread, 0);
  EXPECT_NEAR(less.seed_spread, 0.0174928556845, 1e-12);
  EXPECT_NEAR(less.drawn_seed_spread, 0.0024494897428, 1e-12);
  // No size beyond three parameters: the seeds' freedom.
  const LawNoise three = NoiseOf(PointsOf({{.010, .014}, {-.021, -.019}, {.004, 0}}), one);
  EXPECT_EQ(three.size_freedom, 0);
  EXPECT_EQ(three.freedom, 3);
}

TEST(Noise, WeighsSizesByTheirVariance) {
  const std::vector<Configuration> points = PointsOf({{0, 0, 0, 0}, {0, 0}});
  // The variances of the means are as 1/4 + 1/2 and 1/2 + 1/2.
  const std::vector<double> weights = WeightsOf(points, 0.5);
  EXPECT_NEAR(4 * weights[0] / (2 * weights[1]), 4.0 / 3, 1e-12);
  EXPECT_NEAR(4 * weights[0] + 2 * weights[1], 6, 1e-12);
  EXPECT_EQ(WeightsOf(points, 0), (std::vector<double>{1, 1}));
}

TEST(Sizes, NearDuplicatesAreOne) {
  const auto groups = [](const std::vector<std::vector<double>>& sizes) {
    std::vector<Configuration> points;
    for (const std::vector<double>& each : sizes) points.push_back({each, {1}});
    return GroupsOf(points);
  };
  EXPECT_EQ(groups({{100}, {300}, {109}, {111}, {290}, {121}}),
            (std::vector<int>{0, 1, 0, 2, 1, 2}));
  EXPECT_EQ(groups({{16, 1}, {17, 1}, {16, 2}, {32, 1}}), (std::vector<int>{0, 0, 1, 2}));
}

}  // namespace
}  // namespace elastor
