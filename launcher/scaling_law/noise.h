#ifndef ELASTOR_LAUNCHER_SCALING_LAW_NOISE_H_
#define ELASTOR_LAUNCHER_SCALING_LAW_NOISE_H_

#include <optional>
#include <span>
#include <vector>

#include "launcher/scaling_law/law_fit.h"

namespace elastor {

// The noise of runs about a law: a mixed model with a random effect of every size,
//
//   log value_ij = log L(x_i) + b_i + e_ij,   b_i ~ N(0, tau^2),   e_ij ~ N(0, sigma^2),
//
// for run j of size i. b_i is common to all seeds of a size: what its width, its learning rate or
// the shapes of its kernels do beyond the law. More seeds make it no smaller.
//
// sigma^2 is the pooled variance within sizes. tau^2 solves
//
//   sum_i n_i r_i^2 / (1 + n_i tau^2 / sigma^2) = (G - p) sigma^2
//
// with r_i the mean residual of the n_i runs of size i, G sizes and p parameters (Paule and Mandel,
// J. Res. NBS 87, 1982). With as many seeds of every size it is the REML estimate.
//
// Intervals take the scale of the noise from the r_i alone, with G - p degrees of freedom, and
// Student's distribution. sigma does not enter: for unknown tau, Student's test by the r_i is the
// most powerful of all unbiased ones (Lehmann, Testing Statistical Hypotheses, 1986, 5.2; for a
// linear law and equally many seeds), and it has its level whether the sizes scatter or not. The
// rule "tau = 0 if the seeds explain the r_i" has not: of few sizes they often seem to. The price:
// r_i that are small by luck give an interval that is narrower than the seeds alone would allow,
// and large ones a wider one. The level holds over all draws.
struct LawNoise {
  // Degrees of freedom of the scale, G - p. 0 if no size can contradict the law: then the scale is
  // that of the seeds, and `freedom` theirs.
  int size_freedom = 0;
  int freedom = 0;
  double size_spread = 0;  // tau; 0 if the seeds explain the residuals
  double seed_spread = 0;  // sigma; 0 if every size has one run
  double ratio = 0;        // tau^2 / sigma^2; a size of n runs has the weight n / (1 + n ratio)
  // Standard deviations as intervals take them, of sizes and of runs: tau and sigma, unless the
  // r_i are smaller than sigma alone allows. Then of runs that of sqrt(n_i) r_i.
  double drawn_size_spread = 0;
  double drawn_seed_spread = 0;

  // Return the standard deviation of a run about the law.
  double spread() const;
  double drawn_spread() const;
};
LawNoise NoiseOf(std::span<const Configuration> configurations, const Law& law);

// Returns the weight of every configuration's runs, the inverse of the variance of its size's mean
// over the number of its runs. The mean over runs is 1.
std::vector<double> WeightsOf(std::span<const Configuration> configurations, double ratio);

// A law, how it was fitted, and the noise about it.
struct FittedLaw {
  LawFitter::Fit fit;
  double delta = 0;  // Huber's threshold
  LawNoise noise;
};

// Fits a law with the weights of its noise. Without `delta`, Huber's threshold is
// 2 sqrt(sigma^2 + tau^2), 99 % efficient for normal noise. REQUIRES: as LawFitter; delta, or a
// configuration with two seeds.
FittedLaw FitLaw(std::span<const Configuration> configurations, std::optional<double> delta,
                 int nodes);

}  // namespace elastor

#endif  // ELASTOR_LAUNCHER_SCALING_LAW_NOISE_H_
