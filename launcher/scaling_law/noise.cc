#include "launcher/scaling_law/noise.h"

#include <algorithm>
#include <cmath>

#include "core/base/canonical_math.h"
#include "launcher/scaling_law/sizes.h"

namespace elastor {
namespace {

// Huber's threshold in standard deviations: 99 % efficient for normal noise. At 1.345, which is
// 95 % efficient, the sizes' means scatter about the fit by 10 % more than about that of least
// squares, and Student's intervals are too wide.
constexpr double kHuberDeviations = 2;
// As a threshold: least squares.
constexpr double kNoThreshold = 1e3;
// The spread that is assumed where seeds differ in nothing.
constexpr double kLeastSpread = 1e-9;
// Weights follow the noise and the noise the weights until none moves by more than this share.
constexpr double kSameWeight = 0.01;
constexpr int kMostPasses = 8;
constexpr int kHalvings = 60;

// The residuals of a group of configurations about a law.
struct Residuals {
  double runs = 0;
  double mean = 0;
};

// The root of sum n r^2 / (1 + n ratio) = target; 0 where even ratio 0 stays below it.
double RatioOf(std::span<const Residuals> groups, double target) {
  const auto above = [&](double ratio) {
    double sum = 0;
    for (const Residuals& group : groups) {
      sum += group.runs * group.mean * group.mean / (1 + group.runs * ratio);
    }
    return sum > target;
  };
  if (!above(0)) return 0;
  double low = 0, high = 1;
  while (above(high)) high *= 2;
  for (int halving = 0; halving < kHalvings; ++halving) {
    const double middle = 0.5 * (low + high);
    (above(middle) ? low : high) = middle;
  }
  return 0.5 * (low + high);
}

}  // namespace

double LawNoise::spread() const {
  return std::sqrt(size_spread * size_spread + seed_spread * seed_spread);
}

double LawNoise::drawn_spread() const {
  return std::sqrt(drawn_size_spread * drawn_size_spread + drawn_seed_spread * drawn_seed_spread);
}

LawNoise NoiseOf(std::span<const Configuration> configurations, const Law& law) {
  const std::vector<int> group_of = GroupsOf(configurations);
  std::vector<Residuals> groups(1 + std::ranges::max(group_of));
  double runs = 0, squares = 0;
  for (size_t c = 0; c < configurations.size(); ++c) {
    Residuals& group = groups[group_of[c]];
    const double log_law = CanonicalLog(law.At(configurations[c].sizes));
    for (const double value : configurations[c].values) {
      const double residual = CanonicalLog(value) - log_law;
      squares += residual * residual;
      group.mean += residual;
      ++group.runs;
      ++runs;
    }
  }
  double between = 0;
  for (Residuals& group : groups) {
    group.mean /= group.runs;
    between += group.runs * group.mean * group.mean;
  }
  const int count = static_cast<int>(groups.size());
  const int seed_freedom = static_cast<int>(runs) - count;
  LawNoise noise;
  noise.size_freedom = std::max(0, count - law.parameters());
  if (seed_freedom > 0) {
    noise.seed_spread =
        std::max(kLeastSpread, std::sqrt(std::max(0.0, squares - between) / seed_freedom));
  }
  if (noise.size_freedom == 0) {
    noise.freedom = seed_freedom;
    noise.drawn_seed_spread = noise.seed_spread;
    return noise;
  }
  noise.freedom = noise.size_freedom;
  if (seed_freedom == 0) {
    // With one run of every size, all noise is of sizes.
    noise.size_spread = noise.drawn_size_spread =
        std::max(kLeastSpread, std::sqrt(between / noise.size_freedom));
    return noise;
  }
  const double variance = noise.seed_spread * noise.seed_spread;
  noise.ratio = RatioOf(groups, noise.size_freedom * variance);
  noise.size_spread = noise.seed_spread * std::sqrt(noise.ratio);
  noise.drawn_seed_spread = noise.ratio > 0
                                ? noise.seed_spread
                                : std::max(kLeastSpread, std::sqrt(between / noise.size_freedom));
  noise.drawn_size_spread = noise.size_spread;
  return noise;
}

std::vector<double> WeightsOf(std::span<const Configuration> configurations, double ratio) {
  const std::vector<int> group_of = GroupsOf(configurations);
  std::vector<double> group_runs(1 + std::ranges::max(group_of));
  double runs = 0;
  for (size_t c = 0; c < configurations.size(); ++c) {
    const double count = static_cast<double>(configurations[c].values.size());
    group_runs[group_of[c]] += count;
    runs += count;
  }
  double sum = 0;
  for (const double count : group_runs) sum += count / (1 + count * ratio);
  std::vector<double> weights;
  for (const int group : group_of) {
    weights.push_back(runs / sum / (1 + group_runs[group] * ratio));
  }
  return weights;
}

FittedLaw FitLaw(std::span<const Configuration> configurations, std::optional<double> delta,
                 int nodes) {
  FittedLaw fitted;
  fitted.delta = delta.value_or(kNoThreshold);
  for (int pass = 0; pass < kMostPasses; ++pass) {
    if (pass > 0 && !delta) fitted.delta = kHuberDeviations * fitted.noise.spread();
    const double ratio = fitted.noise.ratio;
    const std::vector<double> weights = WeightsOf(configurations, ratio);
    fitted.fit = LawFitter(configurations, fitted.delta, weights).Minimise(nodes);
    fitted.noise = NoiseOf(configurations, fitted.fit.law);
    const bool same_weights =
        std::ranges::equal(weights, WeightsOf(configurations, fitted.noise.ratio),
                           [](double a, double b) { return std::abs(a - b) <= kSameWeight * b; });
    if (pass > 0 && same_weights) break;
  }
  if (fitted.noise.freedom == 0) {
    // Nothing but the threshold tells of the noise.
    fitted.noise.drawn_seed_spread = fitted.delta / kHuberDeviations;
  }
  return fitted;
}

}  // namespace elastor
