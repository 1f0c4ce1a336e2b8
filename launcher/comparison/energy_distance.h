#ifndef ELASTOR_LAUNCHER_COMPARISON_ENERGY_DISTANCE_H_
#define ELASTOR_LAUNCHER_COMPARISON_ENERGY_DISTANCE_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "launcher/scaling_law/bootstrap.h"

namespace elastor {

// Tests whether runs of two arms have the same training loss and generalisation gap: section 5 of
// arXiv:2605.20749, with whole runs as the exchangeable units. Points of one run are not
// exchangeable: permuting them rejects equal arms (docs/results/reproduce_conditioning.md).

struct LossAndGap {
  double loss = 0;  // loss on the training rows
  double gap = 0;   // held-out loss - training loss
};
using LossAndGapRun = std::vector<LossAndGap>;  // points along one training

// Returns the energy distance 2 E|X - Y| - E|X - X'| - E|Y - Y'| (Szekely and Rizzo) of two arms.
// Every run has the same weight, and so has every point of a run. Loss and gap are each divided by
// their standard deviation over all points, so that units do not matter; a quantity without spread
// counts as 0. REQUIRES: runs in both arms, points in all runs, all finite.
double EnergyDistance(std::span<const LossAndGapRun> first, std::span<const LossAndGapRun> second);

struct EnergyTestOptions {
  int64_t most_exact = 20'000;  // ways to label the runs, all of which are tried up to this number
  int64_t draws = 9'999;        // beyond it, labels are drawn
  uint64_t seed = 1;            // seed of the draws
  double level = 0.05;
};

// Returns the share of labellings of the runs whose distance is not smaller than the true one; the
// true labelling counts too.
double PermutationPValue(std::span<const LossAndGapRun> first,
                         std::span<const LossAndGapRun> second,
                         const EnergyTestOptions& options = {});

// A gap of the second arm's runs, by their mean, minus the first arm's.
struct GapDifference {
  double value = 0;
  // The differences that the same labellings of the runs do not reject at the level. The ends are
  // infinite if the labellings can reject no difference.
  Interval interval = {};
  // Returns the larger absolute value of the interval's ends. The gaps are equivalent within it,
  // which p alone never shows.
  double equivalence_bound() const {
    return std::max(std::abs(interval.low), std::abs(interval.high));
  }
};

struct EnergyTest {
  double distance = 0;
  double p = 1;            // PermutationPValue
  bool exact = false;      // whether all labellings were tried
  int64_t labellings = 0;  // number of labellings tried
  GapDifference mean;      // of a run's mean gap over its points
  GapDifference last;      // of the gap at a run's last point
  // Of the gap at a training loss that is the same for all runs: the smallest that every run
  // reached. None if a run was below it from its first point on.
  struct EqualLoss {
    double loss = 0;
    GapDifference gap;
  };
  std::optional<EqualLoss> equal_loss;
};

// Returns the gap of a run where its training loss first fell to `loss`, linear between the points
// before and after. None if it never did, or was below from its first point on.
std::optional<double> GapAtLoss(const LossAndGapRun& run, double loss);

EnergyTest TestEnergyDistance(std::span<const LossAndGapRun> first,
                              std::span<const LossAndGapRun> second,
                              const EnergyTestOptions& options = {});

}  // namespace elastor

#endif  // ELASTOR_LAUNCHER_COMPARISON_ENERGY_DISTANCE_H_
