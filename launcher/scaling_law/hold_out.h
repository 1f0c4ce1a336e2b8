#ifndef ELASTOR_LAUNCHER_SCALING_LAW_HOLD_OUT_H_
#define ELASTOR_LAUNCHER_SCALING_LAW_HOLD_OUT_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "launcher/scaling_law/bootstrap.h"
#include "launcher/scaling_law/law_fit.h"

namespace elastor {

// One of the largest configurations, predicted by the law of the others. Errors are signed and
// relative: predicted / observed - 1.
struct HeldOut {
  std::vector<double> sizes;
  double observed = 0;   // mean over the seeds
  double predicted = 0;  // by the law
  // Interval of the mean of as many runs. All held-out means lie in their intervals at once in 95 %
  // of the cases.
  Interval interval;
  double error = 0;             // error of the law
  double last_value_error = 0;  // error of the mean at the largest fitted configuration
  double log_linear_error = 0;  // error of the straight line of value over log(sizes)

  bool breaks_law() const { return observed < interval.low || observed > interval.high; }
};

struct HoldOut {
  int fitted = 0;          // number of fitted configurations
  double seed_spread = 0;  // relative standard deviation of a run
  double size_spread = 0;  // and of a size about the law, beyond its seeds
  std::vector<HeldOut> held_out;

  bool breaks_law() const;
  // Returns the root mean square of a member of HeldOut.
  double RootMeanSquare(double HeldOut::*error) const;
};

// Holds out a quarter of the sizes, rounded up: those with the largest product. Holds out fewer,
// but at least one, if fewer than two would be left beyond the law's parameters. Holds out none if
// none would be left beyond them: then nothing tells how sizes scatter. Sizes within kSameSize are
// held out together.
std::optional<HoldOut> HoldOutLargest(std::span<const Configuration> configurations,
                                      std::optional<double> delta, int nodes, int replicates,
                                      uint64_t key);

// Returns whether a law can be fitted: it needs as many configurations as it has parameters, and
// three different sizes of each kind.
bool EnoughFor(std::span<const Configuration> configurations);

}  // namespace elastor

#endif  // ELASTOR_LAUNCHER_SCALING_LAW_HOLD_OUT_H_
