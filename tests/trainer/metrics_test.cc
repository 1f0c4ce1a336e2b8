#include "trainer/metrics.h"

#include <cmath>
#include <limits>
#include <random>
#include <thread>
#include <vector>

#include "core/base/leaves.h"
#include "gtest/gtest.h"

namespace elastor {
namespace {

struct Predictions {
  std::vector<float> logits;
  std::vector<float> labels;

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

// Rows are spread as leaves are: rank r has part r. Expects the same result on every rank.
StatusOr<MetricValues> ReduceOver(int ranks, const Predictions& predictions) {
  const auto communicators = MakeThreadCommunicators(ranks, {});
  std::vector<StatusOr<MetricValues>> results(ranks, MetricValues());
  std::vector<std::thread> threads;
  for (int r = 0; r < ranks; ++r) {
    threads.emplace_back([&, r] {
      const Range rows = PartOf(r, ranks, static_cast<int64_t>(predictions.logits.size()));
      BinaryMetrics metrics;
      for (int64_t i = rows.begin; i < rows.end; ++i) {
        const float logit = predictions.logits[i];
        const float label = predictions.labels[i];
        const double loss = Loss(logit, label);
        metrics.Add({&logit, 1}, {&label, 1}, {&loss, 1});
      }
      results[r] = metrics.Reduce(*communicators[r]);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& result : results) {
    EXPECT_EQ(result.status().code(), results[0].status().code());
    if (!result.ok()) continue;
    EXPECT_EQ(result.value().auc, results[0].value().auc);
    EXPECT_EQ(result.value().logloss, results[0].value().logloss);
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
    EXPECT_EQ(values.value().logloss, one.value().logloss);
    EXPECT_EQ(values.value().normalized_entropy, one.value().normalized_entropy);
    EXPECT_EQ(values.value().calibration, one.value().calibration);
  }
}

TEST(MetricsTest, ExtremeScoresKeepTheirOrder) {
  Predictions predictions;
  const float huge = std::numeric_limits<float>::max();
  const float tiny = std::numeric_limits<float>::denorm_min();
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
