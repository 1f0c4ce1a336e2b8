#ifndef ELASTOR_LAUNCHER_SCALING_LAW_BOOTSTRAP_H_
#define ELASTOR_LAUNCHER_SCALING_LAW_BOOTSTRAP_H_

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "launcher/scaling_law/law_fit.h"
#include "launcher/scaling_law/noise.h"

namespace elastor {

struct Interval {
  double low = 0;
  double high = 0;
};

// Default probability of both tails of an interval together.
inline constexpr double kTails = 0.05;
// Returns the interval of the values without the share `tails`, half of it on each side.
Interval CentralInterval(std::vector<double> values, double tails = kTails);

// Fits laws to replicates of the data, a parametric bootstrap. A replicate has every configuration
// with its number of runs. Each value is
//
//   L(x) exp(s (tau b + sigma e)),   s = sqrt(f / chi-square of f degrees of freedom),
//
// with a normal b of every size, a normal e of every run, and tau, sigma and f those that LawNoise
// says are drawn. s is one number a replicate: the scale of the noise is not known better than
// that. For a law linear in its parameters and equally many seeds, the intervals are Student's.
// Configurations are not drawn: a draw with replacement of six sizes has only four different ones
// on average, too few for a law of three parameters.
class LawBootstrap {
 public:
  // Draws are Philox's for `key`. REQUIRES: fitted is FitLaw's of the configurations.
  LawBootstrap(std::span<const Configuration> configurations, const FittedLaw& fitted,
               int replicates, uint64_t key);

  int replicates() const { return static_cast<int>(laws_.size()); }
  const std::vector<Law>& laws() const { return laws_; }

  // Returns the interval of a function of the law, such as a parameter or a prediction.
  Interval Of(const std::function<double(const Law&)>& function) const;
  // Returns intervals of the mean values of new runs, as many as each configuration has. All hold
  // at once in 95 % of the cases: each leaves out the same share of the replicates.
  std::vector<Interval> OfNewRuns(std::span<const Configuration> configurations) const;

 private:
  LawNoise noise_;
  uint64_t key_;
  std::vector<Law> laws_;
  std::vector<double> scales_;  // [replicate] s
};

}  // namespace elastor

#endif  // ELASTOR_LAUNCHER_SCALING_LAW_BOOTSTRAP_H_
