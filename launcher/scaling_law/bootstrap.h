#ifndef ELASTOR_LAUNCHER_SCALING_LAW_BOOTSTRAP_H_
#define ELASTOR_LAUNCHER_SCALING_LAW_BOOTSTRAP_H_

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "launcher/scaling_law/law_fit.h"

namespace elastor {

// Residuals log(value) - log L of a fit, split into a part of whole configurations and a part of
// seeds.
struct LawNoise {
  // Means of the configurations' residuals. They are scaled to the variance that remains without
  // the seeds' variance and the fit's freedom. All are 0 if seeds explain the residuals.
  std::vector<double> misfits;
  // Deviations of runs from their configuration's mean, scaled to the variance of the seeds.
  std::vector<double> deviations;
  int misfit_freedom = 0;    // configurations beyond the parameters of the law
  double misfit_spread = 0;  // standard deviations
  double seed_spread = 0;
};
LawNoise NoiseOf(std::span<const Configuration> configurations, const Law& law);

struct Interval {
  double low = 0;
  double high = 0;
};

// Default probability of both tails of an interval together.
inline constexpr double kTails = 0.05;
// Returns the interval of the values without the share `tails`, half of it on each side.
Interval CentralInterval(std::vector<double> values, double tails = kTails);

// Fits laws to replicates of the data. A replicate has every configuration with its number of runs.
// Each value is the law's times exp(misfit + deviation), with a misfit drawn once per configuration
// and a deviation drawn once per run. Configurations are not drawn: a draw with replacement of six
// sizes has only four different ones on average, too few for a law of three parameters.
class LawBootstrap {
 public:
  // Draws are Philox's for `key`. REQUIRES: law fitted to the configurations.
  LawBootstrap(std::span<const Configuration> configurations, const Law& law, double delta,
               int replicates, uint64_t key);

  int replicates() const { return static_cast<int>(laws_.size()); }
  const std::vector<Law>& laws() const { return laws_; }
  const LawNoise& noise() const { return noise_; }

  // Returns the interval of a function of the law, such as a parameter or a prediction.
  Interval Of(const std::function<double(const Law&)>& function) const;
  // Returns the interval of the mean value of `runs` new runs of these sizes: the law's interval,
  // widened by their noise.
  Interval OfNewRuns(std::span<const double> sizes, int runs, double tails) const;

 private:
  LawNoise noise_;
  uint64_t key_;
  std::vector<Law> laws_;
};

}  // namespace elastor

#endif  // ELASTOR_LAUNCHER_SCALING_LAW_BOOTSTRAP_H_
