#ifndef ELASTOR_LAUNCHER_COMPARISON_ENERGY_DISTANCE_H_
#define ELASTOR_LAUNCHER_COMPARISON_ENERGY_DISTANCE_H_

#include <cstdint>
#include <span>
#include <vector>

#include "launcher/scaling_law/bootstrap.h"

namespace elastor {

// Whether runs of two arms have the same training loss and generalisation gap: section 5 of
// arXiv:2605.20749, with whole runs as what is exchangeable. Points of one run are not: to permute
// them rejects equal arms (docs/results/reproduce_conditioning.md).

struct LossAndGap {
  double loss = 0;  // of the training rows
  double gap = 0;   // held-out loss - training loss
};
using LossAndGapRun = std::vector<LossAndGap>;  // points along one training

// Energy distance 2 E|X - Y| - E|X - X'| - E|Y - Y'| (Szekely and Rizzo) of two arms: every run has
// the same weight, and so has every point of a run. Loss and gap are each divided by their standard
// deviation over all points, so that neither unit matters; one without spread counts as 0.
// REQUIRES: runs in both arms, points in all runs, all finite.
double EnergyDistance(std::span<const LossAndGapRun> first, std::span<const LossAndGapRun> second);

struct EnergyTestOptions {
  int64_t most_exact = 20'000;  // ways to label the runs, all of which are tried up to this number
  int64_t draws = 9'999;        // beyond it, labels are drawn
  uint64_t seed = 1;            // of the draws
  double level = 0.05;
};

// The share of labellings of the runs that have no smaller distance, the runs' own included.
double PermutationPValue(std::span<const LossAndGapRun> first,
                         std::span<const LossAndGapRun> second,
                         const EnergyTestOptions& options = {});

struct EnergyTest {
  double distance = 0;
  double p = 1;            // PermutationPValue
  bool exact = false;      // all labellings
  int64_t labellings = 0;  // tried
  // Mean gap of the second arm's runs less that of the first's, and the differences that the same
  // labellings of the runs' means do not reject at the level. Infinite where they can reject none.
  double gap_difference = 0;
  Interval gap_interval = {};
  // The larger end's size: the gaps are equivalent within it. p alone never shows that.
  double equivalence_bound = 0;
};
EnergyTest TestEnergyDistance(std::span<const LossAndGapRun> first,
                              std::span<const LossAndGapRun> second,
                              const EnergyTestOptions& options = {});

}  // namespace elastor

#endif  // ELASTOR_LAUNCHER_COMPARISON_ENERGY_DISTANCE_H_
