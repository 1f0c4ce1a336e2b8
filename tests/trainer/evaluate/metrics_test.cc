#include "trainer/evaluate/metrics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <span>
#include <thread>
#include <vector>

#include "core/base/leaves.h"
#include "gtest/gtest.h"
#include "trainer/data/dataset.h"

namespace elastor {
namespace {

struct Predictions {
  std::vector<float> logits;
  std::vector<float> labels;
  std::vector<float> weights = {};
  std::vector<uint64_t> groups = {};
  std::vector<RowSlice> slices = {};  // by row
  int64_t slice_count = 0;

  int64_t rows() const { return static_cast<int64_t>(labels.size()); }
  void Add(float logit, float label) {
    logits.push_back(logit);
    labels.push_back(label);
  }
};

double Loss(float logit, float label) {
  const double z = logit;
  return std::max(z, 0.0) - z * label + std::log1p(std::exp(-std::abs(z)));
}

// Scores on a grid of `step`, so that many are tied; a quarter of the labels is positive.
Predictions MakePredictions(int rows, double center, double spread, double step) {
  std::mt19937 random(rows);
  std::normal_distribution<double> noise;
  Predictions predictions;
  for (int i = 0; i < rows; ++i) {
    const float label = random() % 4 == 0;
    const double score = center + spread * (noise(random) + label);
    predictions.Add(static_cast<float>(std::round(score / step) * step), label);
  }
  return predictions;
}

// By definition: every pair of a positive and a negative.
double NaiveAuc(const Predictions& predictions) {
  int64_t won_halves = 0;
  int64_t pairs = 0;
  for (size_t i = 0; i < predictions.labels.size(); ++i) {
    for (size_t j = 0; j < predictions.labels.size(); ++j) {
      if (predictions.labels[i] != 1 || predictions.labels[j] != 0) continue;
      ++pairs;
      const float positive = predictions.logits[i];
      const float negative = predictions.logits[j];
      won_halves += positive > negative ? 2 : positive == negative;
    }
  }
  return static_cast<double>(won_halves) / static_cast<double>(2 * pairs);
}

void ExpectSame(const BinaryValues& a, const BinaryValues& b) {
  EXPECT_EQ(a.rows, b.rows);
  EXPECT_EQ(a.positives, b.positives);
  EXPECT_EQ(a.logloss, b.logloss);
  EXPECT_EQ(a.auc, b.auc);
  EXPECT_EQ(a.normalized_entropy, b.normalized_entropy);
  EXPECT_EQ(a.calibration, b.calibration);
}

void ExpectSame(const MetricValues& a, const MetricValues& b) {
  ExpectSame(static_cast<const BinaryValues&>(a), b);
  EXPECT_EQ(a.gauc, b.gauc);
  EXPECT_EQ(a.gauc_groups, b.gauc_groups);
  EXPECT_EQ(a.ungrouped_rows, b.ungrouped_rows);
  EXPECT_EQ(a.weighted_auc, b.weighted_auc);
  EXPECT_EQ(a.weighted_gauc, b.weighted_gauc);
  ASSERT_EQ(a.slices.size(), b.slices.size());
  for (size_t s = 0; s < a.slices.size(); ++s) ExpectSame(a.slices[s], b.slices[s]);
}

// One rank's rows, in two batches.
void AddRows(const Predictions& predictions, const Range& rows, BinaryMetrics* metrics) {
  const int64_t middle = (rows.begin + rows.end) / 2;
  for (const Range& batch : {Range{rows.begin, middle}, Range{middle, rows.end}}) {
    const auto part = [&](const auto& values) {
      return std::span(values).subspan(values.empty() ? 0 : batch.begin,
                                       values.empty() ? 0 : batch.size());
    };
    std::vector<double> losses;
    std::vector<RowSlice> slices;
    for (int64_t i = batch.begin; i < batch.end; ++i) {
      losses.push_back(Loss(predictions.logits[i], predictions.labels[i]));
    }
    for (const RowSlice& slice : predictions.slices) {
      if (slice.row < batch.begin || slice.row >= batch.end) continue;
      slices.push_back({slice.row - batch.begin, slice.slice});
    }
    metrics->Add({.logits = part(predictions.logits),
                  .labels = part(predictions.labels),
                  .losses = losses,
                  .weights = part(predictions.weights),
                  .groups = part(predictions.groups),
                  .slices = slices});
  }
}

// Rows are spread as leaves are: rank r has part r. Expects the same result on every rank.
StatusOr<MetricValues> ReduceOver(int ranks, const Predictions& predictions) {
  const auto communicators = MakeThreadCommunicators(ranks, {});
  std::vector<StatusOr<MetricValues>> results(ranks, MetricValues());
  std::vector<std::thread> threads;
  for (int r = 0; r < ranks; ++r) {
    threads.emplace_back([&, r] {
      BinaryMetrics metrics({}, 0,
                            {.slices = predictions.slice_count,
                             .grouped = !predictions.groups.empty(),
                             .weighted = !predictions.weights.empty()});
      AddRows(predictions, PartOf(r, ranks, predictions.rows()), &metrics);
      results[r] = metrics.Reduce(*communicators[r]);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& result : results) {
    EXPECT_EQ(result.status().code(), results[0].status().code());
    if (result.ok()) ExpectSame(result.value(), results[0].value());
  }
  return results[0];
}

constexpr int kRankCounts[] = {1, 2, 3, 4, 7, 8};

TEST(MetricsTest, AucIsThatOfAllPairs) {
  const Predictions cases[] = {
      MakePredictions(1500, -1, 1, 0.25),   // many ties, both signs, zero among the scores
      MakePredictions(1500, -1, 1, 1e-6),   // nearly no ties
      MakePredictions(700, 3, 1e-4, 1e-7),  // all scores close together
      MakePredictions(5, 0, 1, 1),          // fewer rows than ranks
  };
  for (const Predictions& predictions : cases) {
    const double expected = NaiveAuc(predictions);
    for (const int ranks : kRankCounts) {
      const auto values = ReduceOver(ranks, predictions);
      ASSERT_TRUE(values.ok()) << values.status().message();
      EXPECT_EQ(values.value().auc, expected) << ranks << " ranks";
    }
  }
}

// Three rows with two labels; the first is learned by the second output. The second label is there
// where the first is 1, and nowhere on the last rank.
TEST(MetricsTest, SeveralLabelsByHand) {
  const Task task = {.row_labels = 2, .learned = {{"conversion", 1}, {"click", 0}}};
  const float none = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> labels = {1, 0, 0, none, 1, 1, 0, none};
  const float up = std::log(3.0f);
  const std::vector<float> logits = {up, 0, 9, -up, up, up, -9, up};
  std::vector<double> losses;
  for (size_t i = 0; i < 4; ++i) {
    const float conversion = labels[2 * i + 1];
    losses.push_back(std::isnan(conversion) ? 0 : Loss(logits[2 * i], conversion));
    losses.push_back(Loss(logits[2 * i + 1], labels[2 * i]));
  }
  const auto communicators = MakeThreadCommunicators(2, {});
  std::vector<StatusOr<std::vector<MetricValues>>> results(2, std::vector<MetricValues>());
  std::vector<std::thread> threads;
  for (int r = 0; r < 2; ++r) {
    threads.emplace_back([&, r] {
      const auto metrics = MakeMetrics(task, {.slices = 1});
      const size_t first = r == 0 ? 0 : 6, count = r == 0 ? 6 : 2;
      const std::vector<RowSlice> slices = {{0, 0}};
      metrics->Add({.logits = std::span(logits).subspan(first, count),
                    .labels = std::span(labels).subspan(first, count),
                    .losses = std::span(losses).subspan(first, count),
                    .slices = slices});
      results[r] = metrics->Reduce(*communicators[r]);
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_TRUE(results[0].ok());
  const MetricValues& conversion = results[0].value()[0];
  EXPECT_EQ(conversion.label, "conversion");
  EXPECT_EQ(conversion.rows, 2);
  EXPECT_EQ(conversion.positives, 1);
  EXPECT_EQ(conversion.auc, 0.5);  // equal logits
  // -log(1/4) and -log(3/4); probabilities of 3/4 twice for one positive.
  EXPECT_NEAR(conversion.logloss, (std::log(4.0) + std::log(4.0 / 3)) / 2, 1e-6);
  EXPECT_NEAR(*conversion.calibration, 1.5, 1e-6);
  EXPECT_EQ(conversion.slices[0].rows, 1);
  const MetricValues& click = results[0].value()[1];
  EXPECT_EQ(click.rows, 4);
  EXPECT_EQ(click.positives, 2);
  // Of four pairs: 0 beats -up, loses to up; up beats -up, ties with up.
  EXPECT_EQ(click.auc, 2.5 / 4);
  EXPECT_EQ(click.slices[0].rows, 2);
  ExpectSame(results[1].value()[0], conversion);
  ExpectSame(results[1].value()[1], click);
}

// A label that no row of the split has is no reason to end a run.
TEST(MetricsTest, ALabelWithoutRows) {
  const Task task = {.row_labels = 2, .learned = {{"a", 0}, {"b", 1}}};
  const auto metrics = MakeMetrics(task, {});
  const std::vector<float> labels = {1, std::numeric_limits<float>::quiet_NaN()}, logits = {2, 3};
  const std::vector<double> losses = {Loss(2, 1), 0};
  metrics->Add({.logits = logits, .labels = labels, .losses = losses});
  const auto values = metrics->Reduce(*MakeSelfCommunicator());
  ASSERT_TRUE(values.ok()) << values.status().message();
  EXPECT_EQ((*values)[1].rows, 0);
  EXPECT_TRUE(std::isnan((*values)[1].logloss));
  EXPECT_FALSE((*values)[1].auc.has_value());
  EXPECT_EQ((*values)[0].rows, 1);
}

// Two labels of three classes on two ranks; the second row lacks its last.
TEST(MetricsTest, Classes) {
  const Task task = {
      .kind = Task::Kind::kClasses, .classes = 3, .row_labels = 2, .learned = {{"a", 0}, {"b", 1}}};
  constexpr float kNone = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> labels = {0, 2, 1, kNone};
  const std::vector<float> logits = {5, 1, 1, 0, 3, 2, 1, 1, 0, 9, 9, 9};
  const std::vector<double> losses = {0.25, 1.5, 0.75, 0};
  const std::vector<float> weights = {3, 1};
  const auto communicators = MakeThreadCommunicators(2, {.deadline_seconds = 600});
  std::vector<StatusOr<std::vector<MetricValues>>> results(2, UserError("none"));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      const auto metrics = MakeMetrics(task, {});
      metrics->Add({.logits = std::span(logits).subspan(rank * 6, 6),
                    .labels = std::span(labels).subspan(rank * 2, 2),
                    .losses = std::span(losses).subspan(rank * 2, 2),
                    .weights = std::span(weights).subspan(rank, 1)});
      results[rank] = metrics->Reduce(*communicators[rank]);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& result : results) {
    ASSERT_TRUE(result.ok()) << result.status().message();
    const MetricValues& values = (*result)[0];
    EXPECT_EQ(values.rows, 3);
    EXPECT_DOUBLE_EQ(values.logloss, (3 * 0.25 + 3 * 1.5 + 0.75) / 7);
    // Of the third label the classes 0 and 1 have the largest logit: 0 is taken.
    EXPECT_DOUBLE_EQ(*values.accuracy, 3.0 / 7);
    EXPECT_DOUBLE_EQ(*values.bits_per_label, values.logloss / std::log(2.0));
    EXPECT_FALSE(values.auc.has_value());
  }
}

TEST(MetricsTest, HandComputed) {
  Predictions predictions;
  predictions.Add(0.0f, 0);
  predictions.Add(-0.0f, 1);  // ties with 0
  predictions.Add(std::log(3.0f), 1);
  predictions.Add(std::log(3.0f), 0);
  const auto values = ReduceOver(2, predictions);
  ASSERT_TRUE(values.ok());
  // Pairs won: 1/2, 0 (first positive); 1, 1/2 (second).
  EXPECT_EQ(values.value().auc, 0.5);
  EXPECT_EQ(values.value().rows, 4);
  EXPECT_EQ(values.value().positives, 2);
  const double logloss = (2 * std::log(2.0) + std::log(4.0 / 3) + std::log(4.0)) / 4;
  // The logits are rounded to float.
  constexpr double kFloatInput = 1e-7;
  EXPECT_NEAR(values.value().logloss, logloss, kFloatInput);
  EXPECT_NEAR(*values.value().normalized_entropy, logloss / std::log(2.0), kFloatInput);
  EXPECT_NEAR(*values.value().calibration, (0.5 + 0.5 + 0.75 + 0.75) / 2, kFloatInput);
}

TEST(MetricsTest, SameBitsOnAnyNumberOfRanks) {
  const Predictions predictions = MakePredictions(1000, -1, 2, 1e-6);
  const auto one = ReduceOver(1, predictions);
  ASSERT_TRUE(one.ok());
  for (const int ranks : kRankCounts) {
    const auto values = ReduceOver(ranks, predictions);
    ASSERT_TRUE(values.ok());
    ExpectSame(values.value(), one.value());
  }
}

TEST(MetricsTest, WeightsCountAsRepeatedRows) {
  Predictions weighted = MakePredictions(400, -1, 1, 0.01);
  Predictions repeated;
  for (int64_t i = 0; i < weighted.rows(); ++i) {
    const int times = static_cast<int>(i % 4);
    weighted.weights.push_back(static_cast<float>(times));
    for (int t = 0; t < times; ++t) repeated.Add(weighted.logits[i], weighted.labels[i]);
  }
  const auto expected = ReduceOver(1, repeated);
  const auto one = ReduceOver(1, weighted);
  ASSERT_TRUE(expected.ok() && one.ok());
  constexpr double kRounding = 1e-13;
  EXPECT_NEAR(one.value().logloss, expected.value().logloss, kRounding);
  EXPECT_NEAR(*one.value().normalized_entropy, *expected.value().normalized_entropy, kRounding);
  EXPECT_NEAR(*one.value().calibration, *expected.value().calibration, kRounding);
  // AUC counts rows, unless it is asked for by weight.
  EXPECT_EQ(*one.value().auc, NaiveAuc(weighted));
  EXPECT_NEAR(*one.value().weighted_auc, NaiveAuc(repeated), kRounding);
  EXPECT_FALSE(expected.value().weighted_auc.has_value());
  EXPECT_EQ(one.value().rows, 400);
  for (const int ranks : kRankCounts) ExpectSame(ReduceOver(ranks, weighted).value(), one.value());
}

// The right values are scikit-learn 1.9's: roc_auc_score(y, z, sample_weight=w), of all rows and of
// every group; gAUC is their mean by rows, or by the sums of weights.
TEST(MetricsTest, WeightedAucAndGauc) {
  Predictions predictions;
  predictions.logits = {0.5f, -1, 0.5f, 2, -1, 0.25f, 2, -3, 0.25f, 1, -0.5f, 0.5f};
  predictions.labels = {1, 0, 0, 1, 1, 0, 0, 0, 1, 1, 0, 1};
  predictions.weights = {0.5f, 2, 1.25f, 0.75f, 3, 0, 0.125f, 4, 1.5f, 0.25f, 10, 2.5f};
  predictions.groups = {1, 1, 1, 2, 2, 2, 2, kNoGroup, kNoGroup, 3, 3, 3};
  for (const float scale : {1.0f, 0x1p-90f, 0x1p60f}) {
    Predictions scaled = predictions;
    for (float& weight : scaled.weights) weight *= scale;
    for (const int ranks : kRankCounts) {
      const auto values = ReduceOver(ranks, scaled);
      ASSERT_TRUE(values.ok()) << values.status().message();
      EXPECT_DOUBLE_EQ(*values->auc, 0.6805555555555555) << ranks;
      EXPECT_DOUBLE_EQ(*values->weighted_auc, 0.718895471857808) << ranks;
      EXPECT_DOUBLE_EQ(*values->gauc, 0.675) << ranks;
      EXPECT_DOUBLE_EQ(*values->weighted_gauc, 0.793440302029259) << ranks;
      EXPECT_EQ(values->gauc_groups, 3) << ranks;
      EXPECT_EQ(values->ungrouped_rows, 2) << ranks;
    }
  }
}

// Many rows, tied and not, on any number of ranks. The sums are checked against all pairs.
TEST(MetricsTest, WeightedAucIsThatOfAllPairs) {
  for (const double step : {0.25, 1e-6}) {
    Predictions predictions = MakePredictions(700, -1, 1, step);
    std::mt19937 random(5);
    for (int64_t i = 0; i < predictions.rows(); ++i) {
      const float weight = static_cast<float>(random()) * 0x1p-20f;
      predictions.weights.push_back(random() % 5 == 0 ? 0 : weight * weight);
      predictions.groups.push_back(random() % 40);
    }
    double won = 0, pairs = 0;
    for (int64_t i = 0; i < predictions.rows(); ++i) {
      for (int64_t j = 0; j < predictions.rows(); ++j) {
        if (predictions.labels[i] != 1 || predictions.labels[j] != 0) continue;
        const double weight = double{predictions.weights[i]} * predictions.weights[j];
        const float positive = predictions.logits[i], negative = predictions.logits[j];
        pairs += weight;
        won += weight * (positive > negative ? 1 : positive == negative ? 0.5 : 0);
      }
    }
    constexpr double kRounding = 1e-11;  // of the sums here
    const auto one = ReduceOver(1, predictions);
    ASSERT_TRUE(one.ok());
    EXPECT_NEAR(*one->weighted_auc, won / pairs, kRounding);
    EXPECT_NE(*one->weighted_gauc, *one->gauc);
    for (const int ranks : kRankCounts) {
      ExpectSame(ReduceOver(ranks, predictions).value(), one.value());
    }
  }
}

TEST(MetricsTest, AClassWithoutWeightHasNoWeightedAuc) {
  Predictions predictions = MakePredictions(40, 0, 1, 0.1);
  for (const float label : predictions.labels) predictions.weights.push_back(1 - label);
  predictions.groups.assign(40, 9);
  const auto values = ReduceOver(3, predictions);
  ASSERT_TRUE(values.ok());
  EXPECT_TRUE(values->auc.has_value());
  EXPECT_TRUE(values->gauc.has_value());
  EXPECT_FALSE(values->weighted_auc.has_value());
  EXPECT_FALSE(values->weighted_gauc.has_value());
}

TEST(MetricsTest, WeightsThatSumToZero) {
  Predictions predictions = MakePredictions(8, 0, 1, 0.1);
  predictions.weights.assign(8, 0.0f);
  EXPECT_EQ(ReduceOver(2, predictions).status().code(), StatusCode::kUser);
}

// Rows of a subset, by their places.
Predictions Subset(const Predictions& predictions, const std::vector<int64_t>& rows) {
  Predictions subset;
  for (const int64_t i : rows) {
    subset.Add(predictions.logits[i], predictions.labels[i]);
    if (!predictions.weights.empty()) subset.weights.push_back(predictions.weights[i]);
  }
  return subset;
}

bool OneClass(const Predictions& predictions) {
  const auto positives = std::count(predictions.labels.begin(), predictions.labels.end(), 1.0f);
  return positives == 0 || positives == predictions.rows();
}

TEST(MetricsTest, GroupsAreScatteredOverRanks) {
  for (const double step : {0.5, 1e-6}) {  // many ties and nearly none
    Predictions predictions = MakePredictions(900, -1, 1, step);
    std::mt19937_64 random(3);
    std::vector<uint64_t> names(70);
    for (uint64_t& name : names) name = random();
    names[0] = 0;
    names[1] = std::numeric_limits<uint64_t>::max();
    for (int64_t i = 0; i < predictions.rows(); ++i) {
      // Few groups have many rows, many have one or two.
      const uint64_t draw = random() % names.size();
      predictions.groups.push_back(names[draw * draw / names.size()]);
    }
    double sum = 0;
    int64_t impressions = 0, groups = 0, skipped = 0;
    for (const uint64_t name : names) {
      std::vector<int64_t> rows;
      for (int64_t i = 0; i < predictions.rows(); ++i) {
        if (predictions.groups[i] == name) rows.push_back(i);
      }
      const Predictions group = Subset(predictions, rows);
      if (OneClass(group)) {
        ++skipped;
        continue;
      }
      ++groups;
      impressions += group.rows();
      sum += static_cast<double>(group.rows()) * NaiveAuc(group);
    }
    ASSERT_GT(groups, 10);
    ASSERT_GT(skipped, 0);
    const auto one = ReduceOver(1, predictions);
    ASSERT_TRUE(one.ok());
    constexpr double kRounding = 1e-12;
    EXPECT_NEAR(*one.value().gauc, sum / static_cast<double>(impressions), kRounding);
    EXPECT_EQ(one.value().gauc_groups, groups);
    for (const int ranks : kRankCounts) {
      ExpectSame(ReduceOver(ranks, predictions).value(), one.value());
    }
  }
}

TEST(MetricsTest, OneGroupHasTheAucOfAllRows) {
  Predictions predictions = MakePredictions(300, 0, 1, 0.1);
  predictions.groups.assign(300, 77);
  const auto values = ReduceOver(3, predictions);
  EXPECT_DOUBLE_EQ(*values.value().gauc, *values.value().auc);
  EXPECT_EQ(values.value().gauc_groups, 1);
}

TEST(MetricsTest, GroupsOfOneClassHaveNoGauc) {
  Predictions predictions;
  for (int i = 0; i < 6; ++i) {
    predictions.Add(0.1f * static_cast<float>(i), static_cast<float>(i % 2));
    predictions.groups.push_back(i % 2);
  }
  const auto values = ReduceOver(2, predictions);
  EXPECT_FALSE(values.value().gauc.has_value());
  EXPECT_EQ(values.value().gauc_groups, 0);
  EXPECT_TRUE(values.value().auc.has_value());
}

TEST(MetricsTest, SlicesAreTheMetricsOfTheirRows) {
  Predictions predictions = MakePredictions(600, -1, 1, 0.05);
  std::mt19937 random(9);
  // Slices overlap; the last two have one class and one row.
  predictions.slice_count = 6;
  std::vector<std::vector<int64_t>> rows_of(predictions.slice_count);
  const auto put = [&](int64_t row, int64_t slice) {
    predictions.slices.push_back({row, slice});
    rows_of[slice].push_back(row);
  };
  for (int64_t i = 0; i < predictions.rows(); ++i) {
    predictions.weights.push_back(0.25f * static_cast<float>(1 + random() % 7));
    if (random() % 3 > 0) put(i, static_cast<int64_t>(random() % 2));
    if (random() % 3 > 0) put(i, 2 + static_cast<int64_t>(random() % 2));
    if (predictions.labels[i] == 1) put(i, 4);
    if (i == 300) put(i, 5);
  }
  const auto one = ReduceOver(1, predictions);
  ASSERT_TRUE(one.ok());
  ASSERT_EQ(static_cast<int64_t>(one.value().slices.size()), predictions.slice_count);
  for (int64_t s = 0; s < predictions.slice_count; ++s) {
    const Predictions rows = Subset(predictions, rows_of[s]);
    ExpectSame(one.value().slices[s], ReduceOver(1, rows).value());
    if (!OneClass(rows)) {
      EXPECT_EQ(*one.value().slices[s].auc, NaiveAuc(rows));
    }
  }
  EXPECT_FALSE(one.value().slices[4].auc.has_value());
  EXPECT_FALSE(one.value().slices[4].normalized_entropy.has_value());
  // All rows are as without slices.
  Predictions plain = predictions;
  plain.slices.clear();
  plain.slice_count = 0;
  ExpectSame(static_cast<const BinaryValues&>(one.value()), ReduceOver(2, plain).value());
  for (const int ranks : kRankCounts) {
    ExpectSame(ReduceOver(ranks, predictions).value(), one.value());
  }
}

TEST(MetricsTest, ExtremeScoresKeepTheirOrder) {
  Predictions predictions;
  const float huge = std::numeric_limits<float>::max();
  const float tiny = std::numeric_limits<float>::min();
  const float ascending[] = {-huge, -1.0f, -tiny, 0.0f, tiny, 1.0f, huge};
  for (size_t i = 0; i < std::size(ascending); ++i) predictions.Add(ascending[i], i >= 3);
  for (const int ranks : kRankCounts) EXPECT_EQ(ReduceOver(ranks, predictions).value().auc, 1.0);
}

TEST(MetricsTest, OneClassHasNoAuc) {
  for (const float label : {0.0f, 1.0f}) {
    Predictions predictions;
    for (int i = 0; i < 5; ++i) predictions.Add(0.1f * i, label);
    const auto values = ReduceOver(3, predictions);
    ASSERT_TRUE(values.ok());
    EXPECT_FALSE(values.value().auc.has_value());
    EXPECT_FALSE(values.value().normalized_entropy.has_value());
    EXPECT_EQ(values.value().calibration.has_value(), label == 1);
    EXPECT_GT(values.value().logloss, 0);
  }
}

TEST(MetricsTest, NothingIsNoResult) {
  EXPECT_EQ(ReduceOver(2, {}).status().code(), StatusCode::kUser);
}

TEST(MetricsTest, NotANumberIsDivergedOnEveryRank) {
  Predictions predictions = MakePredictions(20, 0, 1, 0.1);
  predictions.logits[17] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(ReduceOver(4, predictions).status().code(), StatusCode::kDiverged);
  predictions.logits[17] = std::numeric_limits<float>::infinity();
  predictions.labels[17] = 0;  // its loss is infinite
  EXPECT_EQ(ReduceOver(4, predictions).status().code(), StatusCode::kDiverged);
}

}  // namespace
}  // namespace elastor
