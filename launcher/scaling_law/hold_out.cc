#include "launcher/scaling_law/hold_out.h"

#include <Eigen/QR>
#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "core/base/canonical_math.h"
#include "launcher/scaling_law/noise.h"
#include "launcher/scaling_law/sizes.h"

namespace elastor {
namespace {

constexpr size_t kLeastSizes = 3;
// Sizes beyond the parameters of the law that others are predicted with: with one alone, Student's
// quantile is 12.7.
constexpr int kWantedFreedom = 2;

double MeanValue(const Configuration& configuration) {
  return std::accumulate(configuration.values.begin(), configuration.values.end(), 0.0) /
         static_cast<double>(configuration.values.size());
}

double LogProduct(const Configuration& configuration) {
  double sum = 0;
  for (double size : configuration.sizes) sum += CanonicalLog(size);
  return sum;
}

// (1, log x_1, ..., log x_d)
Eigen::RowVectorXd LogTerms(const Configuration& configuration) {
  Eigen::RowVectorXd terms(1 + configuration.sizes.size());
  terms[0] = 1;
  for (size_t k = 0; k < configuration.sizes.size(); ++k) {
    terms[static_cast<Eigen::Index>(k) + 1] = CanonicalLog(configuration.sizes[k]);
  }
  return terms;
}

Eigen::VectorXd FitLogLinear(std::span<const Configuration> configurations) {
  const Eigen::Index rows = static_cast<Eigen::Index>(configurations.size());
  Eigen::MatrixXd terms(rows, LogTerms(configurations.front()).size());
  Eigen::VectorXd values(rows);
  for (Eigen::Index c = 0; c < rows; ++c) {
    terms.row(c) = LogTerms(configurations[c]);
    values[c] = MeanValue(configurations[c]);
  }
  return terms.colPivHouseholderQr().solve(values);
}

}  // namespace

bool EnoughFor(std::span<const Configuration> configurations) {
  if (configurations.empty()) return false;
  const size_t kinds = configurations.front().sizes.size();
  for (size_t k = 0; k < kinds; ++k) {
    std::set<double> sizes;
    for (const Configuration& configuration : configurations) sizes.insert(configuration.sizes[k]);
    if (sizes.size() < kLeastSizes) return false;
  }
  return configurations.size() >= 1 + 2 * kinds;
}

bool HoldOut::breaks_law() const {
  return std::ranges::any_of(held_out, [](const HeldOut& held) { return held.breaks_law(); });
}

double HoldOut::RootMeanSquare(double HeldOut::*error) const {
  double squares = 0;
  for (const HeldOut& held : held_out) squares += held.*error * (held.*error);
  return std::sqrt(squares / static_cast<double>(held_out.size()));
}

std::optional<HoldOut> HoldOutLargest(std::span<const Configuration> configurations,
                                      std::optional<double> delta, int nodes, int replicates,
                                      uint64_t key) {
  std::vector<Configuration> ordered(configurations.begin(), configurations.end());
  std::ranges::stable_sort(ordered, {}, LogProduct);
  const std::vector<int> group_of = GroupsOf(ordered);
  const int groups = 1 + std::ranges::max(group_of);
  const int parameters = static_cast<int>(1 + 2 * ordered.front().sizes.size());
  const int spare = std::max(1, groups - parameters - kWantedFreedom);
  const int first_held = groups - std::min((groups + 3) / 4, spare);
  if (first_held <= parameters) return std::nullopt;
  std::vector<Configuration> fitted, held;
  for (size_t c = 0; c < ordered.size(); ++c) {
    (group_of[c] < first_held ? fitted : held).push_back(ordered[c]);
  }
  if (!EnoughFor(fitted)) return std::nullopt;
  const FittedLaw law = FitLaw(fitted, delta, nodes);
  const LawBootstrap bootstrap(fitted, law, replicates, key);
  const std::vector<Interval> intervals = bootstrap.OfNewRuns(held);
  const Eigen::VectorXd line = FitLogLinear(fitted);
  HoldOut result;
  result.fitted = static_cast<int>(fitted.size());
  result.seed_spread = law.noise.seed_spread;
  result.size_spread = law.noise.size_spread;
  for (size_t c = 0; c < held.size(); ++c) {
    const Configuration& configuration = held[c];
    HeldOut& out = result.held_out.emplace_back();
    out.sizes = configuration.sizes;
    out.observed = MeanValue(configuration);
    out.predicted = law.fit.law.At(configuration.sizes);
    out.interval = intervals[c];
    out.error = out.predicted / out.observed - 1;
    out.last_value_error = MeanValue(fitted.back()) / out.observed - 1;
    out.log_linear_error = LogTerms(configuration).dot(line) / out.observed - 1;
  }
  return result;
}

}  // namespace elastor
