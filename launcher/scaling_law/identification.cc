#include "launcher/scaling_law/identification.h"

#include <Eigen/SVD>
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/canonical_math.h"
#include "core/base/text.h"

namespace elastor {
namespace {

constexpr double kLeastDecades = 1;
// Derivatives more alike than this let parameters take each other's place.
constexpr double kMostCondition = 1e3;
// A limit below this share of the lowest value is as good as none.
constexpr double kLeastLimit = 1e-3;
// An exponent known to a factor of more is not known.
constexpr double kMostProfileRatio = 4;
// A share of an exponent: as near to a bound it is at the bound.
constexpr double kAtBound = 1e-3;
constexpr double kChiSquare95 = 3.841;
constexpr int kProfileSteps = 24;  // from the optimum to a bound
constexpr int kProfileHalvings = 20;
constexpr int kProfileNodes = 6;

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

// What 2 (Q - least Q) is divided by so that it is distributed as chi-square: the mean square of
// Huber's influence over the mean of its slope, times how much more the configurations' means vary
// than the seeds explain.
double Dispersion(std::span<const Configuration> configurations, const Law& law, double delta,
                  const LawNoise& noise) {
  double squares = 0, unclipped = 0, runs = 0;
  for (const Configuration& configuration : configurations) {
    const double log_law = CanonicalLog(law.At(configuration.sizes));
    for (double value : configuration.values) {
      const double residual = std::abs(CanonicalLog(value) - log_law);
      squares += std::pow(std::min(residual, delta), 2);
      unclipped += residual <= delta;
      ++runs;
    }
  }
  const double freedom = std::max(1.0, runs - static_cast<double>(1 + 2 * law.exponents.size()));
  double excess = 1;
  if (noise.seed_spread > 0) {
    const double ratio = noise.misfit_spread / noise.seed_spread;
    excess += ratio * ratio * runs / static_cast<double>(configurations.size());
  }
  return excess * (squares / freedom) / (std::max(1.0, unclipped) / runs);
}

// From the optimum toward `bound`, the first exponent that the data exclude, or the bound.
double ProfileEnd(const LawFitter& fitter, const LawFitter::Fit& fit, int size, double bound,
                  double dispersion) {
  const auto excluded = [&](double log_exponent) {
    const double objective =
        fitter.MinimiseWithFixed(size, CanonicalExp(log_exponent), kProfileNodes).objective;
    return 2 * (objective - fit.objective) > kChiSquare95 * dispersion;
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

}  // namespace

Identification Identify(std::span<const Configuration> configurations,
                        std::span<const std::string> names, double delta, const LawFitter::Fit& fit,
                        const LawBootstrap& bootstrap) {
  Identification result;
  const auto object = [&result](const std::string& reason) { result.reasons.push_back(reason); };
  const Law& law = fit.law;
  const LawFitter fitter(configurations, delta);
  const double dispersion = Dispersion(configurations, law, delta, bootstrap.noise());
  for (size_t k = 0; k < names.size(); ++k) {
    const char* const name = names[k].c_str();
    const auto size = [k](const Configuration& configuration) { return configuration.sizes[k]; };
    const double ratio = size(std::ranges::max(configurations, {}, size)) /
                         size(std::ranges::min(configurations, {}, size));
    if (std::log10(ratio) < kLeastDecades) {
      object(Format("%s spans a factor of %.3g; expected a decade at least", name, ratio));
    }
    const double exponent = law.exponents[k];
    const Interval profile = {
        ProfileEnd(fitter, fit, static_cast<int>(k), kLeastExponent, dispersion),
        ProfileEnd(fitter, fit, static_cast<int>(k), kMostExponent, dispersion)};
    result.profiles.push_back(profile);
    if (law.coefficients[k] == 0) {
      object(Format("the value does not fall with %s: its coefficient is 0", name));
    } else if (exponent < kLeastExponent * (1 + kAtBound) ||
               exponent > kMostExponent * (1 - kAtBound)) {
      object(Format("the exponent of %s is at a bound of the search, %g", name, exponent));
    }
    const bool open = profile.low <= kLeastExponent || profile.high >= kMostExponent;
    if (open || profile.high > kMostProfileRatio * profile.low) {
      object(Format("profile likelihood: any exponent of %s from %.3g to %.3g fits as well%s", name,
                    profile.low, profile.high, open ? ", to the end of the search" : ""));
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
  }
  if (bootstrap.noise().misfit_freedom == 0) {
    object("as many configurations as parameters: none is left to contradict the law");
  }
  return result;
}

}  // namespace elastor
