#include "launcher/scaling_law/identification.h"

#include <Eigen/SVD>
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/canonical_math.h"
#include "core/base/student_t.h"
#include "core/base/text.h"
#include "launcher/scaling_law/sizes.h"

namespace elastor {
namespace {

constexpr double kLeastDecades = 1;
// Derivatives more alike than this let parameters take each other's place.
constexpr double kMostCondition = 1e3;
// A limit below this share of the lowest value is as good as none.
constexpr double kLeastLimit = 1e-3;
// A share of an exponent: as near to a bound it is at the bound.
constexpr double kAtBound = 1e-3;
constexpr int kProfileSteps = 24;  // from the optimum to a bound
constexpr int kProfileHalvings = 20;
constexpr int kProfileNodes = 6;
// Nodes a size of the grid when something is left out.
constexpr int kNodesWithout[] = {12, 6, 4};
// Different sizes of each kind: three determine a term, a fourth can be left out.
constexpr int kLeastIdentifiedSizes = 4;

double ConditionNumber(std::span<const Configuration> configurations, const Law& law) {
  const Eigen::Index sizes = static_cast<Eigen::Index>(law.exponents.size());
  Eigen::MatrixXd derivatives(configurations.size(), 1 + 2 * sizes);
  for (Eigen::Index c = 0; c < derivatives.rows(); ++c) {
    const double value = law.At(configurations[c].sizes);
    derivatives(c, 0) = 1 / value;
    for (Eigen::Index k = 0; k < sizes; ++k) {
      const double log_size = CanonicalLog(configurations[c].sizes[k] / law.references[k]);
      const double term = CanonicalExp(-law.exponents[k] * log_size) / value;
      derivatives(c, 1 + 2 * k) = term;
      derivatives(c, 2 + 2 * k) = term * log_size;
    }
  }
  derivatives.colwise().normalize();
  const Eigen::VectorXd values = Eigen::JacobiSVD<Eigen::MatrixXd>(derivatives).singularValues();
  const double least = values[values.size() - 1];
  return derivatives.rows() < derivatives.cols() || least <= 0
             ? std::numeric_limits<double>::infinity()
             : values[0] / least;
}

// What 2 (Q - least Q) is divided by so that it is distributed as F: the mean square of the sizes'
// sums of Huber's influence, over the mean of its slope. Without sizes beyond the parameters the
// mean square is that of the runs.
double Dispersion(std::span<const Configuration> configurations, const FittedLaw& fitted) {
  const std::vector<int> group_of = GroupsOf(configurations);
  const std::vector<double> weights = WeightsOf(configurations, fitted.noise.ratio);
  std::vector<double> sums(1 + std::ranges::max(group_of)), group_weights(sums.size());
  double squares = 0, unclipped = 0, runs = 0;
  for (size_t c = 0; c < configurations.size(); ++c) {
    const double log_law = CanonicalLog(fitted.fit.law.At(configurations[c].sizes));
    for (double value : configurations[c].values) {
      const double residual = CanonicalLog(value) - log_law;
      const double influence = std::clamp(residual, -fitted.delta, fitted.delta);
      sums[group_of[c]] += weights[c] * influence;
      group_weights[group_of[c]] += weights[c];
      squares += influence * influence;
      unclipped += weights[c] * (std::abs(residual) <= fitted.delta);
      ++runs;
    }
  }
  double mean_square = squares / std::max(1.0, runs - fitted.fit.law.parameters());
  if (fitted.noise.size_freedom > 0) {
    mean_square = 0;
    for (size_t g = 0; g < sums.size(); ++g) {
      mean_square += sums[g] * sums[g] / group_weights[g] / fitted.noise.size_freedom;
    }
  }
  return mean_square / (std::max(1.0, unclipped) / runs);
}

// From the optimum toward `bound`, the first exponent that the data exclude, or the bound.
double ProfileEnd(const LawFitter& fitter, const LawFitter::Fit& fit, int size, double bound,
                  double most) {
  const auto excluded = [&](double log_exponent) {
    const double objective =
        fitter.MinimiseWithFixed(size, CanonicalExp(log_exponent), kProfileNodes).objective;
    return 2 * (objective - fit.objective) > most;
  };
  double inside = CanonicalLog(fit.law.exponents[size]);
  const double step = (CanonicalLog(bound) - inside) / kProfileSteps;
  for (int i = 0; i < kProfileSteps; ++i) {
    double outside = inside + step;
    if (!excluded(outside)) {
      inside = outside;
      continue;
    }
    for (int halving = 0; halving < kProfileHalvings; ++halving) {
      const double middle = 0.5 * (inside + outside);
      (excluded(middle) ? outside : inside) = middle;
    }
    return CanonicalExp(inside);
  }
  return bound;
}

bool AtBound(double exponent) {
  return exponent < kLeastExponent * (1 + kAtBound) || exponent > kMostExponent * (1 - kAtBound);
}

// How E and the exponents move when runs are left out.
class Robustness {
 public:
  Robustness(std::span<const Configuration> configurations, std::span<const std::string> names,
             const FittedLaw& fitted)
      : configurations_(configurations), names_(names), fitted_(fitted) {}

  // Leaves out every run, then every size. Returns a reason for each kind that moves them too far.
  std::vector<std::string> Reasons() {
    std::vector<std::string> reasons;
    LeaveRuns();
    if (!worst_.empty()) reasons.push_back("one run decides: " + worst_);
    for (size_t k = 0; k < names_.size(); ++k) {
      LeaveLevels(k);
      if (!worst_.empty()) reasons.push_back("one size decides: " + worst_);
    }
    return reasons;
  }

 private:
  // The lowest and the highest run of every size: no other moves its mean as far.
  void LeaveRuns() {
    Begin();
    std::vector<Configuration> rest(configurations_.begin(), configurations_.end());
    for (Configuration& configuration : rest) {
      const std::vector<double> values = configuration.values;
      if (values.size() < 2) continue;  // all runs of a size: see LeaveLevels
      const std::string at = SizesText(names_, configuration.sizes);
      const auto [lowest, highest] = std::ranges::minmax_element(values);
      for (const auto run : {lowest, highest}) {
        configuration.values = values;
        configuration.values.erase(configuration.values.begin() + (run - values.begin()));
        Try(rest, Format("the run with %.5g at %s", *run, at.c_str()));
      }
      configuration.values = values;
    }
  }

  void LeaveLevels(size_t k) {
    Begin();
    const std::vector<int> levels = LevelsOf(configurations_, k);
    for (int level = 0; level <= std::ranges::max(levels); ++level) {
      std::vector<Configuration> rest;
      double size = 0;
      for (size_t c = 0; c < configurations_.size(); ++c) {
        if (levels[c] != level) {
          rest.push_back(configurations_[c]);
        } else if (size == 0) {
          size = configurations_[c].sizes[k];
        }
      }
      if (EnoughFor(rest)) Try(rest, Format("%s %.6g", names_[k].c_str(), size));
    }
  }

  void Begin() {
    worst_.clear();
    most_ = kMostMoved;
  }

  // Compares the law of the rest, and remembers it if it moves the most so far.
  void Try(std::span<const Configuration> rest, const std::string& without) {
    const std::vector<double> weights = WeightsOf(rest, fitted_.noise.ratio);
    const int nodes = kNodesWithout[names_.size() - 1];
    const Law law = LawFitter(rest, fitted_.delta, weights).Minimise(nodes).law;
    const auto compare = [&](const std::string& what, double with, double other) {
      const double ratio = std::max(with, other) / std::min(with, other);
      if (!(ratio > most_)) return;
      most_ = ratio;
      worst_ =
          Format("without %s %s is %.3g, not %.3g", without.c_str(), what.c_str(), other, with);
    };
    compare("E", fitted_.fit.law.limit, law.limit);
    for (size_t k = 0; k < names_.size(); ++k) {
      compare("the exponent of " + names_[k], fitted_.fit.law.exponents[k], law.exponents[k]);
    }
  }

  const std::span<const Configuration> configurations_;
  const std::span<const std::string> names_;
  const FittedLaw& fitted_;
  std::string worst_;
  double most_ = 0;
};

}  // namespace

Identification Identify(std::span<const Configuration> configurations,
                        std::span<const std::string> names, const FittedLaw& fitted,
                        const LawBootstrap& bootstrap, const std::optional<HoldOut>& hold_out) {
  Identification result;
  const auto object = [&result](const std::string& reason) { result.reasons.push_back(reason); };
  const Law& law = fitted.fit.law;
  const LawFitter fitter(configurations, fitted.delta,
                         WeightsOf(configurations, fitted.noise.ratio));
  const double t = StudentT975(std::max(1, fitted.noise.freedom));
  const double excluded = t * t * Dispersion(configurations, fitted);
  for (size_t k = 0; k < names.size(); ++k) {
    const char* const name = names[k].c_str();
    const auto size = [k](const Configuration& configuration) { return configuration.sizes[k]; };
    const double ratio = size(std::ranges::max(configurations, {}, size)) /
                         size(std::ranges::min(configurations, {}, size));
    if (std::log10(ratio) < kLeastDecades) {
      object(Format("%s spans a factor of %.3g; expected a decade at least", name, ratio));
    }
    if (const int sizes = DifferentSizes(configurations, k); sizes < kLeastIdentifiedSizes) {
      object(
          Format("%s has %d different sizes; expected %d, so that one can be left out (sizes "
                 "within a factor of %g count once)",
                 name, sizes, kLeastIdentifiedSizes, kSameSize));
    }
    const double exponent = law.exponents[k];
    const Interval profile = {
        ProfileEnd(fitter, fitted.fit, static_cast<int>(k), kLeastExponent, excluded),
        ProfileEnd(fitter, fitted.fit, static_cast<int>(k), kMostExponent, excluded)};
    result.profiles.push_back(profile);
    if (law.coefficients[k] == 0) {
      object(Format("the value does not fall with %s: its coefficient is 0", name));
    } else if (AtBound(exponent)) {
      object(Format("the exponent of %s is at a bound of the search, %g", name, exponent));
    }
    const bool open = profile.low <= kLeastExponent || profile.high >= kMostExponent;
    if (open || profile.high > kWidestInterval * profile.low) {
      object(Format("profile likelihood: any exponent of %s from %.3g to %.3g fits as well%s", name,
                    profile.low, profile.high, open ? ", to the end of the search" : ""));
    }
    const Interval interval = bootstrap.Of([k](const Law& at) { return at.exponents[k]; });
    if (AtBound(interval.low) || AtBound(interval.high) ||
        interval.high > kWidestInterval * interval.low) {
      object(
          Format("the 95 %% interval of the exponent of %s is [%.3g, %.3g]; expected a ratio of "
                 "%g at most, inside the bounds of the search",
                 name, interval.low, interval.high, kWidestInterval));
    }
  }
  result.condition = ConditionNumber(configurations, law);
  if (!(result.condition <= kMostCondition)) {
    object(Format("condition number %.2g: parameters can take each other's place (%.0g at most)",
                  result.condition, kMostCondition));
  }
  const auto by_value = [&law](const Configuration& configuration) {
    return law.At(configuration.sizes);
  };
  const double lowest = by_value(std::ranges::min(configurations, {}, by_value));
  const Interval limit = bootstrap.Of([](const Law& replicate) { return replicate.limit; });
  if (std::min(law.limit, limit.low) < kLeastLimit * lowest) {
    object(
        Format("the limit E may be 0: its 95 %% interval is [%.4g, %.4g]", limit.low, limit.high));
  } else if (limit.high > kWidestInterval * limit.low) {
    object(
        Format("the 95 %% interval of the limit E is [%.4g, %.4g]; expected a ratio of %g at most",
               limit.low, limit.high, kWidestInterval));
  }
  if (fitted.noise.size_freedom == 0) {
    object("as many sizes as parameters: none is left to contradict the law");
  }
  for (const std::string& reason : Robustness(configurations, names, fitted).Reasons()) {
    object(reason);
  }
  if (hold_out && hold_out->breaks_law()) {
    object("the largest sizes break the law of the smaller ones");
  }
  return result;
}

}  // namespace elastor
