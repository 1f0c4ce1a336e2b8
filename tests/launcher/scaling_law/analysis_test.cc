// What the intervals and verdicts are worth, on points drawn from a known law. In the test run a
// few draws; the figures of docs/results/sweeps.md:
//
//   bazel run -c opt //tests/launcher/scaling_law:analysis_test -- --draws=200 --replicates=1000
#include "launcher/scaling_law/analysis.h"

#include <gflags/gflags.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <numeric>
#include <span>

#include "gtest/gtest.h"
#include "tests/launcher/scaling_law/drawn_points.h"

DEFINE_int32(draws, 24, "sets of points that every share is measured on");
DEFINE_int32(replicates, 100, "of a bootstrap");

namespace elastor {
namespace {

const std::vector<std::string> kNames = {"dense_parameters"};

Analysis AnalyseDraw(const DrawnPlan& plan, uint64_t draw) {
  return Analyse("model", kNames, DrawPoints(plan, draw),
                 {.delta = {}, .replicates = FLAGS_replicates, .seed = draw});
}

// The share of draws of which something holds.
double Share(const DrawnPlan& plan, const std::function<bool(const Analysis&)>& holds) {
  int count = 0;
  for (int draw = 0; draw < FLAGS_draws; ++draw) count += holds(AnalyseDraw(plan, draw));
  return count / static_cast<double>(FLAGS_draws);
}

// Of the sizes, and of one and two steps beyond, the share of draws whose interval has the truth.
std::vector<double> Coverage(const DrawnPlan& plan) {
  std::vector<double> covered(plan.sizes + 2);
  for (int draw = 0; draw < FLAGS_draws; ++draw) {
    const Analysis analysis = AnalyseDraw(plan, draw);
    for (size_t i = 0; i < covered.size(); ++i) {
      const LawPrediction& prediction = analysis.predictions[i];
      const double truth = TrueLaw().At(prediction.sizes);
      const bool inside = prediction.interval.low <= truth && truth <= prediction.interval.high;
      covered[i] += inside / static_cast<double>(FLAGS_draws);
    }
  }
  std::printf("coverage at the sizes and one and two steps beyond:");
  for (const double share : covered) std::printf(" %.3f", share);
  std::printf("\n");
  return covered;
}

// The right values are scipy's (curve_fit of log L to the sizes' means, Student's quantile of three
// degrees of freedom) and an analysis of variance by numpy. An interval of the exponent is that of
// a linearised law there, so that its ends are near and not the same.
TEST(Analysis, AgreesWithScipy) {
  const Analysis analysis =
      Analyse("model", kNames, DrawPoints({.range = 31.6, .sizes = 6, .misfit_spread = 1e-3}, 2),
              {.delta = 1, .replicates = 1000});
  EXPECT_NEAR(analysis.fit.law.exponents[0], 0.417769, 1e-5);
  EXPECT_NEAR(analysis.fit.law.limit, 0.4436512, 1e-6);
  EXPECT_NEAR(analysis.noise.seed_spread, 8.37494e-4, 1e-8);
  EXPECT_NEAR(analysis.noise.size_spread, 9.52102e-4, 1e-8);
  EXPECT_EQ(analysis.noise.size_freedom, 3);
  const Interval exponent = analysis.bootstrap.Of([](const Law& law) { return law.exponents[0]; });
  EXPECT_NEAR(exponent.low, 0.2967, 0.02);
  EXPECT_NEAR(exponent.high, 0.5388, 0.02);
  const Interval largest = analysis.predictions[5].interval;
  EXPECT_NEAR(largest.low, 0.452324, 3e-4);
  EXPECT_NEAR(largest.high, 0.454818, 3e-4);
}

// Of n draws of probability 0.95, a share this low comes up once in 10,000 times.
double LeastShare() { return 0.95 - 3.7 * std::sqrt(0.95 * 0.05 / FLAGS_draws); }

TEST(Analysis, IntervalsOfPredictionsCover) {
  const std::vector<double> six = Coverage({.range = 31.6, .sizes = 6});
  for (const double share : six) EXPECT_GE(share, LeastShare());
}

// Of the joint law over width and depth: five widths by four depths, three seeds.
TEST(Analysis, IntervalsOfJointPredictionsCover) {
  const Law law = {0.44, {0.02, 0.006}, {0.5, 0.6}, {64, 3}};
  const std::vector<std::string> names = {"width", "depth"};
  constexpr size_t kSeeds = 3;
  const int draws = (FLAGS_draws + 2) / 3;
  std::vector<double> covered;
  for (int draw = 0; draw < draws; ++draw) {
    std::vector<double> normals(20 * kSeeds);
    FillNormal(MakeRandomKey(8, RandomPurpose::kSynthetic, 0), draw, 1,
               static_cast<int64_t>(normals.size()), normals.data());
    std::vector<Configuration> points;
    for (const double width : {16, 32, 64, 128, 256}) {
      for (const double depth : {1, 2, 4, 8}) {
        Configuration& point = points.emplace_back(Configuration{{width, depth}, {}});
        for (size_t seed = 1; seed <= kSeeds; ++seed) {
          const double normal = normals[points.size() * kSeeds - seed];
          point.values.push_back(law.At(point.sizes) * std::exp(1e-3 * normal));
        }
      }
    }
    const Analysis analysis =
        Analyse("model", names, points,
                {.delta = {}, .replicates = FLAGS_replicates, .seed = static_cast<uint64_t>(draw)});
    covered.resize(analysis.predictions.size());
    for (size_t i = 0; i < covered.size(); ++i) {
      const LawPrediction& prediction = analysis.predictions[i];
      const double truth = law.At(prediction.sizes);
      const bool inside = prediction.interval.low <= truth && truth <= prediction.interval.high;
      covered[i] += inside / static_cast<double>(draws);
    }
  }
  const std::span<const double> within(covered.data(), covered.size() - 2);
  const auto [least, most] = std::ranges::minmax(within);
  const double mean =
      std::accumulate(within.begin(), within.end(), 0.0) / static_cast<double>(within.size());
  std::printf("joint coverage: mean %.3f, %.3f to %.3f at the sizes, %.3f and %.3f beyond\n", mean,
              least, most, covered[covered.size() - 2], covered.back());
  EXPECT_GE(mean, 0.95 - 1.5 / draws);
}

// One that is always wide enough is too wide: half of it is Student's quantile, 3.18, times an
// estimate of the error's deviation, and about 1.5 times as wide as 1.96 deviations.
TEST(Analysis, IntervalsAreAsWideAsTheErrors) {
  const DrawnPlan plan = {.range = 31.6, .sizes = 6};
  double width = 0, squares = 0;
  for (int draw = 0; draw < FLAGS_draws; ++draw) {
    const LawPrediction largest = AnalyseDraw(plan, draw).predictions[5];
    width += (largest.interval.high - largest.interval.low) / FLAGS_draws;
    squares += std::pow(largest.value - TrueLaw().At(largest.sizes), 2) / FLAGS_draws;
  }
  const double ratio = width / (2 * 1.96 * std::sqrt(squares));
  std::printf("width of the intervals over that of the errors: %.2f\n", ratio);
  EXPECT_GT(ratio, 1);
  EXPECT_LT(ratio, 2.2);
}

// Configurations that miss the law by twice the spread of their seeds.
TEST(Analysis, IntervalsKnowOfMisfits) {
  const std::vector<double> shares =
      Coverage({.range = 31.6, .sizes = 6, .seed_spread = 5e-4, .misfit_spread = 1e-3});
  for (const double share : shares) EXPECT_GE(share, LeastShare());
}

TEST(Analysis, WideRangesIdentifyTheLaw) {
  const double share = Share({.range = 31.6, .sizes = 6}, [](const Analysis& analysis) {
    return analysis.identification.identified();
  });
  std::printf("identified over a factor of 31.6: %.3f\n", share);
  EXPECT_GE(share, 0.9);
}

TEST(Analysis, NarrowRangesDoNot) {
  int by_likelihood = 0;
  const double share = Share({.range = 4, .sizes = 6, .seed_spread = 3e-3}, [&](const Analysis& a) {
    for (const std::string& reason : a.identification.reasons) {
      if (reason.starts_with("profile likelihood")) {
        ++by_likelihood;
        break;
      }
    }
    return a.identification.identified();
  });
  std::printf("identified over a factor of 4: %.3f; refused by the profile likelihood: %.3f\n",
              share, by_likelihood / static_cast<double>(FLAGS_draws));
  EXPECT_LE(share, 0.05);
  // Not only because of the range.
  EXPECT_GE(by_likelihood / static_cast<double>(FLAGS_draws), 0.6);
}

TEST(Analysis, HoldOutSeesALawThatBreaks) {
  const auto breaks = [](const Analysis& analysis) { return analysis.hold_out->breaks_law(); };
  const double told = Share({.break_of_largest = 0.01}, breaks);
  const double false_alarms = Share({}, breaks);
  const double with_scatter = Share({.misfit_spread = 1e-3}, breaks);
  std::printf(
      "hold-out: told %.3f of breaks by 1 %%, false alarms %.3f, %.3f where sizes scatter\n", told,
      false_alarms, with_scatter);
  EXPECT_GE(told, 0.95);
  EXPECT_LE(false_alarms, 1 - LeastShare());
  EXPECT_LE(with_scatter, 1 - LeastShare());
}

TEST(Analysis, HoldOutIsNotFittedTo) {
  const Analysis analysis = AnalyseDraw({}, 1);
  ASSERT_TRUE(analysis.hold_out.has_value());
  EXPECT_EQ(analysis.hold_out->fitted, 6);
  ASSERT_EQ(analysis.hold_out->held_out.size(), 2u);
  std::vector<Configuration> points = DrawPoints({}, 1);
  points[7].values.assign(5, 0.3);
  const std::optional<HoldOut> other = HoldOutLargest(points, {}, 64, 10, 1);
  EXPECT_EQ(other->held_out[1].predicted, analysis.hold_out->held_out[1].predicted);
  EXPECT_EQ(other->held_out[1].observed, 0.3);
  EXPECT_LT(analysis.hold_out->RootMeanSquare(&HeldOut::error),
            analysis.hold_out->RootMeanSquare(&HeldOut::last_value_error));
}

TEST(Analysis, SaysWhyNotIdentified) {
  const auto reasons = [](const std::vector<Configuration>& points) {
    std::string text;
    for (const std::string& reason :
         Analyse("model", kNames, points, {.delta = 1e-3, .replicates = 100})
             .identification.reasons) {
      text += reason + "\n";
    }
    return text;
  };
  std::vector<Configuration> points = DrawPoints({.seeds = 2, .seed_spread = 1e-5}, 0);
  EXPECT_EQ(reasons(points), "");
  EXPECT_EQ(reasons(DrawPoints({.range = 4, .seeds = 2, .seed_spread = 1e-6}, 0)),
            "dense_parameters spans a factor of 4; expected a decade at least\n");
  EXPECT_NE(reasons({points[0], points[1], points[7]}).find("none is left to contradict"),
            std::string::npos);
  for (size_t i = 0; i < points.size(); ++i) points[i].values.assign(2, 0.4 + 0.01 * i);
  EXPECT_NE(reasons(points).find("does not fall with dense_parameters"), std::string::npos);
  for (size_t i = 0; i < points.size(); ++i) points[i].values.assign(2, 1 - 0.1 * i);
  EXPECT_NE(reasons(points).find("the limit E may be 0"), std::string::npos);
  for (size_t i = 0; i < points.size(); ++i) points[i].values.assign(2, 1 - 0.001 * i * i);
  EXPECT_NE(reasons(points).find("at a bound of the search, 0.02"), std::string::npos);
}

// Adversaries: points that fit no law, or fit several. A verdict never stands beside figures that
// contradict it.
class Adversary {
 public:
  // `points` of a draw. Analyses a few draws.
  explicit Adversary(const std::function<std::vector<Configuration>(uint64_t)>& points) {
    for (uint64_t draw = 0; draw < 4; ++draw) {
      analyses_.push_back(
          Analyse("model", kNames, points(draw), {.delta = {}, .replicates = 100, .seed = draw}));
      const Analysis& analysis = analyses_.back();
      if (!analysis.identification.identified()) continue;
      const Interval exponent =
          analysis.bootstrap.Of([](const Law& law) { return law.exponents[0]; });
      const Interval limit = analysis.bootstrap.Of([](const Law& law) { return law.limit; });
      EXPECT_LE(exponent.high, kWidestInterval * exponent.low);
      EXPECT_LE(limit.high, kWidestInterval * limit.low);
      EXPECT_GT(exponent.low, kLeastExponent);
      EXPECT_LT(exponent.high, kMostExponent * 0.999);
      EXPECT_FALSE(analysis.hold_out && analysis.hold_out->breaks_law());
    }
  }

  const std::vector<Analysis>& analyses() const { return analyses_; }
  int identified() const {
    return static_cast<int>(std::ranges::count_if(
        analyses_, [](const Analysis& each) { return each.identification.identified(); }));
  }
  // The number of draws with a reason that begins so.
  int Reasons(const std::string& begin) const {
    return static_cast<int>(std::ranges::count_if(analyses_, [&](const Analysis& each) {
      return std::ranges::any_of(each.identification.reasons, [&](const std::string& reason) {
        return reason.starts_with(begin);
      });
    }));
  }

 private:
  std::vector<Analysis> analyses_;
};

// The draws of a plan whose values are multiplied by a function of the size's number.
std::function<std::vector<Configuration>(uint64_t)> Bent(
    const DrawnPlan& plan, const std::function<double(int, double)>& bend) {
  return [=](uint64_t draw) {
    std::vector<Configuration> points = DrawPoints(plan, draw);
    for (int i = 0; i < plan.sizes; ++i) {
      for (double& value : points[i].values) value *= bend(i, TrueLaw().At(points[i].sizes));
    }
    return points;
  };
}

const DrawnPlan kSix = {.range = 31.6, .sizes = 6};

TEST(Adversaries, OneRunThatWentWrong) {
  DrawnPlan plan = kSix;
  plan.outlier = 0.05;
  const Adversary adversary([&](uint64_t draw) { return DrawPoints(plan, draw); });
  EXPECT_EQ(adversary.identified(), 0);
  EXPECT_GE(adversary.Reasons("the 95 % interval of the exponent of dense_parameters is"), 3);
}

// One run, one size.
TEST(Adversaries, OneSizeThatDecides) {
  const Adversary run([&](uint64_t draw) {
    std::vector<Configuration> points = DrawPoints({.seeds = 2, .seed_spread = 1e-5}, draw);
    for (size_t i = 1; i < points.size(); ++i) points[i].values = {points[i].values[0]};
    points[0].values[0] *= 1.2;
    return points;
  });
  EXPECT_EQ(run.identified(), 0);
  EXPECT_EQ(run.Reasons("one run decides: without the run with 0.5"), 4);
  // All that bends is the smallest size.
  const Adversary size(Bent({.sizes = 6, .seed_spread = 1e-4},
                            [](int i, double law) { return i == 0 ? 1 : 0.45 / law; }));
  EXPECT_EQ(size.identified(), 0);
  EXPECT_GE(size.Reasons("one size decides: without dense_parameters 100000 "), 3);
}

TEST(Adversaries, NearDuplicatesCountOnce) {
  const Adversary adversary([](uint64_t draw) {
    std::vector<Configuration> points =
        DrawPoints({.range = 100, .sizes = 3, .seed_spread = 1e-6}, draw);
    for (int i = 0; i < 3; ++i) {
      points.push_back(points[i]);
      points.back().sizes[0] *= 1.05;
      for (double& value : points.back().values) {
        value *= TrueLaw().At(points.back().sizes) / TrueLaw().At(points[i].sizes);
      }
    }
    return points;
  });
  EXPECT_EQ(adversary.identified(), 0);
  EXPECT_EQ(adversary.Reasons("dense_parameters has 3 different sizes; expected 4"), 4);
  for (const Analysis& analysis : adversary.analyses()) {
    EXPECT_EQ(analysis.noise.size_freedom, 0);
    EXPECT_FALSE(analysis.hold_out.has_value());
  }
}

TEST(Adversaries, Break) {
  const Adversary adversary(
      [](uint64_t draw) { return DrawPoints({.break_of_largest = 0.01}, draw); });
  EXPECT_EQ(adversary.identified(), 0);
  EXPECT_EQ(adversary.Reasons("the largest sizes break the law"), 4);
}

TEST(Adversaries, UShape) {
  const Adversary adversary(
      Bent({}, [](int i, double) { return 1 + 0.002 * (i - 3.5) * (i - 3.5); }));
  EXPECT_EQ(adversary.identified(), 0);
}

TEST(Adversaries, Saturation) {
  const Adversary adversary(Bent({}, [](int, double law) { return std::max(law, 0.455) / law; }));
  EXPECT_EQ(adversary.identified(), 0);
}

TEST(Adversaries, NegativeExponent) {
  const Adversary adversary(Bent({}, [](int i, double law) { return (0.4 + 0.01 * i) / law; }));
  EXPECT_EQ(adversary.identified(), 0);
  EXPECT_EQ(adversary.Reasons("the value does not fall with dense_parameters"), 4);
}

// 1 - AUC near 0: the law is one of relative errors, and of a million times smaller values alike.
TEST(Adversaries, AucNearOne) {
  const Adversary plain(Bent(kSix, [](int, double) { return 1; }));
  const Adversary small(Bent(kSix, [](int, double) { return 1e-6; }));
  EXPECT_EQ(small.identified(), plain.identified());
  for (size_t i = 0; i < plain.analyses().size(); ++i) {
    const Analysis& a = plain.analyses()[i];
    const Analysis& b = small.analyses()[i];
    EXPECT_NEAR(b.fit.law.exponents[0], a.fit.law.exponents[0], 1e-4);
    EXPECT_NEAR(b.fit.law.limit, 1e-6 * a.fit.law.limit, 1e-10);
  }
  // With a limit of 0, and seeds that differ by a third.
  const Adversary none(
      Bent({.seed_spread = 0.3}, [](int, double law) { return 1e-4 * (law - 0.44) / law; }));
  EXPECT_EQ(none.identified(), 0);
}

TEST(Analysis, SameBits) {
  const Analysis a = AnalyseDraw({}, 3), b = AnalyseDraw({}, 3);
  ASSERT_FALSE(a.predictions.empty());
  ASSERT_EQ(a.predictions.size(), b.predictions.size());
  for (size_t i = 0; i < a.predictions.size(); ++i) {
    EXPECT_EQ(a.predictions[i].value, b.predictions[i].value);
    EXPECT_EQ(a.predictions[i].interval.low, b.predictions[i].interval.low);
    EXPECT_EQ(a.predictions[i].interval.high, b.predictions[i].interval.high);
  }
  const Analysis other_draws = Analyse("model", kNames, a.configurations,
                                       {.delta = {}, .replicates = FLAGS_replicates, .seed = 4});
  EXPECT_EQ(other_draws.predictions[0].value, a.predictions[0].value);
  EXPECT_NE(other_draws.predictions[0].interval.low, a.predictions[0].interval.low);
}

TEST(Analysis, ModelsAreToldApartByTheirDifference) {
  const AnalysisOptions options = {.delta = {}, .replicates = 200};
  std::vector<Configuration> better = DrawPoints({}, 6);
  for (Configuration& point : better) {
    for (double& value : point.values) value *= 0.995;
  }
  const Analysis first = Analyse("first", kNames, better, options);
  const Analysis second = Analyse("second", kNames, DrawPoints({}, 7), options);
  const Analysis third = Analyse("third", kNames, DrawPoints({}, 8), options);
  for (const ComparedPrediction& at : Compare(first, second)) {
    EXPECT_LT(at.difference.high, 0) << at.size;
    EXPECT_EQ(at.first, first.fit.law.At(std::vector<double>{at.size}));
  }
  const Interval alone = Compare(first, second)[1].difference;
  const Interval of_three = Compare(first, second, 3)[1].difference;
  EXPECT_LT(of_three.low, alone.low);
  EXPECT_GT(of_three.high, alone.high);
  EXPECT_FALSE(Compare(second, third)[1].told_apart());
  const Analysis far = Analyse("far", kNames, DrawPoints({.least = 1e9}, 9), options);
  EXPECT_TRUE(Compare(first, far).empty());
}

}  // namespace
}  // namespace elastor

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  gflags::ParseCommandLineFlags(&argc, &argv, true);
  return RUN_ALL_TESTS();
}
