#ifndef ELASTOR_LAUNCHER_SCALING_LAW_ANALYSIS_H_
#define ELASTOR_LAUNCHER_SCALING_LAW_ANALYSIS_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "launcher/scaling_law/bootstrap.h"
#include "launcher/scaling_law/hold_out.h"
#include "launcher/scaling_law/identification.h"
#include "launcher/scaling_law/law_fit.h"
#include "launcher/scaling_law/noise.h"

namespace elastor {

struct AnalysisOptions {
  std::optional<double> delta;  // Huber's threshold; none: from the noise
  int replicates = 1000;        // number of replicates of each bootstrap
  uint64_t seed = 1;            // seed of the bootstraps' draws
  int comparisons = 1;          // whose intervals hold together in 95 % of the cases (Bonferroni)
};

struct LawPrediction {
  std::vector<double> sizes;
  std::optional<double> observed;  // mean of the configuration's values; none beyond the data
  double value = 0;
  Interval interval;  // 95 %, of the law's value
};

// Everything that is reported about one model. The same arguments give the same bits.
struct Analysis {
  std::string model;
  std::vector<std::string> size_names;
  std::vector<Configuration> configurations;
  std::optional<double> seed_spread;  // relative standard deviation of a run
  double delta = 0;
  LawFitter::Fit fit;
  LawNoise noise;
  Law tenth_of_delta, ten_times_delta;  // fitted with these instead
  LawBootstrap bootstrap;
  // Predictions at every configuration, then one and two steps beyond the largest sizes. A step is
  // the mean ratio of neighbouring sizes.
  std::vector<LawPrediction> predictions;
  Identification identification;
  std::optional<HoldOut> hold_out;
};

// REQUIRES: EnoughFor(configurations); options.delta, or a configuration with two seeds.
Analysis Analyse(const std::string& model, std::span<const std::string> size_names,
                 std::span<const Configuration> configurations, const AnalysisOptions& options);

// Two models' predictions at the same size, with the interval of their difference.
struct ComparedPrediction {
  double size = 0;
  double first = 0;
  double second = 0;
  Interval difference;  // of first - second

  bool told_apart() const { return difference.low > 0 || difference.high < 0; }
};

// Compares two models at the ends and the geometric middle of their common range of sizes, and one
// step of the first model beyond it. Empty when their ranges do not overlap. REQUIRES: laws of one
// size; as many replicates in both. Each interval leaves out a share of 5 % / `comparisons`.
std::vector<ComparedPrediction> Compare(const Analysis& first, const Analysis& second,
                                        int comparisons = 1);

}  // namespace elastor

#endif  // ELASTOR_LAUNCHER_SCALING_LAW_ANALYSIS_H_
