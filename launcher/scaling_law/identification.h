#ifndef ELASTOR_LAUNCHER_SCALING_LAW_IDENTIFICATION_H_
#define ELASTOR_LAUNCHER_SCALING_LAW_IDENTIFICATION_H_

#include <span>
#include <string>
#include <vector>

#include "launcher/scaling_law/bootstrap.h"
#include "launcher/scaling_law/law_fit.h"

namespace elastor {

// Tells whether the data determine the law's parameters, or only its values at the measured sizes.
struct Identification {
  std::vector<std::string> reasons;  // against it, a sentence each; none: identified
  std::vector<Interval> profiles;    // [d] 95 % intervals of the exponents by profile likelihood
  double condition = 0;              // of the relative derivatives, columns of length 1

  bool identified() const { return reasons.empty(); }
};

// `names` are those of the sizes. REQUIRES: `fit` is of the fitter of the configurations with
// delta.
Identification Identify(std::span<const Configuration> configurations,
                        std::span<const std::string> names, double delta, const LawFitter::Fit& fit,
                        const LawBootstrap& bootstrap);

}  // namespace elastor

#endif  // ELASTOR_LAUNCHER_SCALING_LAW_IDENTIFICATION_H_
