#include "launcher/scaling_law/bootstrap.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/canonical_math.h"
#include "core/base/random.h"
#include "launcher/scaling_law/sizes.h"

namespace elastor {
namespace {

// Nodes a size of the grid in a replicate, whose optimum lies near that of the data.
constexpr int kReplicateNodes[] = {12, 6, 4};
// Largest standard deviation of a replicate's logarithms. Few degrees of freedom give some scales
// beyond all bounds, and their values must be doubles.
constexpr double kMostSpread = 30;
// Philox's counter: a replicate's draws for its configurations' runs, and for new runs.
constexpr uint32_t kOfRuns = 0, kOfNewRuns = 1;

// Standard normal numbers, one after the other.
class Draws {
 public:
  Draws(uint64_t key, uint32_t replicate, uint32_t purpose)
      : key_(key), replicate_(replicate), purpose_(purpose) {}

  double Normal() {
    if (next_ % 4 == 0) {
      const PhiloxBlock block = Philox(key_, {next_ / 4, replicate_, purpose_, 0});
      const NormalPair first = NormalFromBits(block[0], block[1]);
      const NormalPair second = NormalFromBits(block[2], block[3]);
      normals_ = {first.first, first.second, second.first, second.second};
    }
    return normals_[next_++ % 4];
  }

 private:
  const uint64_t key_;
  const uint32_t replicate_;
  const uint32_t purpose_;
  uint32_t next_ = 0;
  std::array<double, 4> normals_ = {};
};

// sqrt(freedom / chi-square), at most `most`; 1 where nothing tells of the noise.
double DrawScale(int freedom, double most, Draws* draws) {
  if (freedom == 0) return 1;
  double chi_square = 0;
  for (int i = 0; i < freedom; ++i) {
    const double normal = draws->Normal();
    chi_square += normal * normal;
  }
  return std::min(most, std::sqrt(freedom / chi_square));
}

// The value at a place between 0 and the last, between two values on the line through them.
double ValueAt(const std::vector<double>& sorted, double place) {
  const size_t below = static_cast<size_t>(place);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (place - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

}  // namespace

Interval CentralInterval(std::vector<double> values, double tails) {
  std::ranges::sort(values);
  const double last = static_cast<double>(values.size() - 1);
  return {ValueAt(values, tails / 2 * last), ValueAt(values, (1 - tails / 2) * last)};
}

LawBootstrap::LawBootstrap(std::span<const Configuration> configurations, const FittedLaw& fitted,
                           int replicates, uint64_t key)
    : noise_(fitted.noise), key_(key) {
  const Law& law = fitted.fit.law;
  const std::vector<int> group_of = GroupsOf(configurations);
  std::vector<double> effects(1 + std::ranges::max(group_of));
  std::vector<double> log_laws;
  for (const Configuration& configuration : configurations) {
    log_laws.push_back(CanonicalLog(law.At(configuration.sizes)));
  }
  LawFitter fitter(configurations, fitted.delta, WeightsOf(configurations, noise_.ratio));
  // Huber's threshold is to a replicate's noise what it is to that of the data.
  const double delta =
      noise_.spread() > 0 ? fitted.delta * noise_.drawn_spread() / noise_.spread() : fitted.delta;
  const double most_scale = kMostSpread / noise_.drawn_spread();
  const int nodes = kReplicateNodes[law.exponents.size() - 1];
  for (int r = 0; r < replicates; ++r) {
    Draws draws(key, r, kOfRuns);
    const double scale = DrawScale(noise_.freedom, most_scale, &draws);
    for (double& effect : effects) effect = scale * noise_.drawn_size_spread * draws.Normal();
    std::vector<std::vector<double>> log_values(configurations.size());
    for (size_t c = 0; c < configurations.size(); ++c) {
      for (size_t run = 0; run < configurations[c].values.size(); ++run) {
        log_values[c].push_back(log_laws[c] + effects[group_of[c]] +
                                scale * noise_.drawn_seed_spread * draws.Normal());
      }
    }
    fitter.Replace(std::move(log_values), scale * delta);
    laws_.push_back(fitter.Minimise(nodes).law);
    scales_.push_back(scale);
  }
}

Interval LawBootstrap::Of(const std::function<double(const Law&)>& function) const {
  std::vector<double> values;
  for (const Law& law : laws_) values.push_back(function(law));
  std::ranges::sort(values);
  // A new value is below the first of n with probability 1 / (n + 1).
  const double place = std::max(0.0, kTails / 2 * static_cast<double>(values.size() + 1) - 1);
  return {ValueAt(values, place), ValueAt(values, static_cast<double>(values.size() - 1) - place)};
}

std::vector<Interval> LawBootstrap::OfNewRuns(std::span<const Configuration> configurations) const {
  const size_t count = laws_.size();
  std::vector<std::vector<double>> sorted;
  // The least number of values beyond a replicate's, on either side, over its configurations.
  std::vector<size_t> depths(count, count);
  std::vector<Draws> draws;
  for (size_t r = 0; r < count; ++r) {
    draws.emplace_back(key_, static_cast<uint32_t>(r), kOfNewRuns);
  }
  for (const Configuration& configuration : configurations) {
    const double runs = static_cast<double>(configuration.values.size());
    const double of_size = noise_.drawn_size_spread;
    const double of_mean = noise_.drawn_seed_spread / std::sqrt(runs);
    // Not std::hypot, whose last bit depends on glibc.
    const double spread = std::sqrt(of_size * of_size + of_mean * of_mean);
    std::vector<double> values;
    for (size_t r = 0; r < count; ++r) {
      values.push_back(laws_[r].At(configuration.sizes) *
                       CanonicalExp(scales_[r] * spread * draws[r].Normal()));
    }
    std::vector<double>& in_order = sorted.emplace_back(values);
    std::ranges::sort(in_order);
    for (size_t r = 0; r < count; ++r) {
      const size_t rank = std::ranges::lower_bound(in_order, values[r]) - in_order.begin();
      depths[r] = std::min({depths[r], rank, count - 1 - rank});
    }
  }
  // Of n + 1 new replicates, as many as have at most a depth lie outside its values, on average.
  // Between two depths the share kTails is on the line through them.
  std::ranges::sort(depths);
  const double outside = kTails * static_cast<double>(count + 1);
  const auto at_most = [&](size_t depth) {
    return static_cast<double>(std::ranges::upper_bound(depths, depth) - depths.begin());
  };
  size_t depth = 0;
  while (at_most(depth + 1) <= outside) ++depth;
  const double below = at_most(depth), above = at_most(depth + 1);
  const double place = static_cast<double>(depth) +
                       (above > below ? std::max(0.0, (outside - below) / (above - below)) : 0);
  std::vector<Interval> intervals;
  for (const std::vector<double>& in_order : sorted) {
    intervals.push_back(
        {ValueAt(in_order, place), ValueAt(in_order, static_cast<double>(count - 1) - place)});
  }
  return intervals;
}

}  // namespace elastor
