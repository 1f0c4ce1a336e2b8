#ifndef ELASTOR_LAUNCHER_COMPARISON_ARMS_H_
#define ELASTOR_LAUNCHER_COMPARISON_ARMS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "launcher/scaling_law/bootstrap.h"

namespace elastor {

// Comparisons of one metric between arms of runs: models, or settings of one model. The runs of an
// arm differ in their seed, and a level is what arms may have in common: a size, a data set. The
// metric is of the same rows in all runs, so that an interval is about other seeds, and not about
// other rows.
struct ArmLevel {
  std::string name;
  std::map<int64_t, double> by_seed;
};
struct Arm {
  std::string name;
  std::vector<ArmLevel> levels;  // names differ
};

// The difference first - second of two arms. Runs of one seed are a pair, whose difference is free
// of what the seed does to both: the interval is Student's over these differences, and their spread
// is pooled over the levels. Without two seeds in common at any level the interval is Welch's.
struct ArmDifference {
  size_t first = 0, second = 0;  // indices in the list of arms
  std::string level;             // empty: the mean over all levels that both have
  int64_t seeds = 0;             // pairs, or runs of the arm with fewer
  bool paired = false;
  double value = 0;
  std::optional<Interval> interval = {};  // 95 %; none: one seed
  std::optional<double> p = {};           // of no difference
  std::optional<double> holm = {};        // p corrected for all differences of the same list

  // Returns whether the corrected p is at most 5 %.
  bool told_apart() const { return holm && *holm <= 0.05; }
};

struct ArmComparison {
  std::vector<ArmDifference> overall;   // of every pair of arms with a level in common
  std::vector<ArmDifference> by_level;  // where a pair has several in common: one for each
};

// Compares every pair of arms. The same arguments give the same bits.
ArmComparison CompareArms(const std::vector<Arm>& arms);

// The trend over sizes of one arm: groups of runs, from the smallest size to the largest.
struct SizeTrend {
  // Probability that groups without any effect of size differ as much, by a one-way analysis of
  // variance. None: no group has two runs.
  std::optional<double> p;
  size_t best = 0;  // group with the largest mean
  // The largest group minus the one before it, and minus the best if that is another one; 95 %, by
  // the spread of all groups. The second is corrected for the choice of the best (Bonferroni).
  std::optional<Interval> last_step;
  std::optional<double> p_of_last_step, p_of_best;
};
// Larger values are better. REQUIRES: two or more groups, none empty.
SizeTrend TrendOf(const std::vector<std::vector<double>>& groups);

}  // namespace elastor

#endif  // ELASTOR_LAUNCHER_COMPARISON_ARMS_H_
