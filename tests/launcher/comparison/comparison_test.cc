#include "launcher/comparison/comparison.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "core/base/file.h"
#include "core/base/random.h"
#include "launcher/comparison/arm_sentences.h"
#include "launcher/comparison/arms.h"
#include "launcher/comparison/energy_distance.h"
#include "launcher/comparison/loss_and_gap.h"
#include "launcher/comparison/row_statistics.h"
#include "launcher/comparison/significance.h"

namespace elastor {
namespace {

// Normal numbers of one stream.
class Normals {
 public:
  explicit Normals(uint64_t key) : key_(key) {}
  double Next() {
    const PhiloxBlock block = Philox(key_, {next_++, 0, 0, 0});
    return NormalFromBits(block[0], block[1]).first;
  }

 private:
  const uint64_t key_;
  uint32_t next_ = 0;
};

struct Rows {
  std::vector<uint8_t> labels;
  std::vector<float> scores;
};

// Scores in steps of `step`, so that some are equal.
Rows MakeRows(int64_t count, uint64_t key, double step) {
  Rows rows;
  Normals normals(key);
  for (int64_t i = 0; i < count; ++i) {
    const bool positive = normals.Next() > 0.5;
    const double score = 0.5 + 0.1 * (normals.Next() + positive);
    rows.labels.push_back(positive);
    rows.scores.push_back(static_cast<float>(step * std::round(score / step)));
  }
  return rows;
}

double Kernel(float positive, float negative) {
  return positive > negative ? 1 : positive == negative ? 0.5 : 0;
}

// All pairs of a positive and a negative.
double AucOfPairs(const Rows& rows) {
  double sum = 0, pairs = 0;
  for (size_t i = 0; i < rows.labels.size(); ++i) {
    for (size_t j = 0; j < rows.labels.size(); ++j) {
      if (rows.labels[i] != 1 || rows.labels[j] != 0) continue;
      sum += Kernel(rows.scores[i], rows.scores[j]);
      ++pairs;
    }
  }
  return sum / pairs;
}

TEST(RowStatisticsTest, PlacementsAreMeansOverPairs) {
  for (const double step : {1e-6, 0.05, 0.3}) {
    const Rows rows = MakeRows(83, /*key=*/3, step);
    const std::vector<double> placements = Placements(rows.labels, rows.scores);
    EXPECT_NEAR(MeanOfPositives(rows.labels, placements), AucOfPairs(rows), 1e-13) << step;
    for (size_t i = 0; i < rows.labels.size(); ++i) {
      double sum = 0, count = 0;
      for (size_t j = 0; j < rows.labels.size(); ++j) {
        if (rows.labels[j] == rows.labels[i]) continue;
        sum += rows.labels[i] == 1 ? Kernel(rows.scores[i], rows.scores[j])
                                   : Kernel(rows.scores[j], rows.scores[i]);
        ++count;
      }
      EXPECT_NEAR(placements[i], sum / count, 1e-13) << step << " " << i;
    }
  }
}

TEST(RowStatisticsTest, DeLongVarianceIsThatOfItsDefinition) {
  const Rows rows = MakeRows(61, /*key=*/5, 0.05);
  const std::vector<double> placements = Placements(rows.labels, rows.scores);
  double variance = 0;
  for (const int label : {0, 1}) {
    double sum = 0, squares = 0, count = 0;
    for (size_t i = 0; i < rows.labels.size(); ++i) {
      if (rows.labels[i] != label) continue;
      sum += placements[i];
      squares += placements[i] * placements[i];
      ++count;
    }
    variance += (squares - sum * sum / count) / (count - 1) / count;
  }
  EXPECT_NEAR(DeLongVariance(rows.labels, placements), variance, 1e-14);
}

TEST(RowStatisticsTest, AResampleIsItsRowsRepeated) {
  const Rows rows = MakeRows(97, /*key=*/7, 0.05);
  const ResampledAuc resampled(rows.labels, rows.scores);
  std::vector<uint32_t> ones(rows.labels.size(), 1);
  EXPECT_NEAR(resampled.Of(ones), AucOfPairs(rows), 1e-13);
  for (uint32_t resample = 0; resample < 3; ++resample) {
    const std::vector<uint32_t> counts = ResampleCounts(/*seed=*/1, resample, 97);
    Rows repeated;
    for (size_t i = 0; i < counts.size(); ++i) {
      repeated.labels.insert(repeated.labels.end(), counts[i], rows.labels[i]);
      repeated.scores.insert(repeated.scores.end(), counts[i], rows.scores[i]);
    }
    EXPECT_EQ(repeated.labels.size(), 97u);
    EXPECT_NEAR(resampled.Of(counts), AucOfPairs(repeated), 1e-13) << resample;
  }
  EXPECT_NE(ResampleCounts(1, 0, 97), ResampleCounts(1, 1, 97));
  EXPECT_NE(ResampleCounts(1, 0, 97), ResampleCounts(2, 0, 97));
}

TEST(RowStatisticsTest, LossesAreCrossEntropies) {
  const std::vector<double> losses =
      Losses(std::vector<uint8_t>{1, 0, 1}, std::vector<float>{0.25f, 0.25f, 0.0f});
  EXPECT_NEAR(losses[0], std::log(4.0), 1e-14);
  EXPECT_NEAR(losses[1], std::log(4.0 / 3), 1e-14);
  EXPECT_NEAR(losses[2], 15 * std::log(10.0), 1e-9);
}

TEST(ComparisonTest, StudentQuantiles) {
  const struct {
    double freedom, quantile;
  } known[] = {{1, 12.7062},  {4, 2.77645},  {8, 2.30600},  {9, 2.26216},
               {18, 2.10092}, {30, 2.04227}, {120, 1.97993}};
  for (const auto& [freedom, quantile] : known) {
    EXPECT_NEAR(StudentQuantile(freedom), quantile, 1e-3 * quantile) << freedom;
  }
  EXPECT_NEAR(StudentQuantile(std::numeric_limits<double>::infinity()), 1.959964, 1e-6);
  // Between whole numbers, by integration of the density.
  EXPECT_NEAR(StudentQuantile(1.5), 6.01666, 6e-3);
  EXPECT_NEAR(StudentQuantile(4.5), 2.65891, 3e-3);
}

double Width(const Interval& interval) { return interval.high - interval.low; }

// Values of tables (Abramowitz and Stegun, 26.7 and 26.9) and of closed forms.
TEST(SignificanceTest, KnownProbabilities) {
  EXPECT_NEAR(StudentP(1, 1), 0.5, 1e-12);
  EXPECT_NEAR(StudentP(-12.7062047, 1), 0.05, 1e-8);
  EXPECT_NEAR(StudentP(2, 2), 1 - 2 / std::sqrt(6.0), 1e-12);
  EXPECT_NEAR(StudentP(2.2281389, 10), 0.05, 1e-8);
  EXPECT_NEAR(StudentP(1.959964, INFINITY), 0.05, 1e-7);
  EXPECT_EQ(StudentP(0, 5), 1);
  // Fisher's with 2 and n degrees of freedom is (1 + 2 f / n)^(-n / 2); with 1 it is Student's.
  EXPECT_NEAR(FisherP(3, 2, 10), std::pow(1.6, -5), 1e-12);
  EXPECT_NEAR(FisherP(4, 1, 7), StudentP(2, 7), 1e-12);
  EXPECT_EQ(FisherP(0, 3, 4), 1);
}

TEST(SignificanceTest, HolmsCorrection) {
  const std::vector<double> adjusted = HolmAdjusted({0.01, 0.04, 0.03, 0.005});
  const double expected[] = {0.03, 0.06, 0.06, 0.02};
  for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(adjusted[i], expected[i], 1e-15) << i;
  EXPECT_EQ(HolmAdjusted({0.8, 0.7}), (std::vector<double>{1, 1}));
}

// Differences 1, 2 and 3 of three pairs, whatever their seeds do to both arms: Student's with two
// degrees of freedom.
TEST(ArmsTest, PairsBySeed) {
  const Arm first = {"first", {{"", {{1, 11}, {2, 52}, {3, 33}, {9, 1000}}}}};
  const Arm second = {"second", {{"", {{3, 30}, {2, 50}, {1, 10}}}}};
  const ArmComparison comparison = CompareArms({first, second});
  ASSERT_EQ(comparison.overall.size(), 1u);
  EXPECT_TRUE(comparison.by_level.empty());
  const ArmDifference& difference = comparison.overall[0];
  EXPECT_TRUE(difference.paired);
  EXPECT_EQ(difference.seeds, 3);
  EXPECT_NEAR(difference.value, 2, 1e-12);
  const double error = 1 / std::sqrt(3.0);
  EXPECT_NEAR(difference.interval->high, 2 + 4.30265 * error, 1e-9);
  const double t = 2 / error;
  EXPECT_NEAR(*difference.p, 1 - t / std::sqrt(2 + t * t), 1e-9);
  EXPECT_EQ(*difference.holm, *difference.p);
}

// Two levels with the spreads 1 and 3 of two pairs each: one spread of two degrees of freedom.
TEST(ArmsTest, LevelsShareTheirSpread) {
  const Arm first = {"first", {{"a", {{1, 1}, {2, 3}}}, {"b", {{1, 0}, {2, 6}}}, {"c", {{1, 5}}}}};
  const Arm second = {"second", {{"b", {{1, 0}, {2, 0}}}, {"a", {{1, 0}, {2, 0}}}}};
  const ArmComparison comparison = CompareArms({first, second});
  ASSERT_EQ(comparison.by_level.size(), 2u);
  EXPECT_EQ(comparison.by_level[0].level, "a");
  EXPECT_NEAR(comparison.by_level[0].value, 2, 1e-12);
  EXPECT_NEAR(comparison.by_level[1].value, 3, 1e-12);
  EXPECT_NEAR(comparison.overall[0].value, 2.5, 1e-12);
  // s^2 = (2 + 18) / 2; a level's mean of two pairs has s^2 / 2, the mean of both s^2 / 4.
  EXPECT_NEAR(Width(*comparison.by_level[0].interval), 2 * 4.30265 * std::sqrt(5.0), 1e-8);
  EXPECT_NEAR(Width(*comparison.overall[0].interval), 2 * 4.30265 * std::sqrt(2.5), 1e-8);
}

TEST(ArmsTest, OneSeedAndOtherSeeds) {
  const ArmComparison single =
      CompareArms({{"a", {{"", {{1, 3}}}}}, {"b", {{"", {{1, 1}}}}}, {"c", {{"x", {{1, 1}}}}}});
  ASSERT_EQ(single.overall.size(), 1u);  // c has no level in common
  EXPECT_FALSE(single.overall[0].interval || single.overall[0].holm);
  EXPECT_FALSE(single.overall[0].told_apart());
  // Welch's: variances of means 1 and 1/3, with 1 and 2 degrees of freedom.
  const ArmComparison apart =
      CompareArms({{"a", {{"", {{1, 1}, {2, 3}}}}}, {"b", {{"", {{3, 0}, {4, 1}, {5, 2}}}}}});
  const double variance = 4.0 / 3, freedom = variance * variance / (1 + 1.0 / 18);
  EXPECT_FALSE(apart.overall[0].paired);
  EXPECT_NEAR(apart.overall[0].interval->high - 1, StudentQuantile(freedom) * std::sqrt(variance),
              1e-12);
}

TEST(ArmsTest, Trends) {
  // Means 1, 2 and 6; within 2 each of 3 degrees of freedom; between 2 (4 + 1 + 9).
  const SizeTrend rising = TrendOf({{0, 2}, {1, 3}, {5, 7}});
  EXPECT_EQ(rising.best, 2u);
  EXPECT_NEAR(*rising.p, FisherP(28.0 / 2 / 2, 2, 3), 1e-12);
  EXPECT_NEAR(rising.last_step->high - 4, 3.18245 * std::sqrt(2.0), 1e-8);
  EXPECT_FALSE(rising.p_of_best.has_value());
  const SizeTrend peak = TrendOf({{0, 2}, {5, 7}, {1, 3}});
  EXPECT_EQ(peak.best, 1u);
  EXPECT_NEAR(*peak.p_of_best, 2 * StudentP(4 / std::sqrt(2.0), 3), 1e-12);
  EXPECT_FALSE(TrendOf({{1}, {2}}).p.has_value());
}

// Rows of the logit `signal`, which models see with noise of their own, alike in all their runs
// (`of_model`), and of each run.
struct Drawn {
  std::vector<uint8_t> labels;
  std::vector<double> signal;

  Drawn(int64_t rows, uint64_t key) {
    Normals normals(key);
    for (int64_t i = 0; i < rows; ++i) {
      signal.push_back(normals.Next());
      labels.push_back(signal.back() + 1.5 * normals.Next() > 1);
    }
  }
  ComparedModel Model(const std::string& name, double of_model, double of_run, int runs,
                      uint64_t key) const {
    ComparedModel model = {.name = name, .dense_parameters = 1, .runs = {}};
    Normals model_noise(key);
    std::vector<double> seen;
    for (const double each : signal) seen.push_back(each + of_model * model_noise.Next());
    for (int run = 1; run <= runs; ++run) {
      Normals noise(1000 * key + run);
      ComparedRun& compared = model.runs.emplace_back();
      compared.seed = run;
      for (const double each : seen) {
        const double logit = each + of_run * noise.Next() - 1;
        compared.probabilities.push_back(static_cast<float>(1 / (1 + std::exp(-logit))));
      }
    }
    return model;
  }
};

TEST(ComparisonTest, ABetterModelIsOrderedAndAnEqualOneIsNot) {
  const Drawn drawn(2000, /*key=*/1);
  const std::vector<ComparedModel> models = {
      drawn.Model("good", 0.1, 0.1, 4, 11), drawn.Model("bad", 1, 0.1, 4, 12),
      drawn.Model("also_good", 0.1, 0.1, 4, 13), drawn.Model("single", 1, 0.1, 1, 14)};
  const Comparison comparison = Compare(drawn.labels, models, {});
  ASSERT_EQ(comparison.pairs.size(), 6u);
  const PairFigures& good_bad = comparison.pairs[0];
  EXPECT_TRUE(good_bad.auc.differs_from_0());
  EXPECT_GT(good_bad.auc.value, 0);
  EXPECT_TRUE(good_bad.logloss.differs_from_0());
  EXPECT_LT(good_bad.logloss.value, 0);
  const PairFigures& equals = comparison.pairs[1];
  EXPECT_FALSE(equals.auc.differs_from_0());
  EXPECT_FALSE(equals.logloss.differs_from_0());
  // Of one run nobody knows what another seed gives.
  const PairFigures& unknown = comparison.pairs[2];
  EXPECT_FALSE(unknown.auc.seeds.has_value());
  EXPECT_FALSE(unknown.auc.differs_from_0());
  EXPECT_GT(unknown.auc.delong.low, 0);
  for (const PairFigures& pair : comparison.pairs) {
    for (const Uncertain* figures : {&pair.auc, &pair.logloss}) {
      EXPECT_NEAR(Width(*figures->rows) / Width(figures->delong), 1, 0.1);
      if (!figures->both) continue;
      EXPECT_GT(*figures->smallest, Width(*figures->both) / 2);
    }
  }
}

// Welch's interval, and that of the sum of both variances less what both have, by hand: the rows'
// variance of each run's distance from the mean of its model.
TEST(ComparisonTest, IntervalsOverSeedsAndOverBoth) {
  const Drawn drawn(300, /*key=*/2);
  const std::vector<ComparedModel> models = {drawn.Model("a", 0.5, 0.4, 3, 21),
                                             drawn.Model("b", 0.5, 0.8, 5, 22)};
  const Comparison comparison = Compare(drawn.labels, models, {.resamples = 0});
  double value = 0, variance = 0, share = 0, shared = 0;
  for (int i = 0; i < 2; ++i) {
    std::vector<double> aucs;
    for (const ComparedRun& run : models[i].runs) {
      aucs.push_back(AucOfPairs({drawn.labels, run.probabilities}));
    }
    double mean = 0, squares = 0;
    for (const double auc : aucs) mean += auc / aucs.size();
    for (const double auc : aucs) squares += (auc - mean) * (auc - mean);
    const double of_mean = squares / (aucs.size() - 1) / aucs.size();
    value += i == 0 ? mean : -mean;
    variance += of_mean;
    share += of_mean * of_mean / (aucs.size() - 1);
    std::vector<std::vector<double>> placements;
    for (const ComparedRun& run : models[i].runs) {
      placements.push_back(Placements(drawn.labels, run.probabilities));
    }
    for (const std::vector<double>& run : placements) {
      std::vector<double> distances = run;
      for (size_t row = 0; row < run.size(); ++row) {
        for (const std::vector<double>& each : placements) {
          distances[row] -= each[row] / placements.size();
        }
      }
      shared += DeLongVariance(drawn.labels, distances) / (aucs.size() - 1) / aucs.size();
    }
  }
  const double half = StudentQuantile(variance * variance / share) * std::sqrt(variance);
  const Uncertain& difference = comparison.pairs[0].auc;
  EXPECT_NEAR(difference.value, value, 1e-12);
  EXPECT_NEAR(difference.seeds->low, value - half, 1e-12);
  EXPECT_NEAR(difference.seeds->high, value + half, 1e-12);
  EXPECT_FALSE(difference.rows.has_value());

  const double row_error = Width(difference.delong) / 2 / StudentQuantile(INFINITY);
  const double both = row_error * row_error - shared + variance;
  const double half_of_both = StudentQuantile(both * both / share) * std::sqrt(both);
  EXPECT_GT(shared, 0.1 * row_error * row_error);
  EXPECT_NEAR(difference.both->low, value - half_of_both, 1e-12);
  EXPECT_NEAR(difference.both->high, value + half_of_both, 1e-12);
  EXPECT_NEAR(*difference.smallest, half_of_both + 0.8416212 * std::sqrt(both), 1e-8);
}

TEST(ComparisonTest, AModelsFiguresAreItsOwn) {
  const Drawn drawn(400, /*key=*/3);
  const ComparedModel a = drawn.Model("a", 0.5, 0.4, 3, 31), b = drawn.Model("b", 1, 0.4, 2, 32),
                      c = drawn.Model("c", 1, 0.4, 2, 33);
  const ComparisonOptions options = {.resamples = 100};
  const Comparison two = Compare(drawn.labels, {a, b}, options);
  const Comparison three = Compare(drawn.labels, {c, b, a}, {.resamples = 100, .against = "a"});
  ASSERT_EQ(three.pairs.size(), 2u);
  const PairFigures &pair = two.pairs[0], &same = three.pairs[1];
  EXPECT_EQ(same.first, 2u);
  EXPECT_EQ(same.second, 1u);
  EXPECT_EQ(pair.auc.value, same.auc.value);
  EXPECT_EQ(pair.auc.rows->low, same.auc.rows->low);
  EXPECT_EQ(pair.logloss.rows->high, same.logloss.rows->high);
  EXPECT_EQ(pair.auc.both->high, same.auc.both->high);
  EXPECT_EQ(two.models[0].auc.rows->low, three.models[2].auc.rows->low);
}

// Models of equal quality on other rows and seeds in every draw: few orders are claimed.
TEST(ComparisonTest, OrdersByChanceAreRare) {
  constexpr int kDraws = 300;
  int ordered = 0;
  for (int draw = 0; draw < kDraws; ++draw) {
    const Drawn drawn(250, 100 + draw);
    const std::vector<ComparedModel> models = {drawn.Model("a", 0.6, 0.6, 3, 5000 + 2 * draw),
                                               drawn.Model("b", 0.6, 0.6, 3, 5001 + 2 * draw)};
    ordered += Compare(drawn.labels, models, {.resamples = 0}).pairs[0].auc.differs_from_0();
  }
  EXPECT_LE(ordered, kDraws * 0.08);
}

// Runs of four points: a run's own place, of standard deviation 1, and a little noise along it.
std::vector<LossAndGapRun> NullRuns(int64_t runs, uint64_t draw, double shift = 0) {
  constexpr int64_t kPoints = 4;
  std::vector<double> normals(runs * (2 * kPoints + 2));
  FillNormal(/*key=*/3, draw, 1, static_cast<int64_t>(normals.size()), normals.data());
  std::vector<LossAndGapRun> result;
  for (const double* next = normals.data(); result.size() < static_cast<size_t>(runs);) {
    const double loss = *next++, gap = *next++ + shift;
    LossAndGapRun& run = result.emplace_back();
    for (int64_t i = 0; i < kPoints; ++i, next += 2) {
      run.push_back({loss + 0.2 * next[0], gap + 0.2 * next[1]});
    }
  }
  return result;
}

TEST(EnergyDistanceTest, KnownValues) {
  // In units of the deviation, 1/2, the arms are 2 apart; nothing is within them.
  const std::vector<LossAndGapRun> zero = {{{3, 0}}, {{3, 0}}}, one = {{{3, 1}}, {{3, 1}}};
  EXPECT_NEAR(EnergyDistance(zero, one), 4, 1e-12);
  EXPECT_NEAR(EnergyDistance(zero, zero), 0, 1e-12);
  const std::vector<LossAndGapRun> first = NullRuns(5, 1), second = NullRuns(4, 2);
  EXPECT_NEAR(EnergyDistance(first, second), EnergyDistance(second, first), 1e-12);
  // A run's weight does not grow with its points, nor does a unit matter.
  std::vector<LossAndGapRun> doubled = first, seconds = second;
  for (auto* arm : {&doubled, &seconds}) {
    for (LossAndGapRun& run : *arm) {
      run.insert(run.end(), run.begin(), run.end());
      for (LossAndGap& point : run) point.gap = 1000 * point.gap + 7;
    }
  }
  EXPECT_NEAR(EnergyDistance(doubled, seconds), EnergyDistance(first, second), 1e-9);
}

TEST(EnergyDistanceTest, ExactAndDrawnLabellingsAgree) {
  const std::vector<LossAndGapRun> first = NullRuns(6, 1), second = NullRuns(6, 2, 0.8);
  const EnergyTest exact = TestEnergyDistance(first, second);
  EXPECT_TRUE(exact.exact);
  EXPECT_EQ(exact.labellings, 924);
  EnergyTestOptions options;
  options.most_exact = 0;
  const EnergyTest drawn = TestEnergyDistance(first, second, options);
  EXPECT_FALSE(drawn.exact);
  EXPECT_EQ(drawn.labellings, 10'000);
  EXPECT_EQ(drawn.distance, exact.distance);
  EXPECT_NEAR(drawn.p, exact.p, 4 * std::sqrt(exact.p * (1 - exact.p) / 10'000));
  EXPECT_EQ(TestEnergyDistance(first, first).p, 1);
}

// Of 1,000 draws without a difference 5 % are rejected, up to three standard errors; of a shift of
// two deviations most are found (70 of 100), of three nearly all.
TEST(EnergyDistanceTest, SizeAndPower) {
  constexpr int64_t kRuns = 6;
  constexpr int kDraws = 1000, kShifted = 100;
  int rejected = 0, found = 0;
  for (uint64_t draw = 0; draw < kDraws; ++draw) {
    rejected += PermutationPValue(NullRuns(kRuns, 2 * draw), NullRuns(kRuns, 2 * draw + 1)) <= 0.05;
  }
  for (uint64_t draw = 0; draw < kShifted; ++draw) {
    found += PermutationPValue(NullRuns(kRuns, 2 * draw), NullRuns(kRuns, 2 * draw + 1, 3)) <= 0.05;
  }
  EXPECT_NEAR(rejected, 50, 3 * std::sqrt(kDraws * 0.05 * 0.95));
  EXPECT_GE(found, 90);
}

// Points of a run are alike: to permute them instead of runs takes that for a difference.
TEST(EnergyDistanceTest, CounterexamplePermutingPointsRejectsEqualArms) {
  constexpr int kDraws = 100;
  EnergyTestOptions options;
  options.draws = 199;
  const auto points = [](const std::vector<LossAndGapRun>& runs) {
    std::vector<LossAndGapRun> result;
    for (const LossAndGapRun& run : runs) {
      for (const LossAndGap& point : run) result.push_back({point});
    }
    return result;
  };
  int rejected = 0;
  for (uint64_t draw = 0; draw < kDraws; ++draw) {
    rejected += PermutationPValue(points(NullRuns(6, 2 * draw)), points(NullRuns(6, 2 * draw + 1)),
                                  options) <= 0.05;
  }
  EXPECT_GE(rejected, 40);
}

TEST(EnergyDistanceTest, EquivalenceBound) {
  constexpr int kDraws = 200;
  constexpr double kShift = 0.5;
  int covered = 0;
  for (uint64_t draw = 0; draw < kDraws; ++draw) {
    const EnergyTest test =
        TestEnergyDistance(NullRuns(6, 2 * draw), NullRuns(6, 2 * draw + 1, kShift));
    covered += test.mean.interval.low <= kShift && kShift <= test.mean.interval.high;
    EXPECT_LT(test.mean.interval.low, test.mean.value);
    EXPECT_GT(test.mean.interval.high, test.mean.value);
    EXPECT_LT(test.mean.equivalence_bound(), 4);
    EXPECT_GE(test.mean.equivalence_bound(), std::abs(test.mean.value));
  }
  EXPECT_NEAR(covered, 0.95 * kDraws, 3 * std::sqrt(kDraws * 0.05 * 0.95));
  // Three runs an arm have 20 labellings: no p is below 0.1, and nothing is shown.
  const EnergyTest few = TestEnergyDistance(NullRuns(3, 1), NullRuns(3, 2));
  EXPECT_GT(few.p, 0.05);
  EXPECT_TRUE(std::isinf(few.mean.equivalence_bound()));
}

// Gaps by numpy.interp: where each run's training loss fell to 0.25, which all of them reached.
TEST(EnergyDistanceTest, GapsAtTheEndAndAtEqualLoss) {
  const std::vector<LossAndGapRun> first = {{{0.5, 0.125}, {0.25, 0.25}},
                                            {{0.5, 0}, {0.375, 0.125}, {0.125, 0.375}}};
  const std::vector<LossAndGapRun> second = {{{1, 0.25}, {0.5, 0.5}, {0.125, 2}},
                                             {{0.75, 0.5}, {0.25, 0.5}, {0.375, 9}, {0.125, 1}}};
  const EnergyTest test = TestEnergyDistance(first, second);
  EXPECT_NEAR(test.mean.value, (2.75 / 3 + 11.0 / 4) / 2 - (0.375 / 2 + 0.5 / 3) / 2, 1e-12);
  EXPECT_NEAR(test.last.value, (2.0 + 1.0) / 2 - (0.25 + 0.375) / 2, 1e-12);
  ASSERT_TRUE(test.equal_loss);
  EXPECT_EQ(test.equal_loss->loss, 0.25);
  EXPECT_NEAR(test.equal_loss->gap.value, (1.5 + 0.5) / 2 - (0.25 + 0.25) / 2, 1e-12);
  // Four runs have six labellings: none shows a difference.
  EXPECT_TRUE(std::isinf(test.equal_loss->gap.equivalence_bound()));

  EXPECT_EQ(GapAtLoss(first[1], 0.1), std::nullopt);
  EXPECT_EQ(GapAtLoss(first[1], 0.6), std::nullopt);
  // A run that begins below what another one reached has no gap there.
  const std::vector<LossAndGapRun> low = {{{0.1, 1}}, {{0.05, 1}}};
  EXPECT_FALSE(TestEnergyDistance(first, low).equal_loss);
}

// Losses by the weights of the evaluation alone: those of the steps, 7, are of no concern.
TEST(LossAndGapTest, PointsOfARun) {
  const auto read = [](const std::string& metrics, int64_t from_step) {
    const std::string folder = testing::TempDir() + "/loss_and_gap";
    EXPECT_TRUE(MakeDirectory(folder).ok());
    EXPECT_TRUE(WriteFileAtomically(folder + "/metrics.jsonl", metrics).ok());
    return ReadLossAndGap(folder, from_step);
  };
  const auto eval = [](const std::string& split, int64_t step, const std::string& logloss) {
    return std::string(split == "train" ? R"({"event":"training_eval")" : R"({"event":"eval")") +
           R"(,"split":")" + split + R"(","scheduled":)" +
           (split == "validation" ? "true" : "false") + R"(,"step":)" + std::to_string(step) +
           R"(,"logloss":)" + logloss + "}\n";
  };
  const std::string step_loss = "{\"event\":\"train\",\"step\":2,\"loss\":7}\n";
  const std::string metrics = step_loss + eval("train", 2, "0.375") + eval("validation", 2, "0.5") +
                              step_loss + eval("train", 3, "0.125") +
                              eval("validation", 3, "0.25") + eval("test", 3, "9");
  const StatusOr<LossAndGapRun> run = read(metrics, /*from_step=*/0);
  ASSERT_TRUE(run.ok()) << run.status().message();
  ASSERT_EQ(run->size(), 2u);
  EXPECT_EQ((*run)[0].loss, 0.375);
  EXPECT_EQ((*run)[0].gap, 0.125);
  EXPECT_EQ((*run)[1].loss, 0.125);
  EXPECT_EQ((*run)[1].gap, 0.125);
  const StatusOr<LossAndGapRun> late = read(eval("validation", 1, "1") + metrics, /*from_step=*/3);
  ASSERT_TRUE(late.ok()) << late.status().message();
  ASSERT_EQ(late->size(), 1u);
  EXPECT_EQ((*late)[0].loss, 0.125);

  const auto error = [&](const std::string& text) { return read(text, 0).status().message(); };
  EXPECT_TRUE(error(step_loss).ends_with(
      "/metrics.jsonl: no scheduled evaluation of the validation split from step 0 on; expected "
      "one (training.eval_every_steps)"))
      << error(step_loss);
  for (const std::string& before : {std::string(), eval("train", 1, "1")}) {
    const std::string found = error(before + step_loss + eval("validation", 2, "0.5"));
    EXPECT_TRUE(found.ends_with(
        (before.empty() ? "/metrics.jsonl:2" : "/metrics.jsonl:3") +
        std::string(": no training rows were evaluated at step 2; expected a run with "
                    "evaluation.train_rows")))
        << found;
  }
  // Each is a number, their difference is none.
  const std::string infinite =
      error(eval("train", 2, "-1.7e308") + eval("validation", 2, "1.7e308"));
  EXPECT_NE(infinite.find(":2: gap of the loglosses: found none"), std::string::npos) << infinite;
}

}  // namespace
}  // namespace elastor
