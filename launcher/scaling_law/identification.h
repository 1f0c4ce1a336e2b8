#ifndef ELASTOR_LAUNCHER_SCALING_LAW_IDENTIFICATION_H_
#define ELASTOR_LAUNCHER_SCALING_LAW_IDENTIFICATION_H_

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "launcher/scaling_law/bootstrap.h"
#include "launcher/scaling_law/hold_out.h"
#include "launcher/scaling_law/law_fit.h"
#include "launcher/scaling_law/noise.h"

namespace elastor {

// Tells whether the data determine the law's parameters, or only its values at the measured sizes.
struct Identification {
  std::vector<std::string> reasons;  // against it, a sentence each; none: identified
  std::vector<Interval> profiles;    // [d] 95 % intervals of the exponents by profile likelihood
  double condition = 0;              // of the relative derivatives, columns of length 1

  bool identified() const { return reasons.empty(); }
};

// Widest interval of E or an exponent of an identified law: the ratio of its ends.
inline constexpr double kWidestInterval = 4;
// E and exponents of an identified law move by no larger factor when any one run, or all runs of
// any one size, are left out.
inline constexpr double kMostMoved = 1.5;

// `names` are those of the sizes. REQUIRES: `fitted` is FitLaw's of the configurations, `bootstrap`
// and `hold_out` are of the same data.
Identification Identify(std::span<const Configuration> configurations,
                        std::span<const std::string> names, const FittedLaw& fitted,
                        const LawBootstrap& bootstrap, const std::optional<HoldOut>& hold_out);

}  // namespace elastor

#endif  // ELASTOR_LAUNCHER_SCALING_LAW_IDENTIFICATION_H_
