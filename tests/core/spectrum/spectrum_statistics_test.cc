#include "core/spectrum/spectrum_statistics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "core/base/random.h"

namespace elastor {
namespace {

constexpr int64_t kTokens = 4;
constexpr int64_t kWidth = 6;
constexpr int64_t kRows = 56;

struct Matrices {
  Matrices() : memory(PanelElements(kRows, kTokens * kWidth)) {
    FillNormal(5, 0, 1, static_cast<int64_t>(memory.size()), memory.data());
  }
  Panels<const float> x() const {
    return {memory.data(), kRows, kTokens * kWidth, PanelStride(kTokens * kWidth)};
  }
  std::vector<float> memory;
};

// Statistics of every step-th row from `first`.
SpectrumStatistics StatisticsOf(const Matrices& matrices, int64_t first, int64_t step) {
  Spectrum spectrum(kTokens, kWidth);
  SpectrumStatistics statistics(kTokens);
  for (int64_t row = first; row < kRows; row += step) {
    spectrum.Measure<float>(matrices.x(), row / Spectrum::kRows * Spectrum::kRows);
    statistics.Add(spectrum, row % Spectrum::kRows);
  }
  return statistics;
}

std::vector<int64_t> WordsOf(const SpectrumStatistics& statistics) {
  std::vector<int64_t> words;
  statistics.AppendWords(&words);
  return words;
}

TEST(SpectrumStatisticsTest, MeanDeviationHistogramAndProfile) {
  const Matrices matrices;
  const SpectrumStatistics statistics = StatisticsOf(matrices, 0, 1);
  ASSERT_EQ(statistics.rows(), kRows);
  std::vector<double> ranks;
  std::vector<double> profile(kTokens, 0);
  Spectrum spectrum(kTokens, kWidth);
  for (int64_t row = 0; row < kRows; ++row) {
    spectrum.Measure<float>(matrices.x(), row / Spectrum::kRows * Spectrum::kRows);
    const int64_t place = row % Spectrum::kRows;
    ranks.push_back(spectrum.rank(place).entropy);
    for (int64_t n = 0; n < kTokens; ++n) {
      profile[n] += spectrum.singular_value(n, place) / spectrum.singular_value(0, place) / kRows;
    }
  }
  const double mean = std::accumulate(ranks.begin(), ranks.end(), 0.0) / kRows;
  double squares = 0;
  std::vector<int64_t> histogram(SpectrumStatistics::kBins, 0);
  for (const double rank : ranks) {
    squares += (rank - mean) * (rank - mean);
    ++histogram[static_cast<size_t>(rank / kTokens * SpectrumStatistics::kBins)];
  }
  constexpr double kRounding = 1e-12;
  const auto found = statistics.entropy();
  EXPECT_NEAR(found.rank.mean, mean, kRounding);
  EXPECT_NEAR(found.rank.stddev, std::sqrt(squares / (kRows - 1)), kRounding);
  EXPECT_TRUE(std::equal(histogram.begin(), histogram.end(), found.histogram.begin()));
  const auto stable = statistics.stable();
  EXPECT_EQ(std::accumulate(stable.histogram.begin(), stable.histogram.end(), int64_t{0}), kRows);
  EXPECT_LT(stable.rank.mean,
            found.rank.mean);  // of one row's ranks the entropy's is the larger one
  for (int64_t n = 0; n < kTokens; ++n) EXPECT_NEAR(statistics.profile()[n], profile[n], kRounding);
  EXPECT_EQ(statistics.profile()[0], 1);
}

TEST(SpectrumStatisticsTest, DoesNotDependOnTheSpread) {
  const Matrices matrices;
  const std::vector<int64_t> expected = WordsOf(StatisticsOf(matrices, 0, 1));
  for (const int64_t parts : {2, 3, 7}) {
    SpectrumStatistics merged(kTokens);
    std::vector<int64_t> words(merged.word_count(), 0);
    for (int64_t part = 0; part < parts; ++part) {
      const SpectrumStatistics own = StatisticsOf(matrices, part, parts);
      merged.Merge(own);
      const std::vector<int64_t> added = WordsOf(own);
      for (size_t i = 0; i < words.size(); ++i) words[i] += added[i];
    }
    EXPECT_EQ(WordsOf(merged), expected) << parts;
    SpectrumStatistics summed(kTokens);
    summed.SetWords(words);
    EXPECT_EQ(WordsOf(summed), expected) << parts;
  }
}

TEST(SpectrumStatisticsTest, ChangesRowByRow) {
  const Matrices matrices;
  Spectrum spectrum(kTokens, kWidth);
  spectrum.Measure<float>(matrices.x(), 0);
  SpectrumStatistics statistics(kTokens);
  for (int64_t i = 0; i < 4; ++i) {
    EffectiveRank before = spectrum.rank(i);
    // Changes of the stable rank: -1, 0, 1, 2; of the entropy rank: 0.5 each.
    before.stable -= static_cast<double>(i - 1);
    before.entropy -= 0.5;
    statistics.Add(spectrum, i, &before);
  }
  constexpr double kRounding = 1e-12;
  const auto stable = statistics.stable();
  EXPECT_NEAR(stable.change.mean, 0.5, kRounding);
  EXPECT_NEAR(stable.change.stddev, std::sqrt(5.0 / 3), kRounding);
  EXPECT_EQ(stable.rising, 2);
  EXPECT_EQ(stable.falling, 1);
  const auto entropy = statistics.entropy();
  EXPECT_NEAR(entropy.change.mean, 0.5, kRounding);
  EXPECT_NEAR(entropy.change.stddev, 0, 1e-7);
  EXPECT_EQ(entropy.rising, 4);
  EXPECT_EQ(entropy.falling, 0);
}

TEST(SpectrumStatisticsTest, Quantiles) {
  const std::vector<int64_t> histogram = {0, 2, 0, 6};  // of [0, 8]: two in [2, 4), six in [6, 8]
  EXPECT_DOUBLE_EQ(HistogramQuantile(histogram, 8, 0), 2);
  EXPECT_DOUBLE_EQ(HistogramQuantile(histogram, 8, 0.125), 3);
  EXPECT_DOUBLE_EQ(HistogramQuantile(histogram, 8, 0.25), 4);
  EXPECT_DOUBLE_EQ(HistogramQuantile(histogram, 8, 0.625), 7);
  EXPECT_DOUBLE_EQ(HistogramQuantile(histogram, 8, 1), 8);
  EXPECT_TRUE(std::isnan(HistogramQuantile(std::vector<int64_t>{0, 0}, 8, 0.5)));
}

TEST(SpectrumStatisticsTest, EdgesOfTheHistogram) {
  // Identity: both ranks 4, in the last bin; zero: both 0, in the first.
  Matrices matrices;
  std::fill(matrices.memory.begin(), matrices.memory.end(), 0.0f);
  for (int64_t t = 0; t < kTokens; ++t) matrices.memory[(t * kWidth + t) * kPanelRows] = 1;
  Spectrum spectrum(kTokens, kWidth);
  spectrum.Measure<float>(matrices.x(), 0);
  SpectrumStatistics statistics(kTokens);
  statistics.Add(spectrum, 0);
  EXPECT_EQ(statistics.stable().rank.stddev, 0);
  statistics.Add(spectrum, 1);
  for (const auto& found : {statistics.stable(), statistics.entropy()}) {
    EXPECT_EQ(found.histogram.front(), 1);
    EXPECT_EQ(found.histogram.back(), 1);
    EXPECT_DOUBLE_EQ(found.rank.mean, 2);
  }
  for (const double mean : statistics.profile()) EXPECT_DOUBLE_EQ(mean, 0.5);
}

TEST(SpectrumStatisticsTest, NotANumberSpoilsMeansButNotCounts) {
  Matrices matrices;
  matrices.memory[0] = std::nanf("");
  Spectrum spectrum(kTokens, kWidth);
  spectrum.Measure<float>(matrices.x(), 0);
  SpectrumStatistics statistics(kTokens);
  for (int64_t i = 0; i < Spectrum::kRows; ++i) statistics.Add(spectrum, i);
  const auto found = statistics.entropy();
  EXPECT_TRUE(std::isnan(found.rank.mean));
  EXPECT_EQ(std::accumulate(found.histogram.begin(), found.histogram.end(), int64_t{0}),
            Spectrum::kRows - 1);
}

}  // namespace
}  // namespace elastor
