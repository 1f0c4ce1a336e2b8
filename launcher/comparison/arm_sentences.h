#ifndef ELASTOR_LAUNCHER_COMPARISON_ARM_SENTENCES_H_
#define ELASTOR_LAUNCHER_COMPARISON_ARM_SENTENCES_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "launcher/comparison/arms.h"

namespace elastor {

// A metric of arms, compared and ready to be told.
struct ToldMetric {
  std::string name;  // "AUC"
  bool larger_is_better = true;
  std::vector<std::string> arms;
  std::vector<double> means;  // of each arm
  ArmComparison comparison;
};

// Returns the arm with the best mean, the first of equals.
size_t BestArm(const ToldMetric& metric);

// Returns the difference best - other as a gain: positive where the best arm is better. None if the
// two have nothing in common.
std::optional<ArmDifference> GainOver(const ToldMetric& metric,
                                      const std::vector<ArmDifference>& differences, size_t best,
                                      size_t other);

// Returns who is ahead, by how much, and whether this can be told, in a sentence or a few. Words
// follow the corrected p-values alone. Empty: fewer than two arms.
std::string WhoIsAhead(const ToldMetric& metric);

// Returns the same of a second metric, and no more words than needed where its verdicts are those
// of the first.
std::string WhoIsAheadToo(const ToldMetric& first, const ToldMetric& second);

// Returns "0.0029 [0.0008, 0.0051]".
std::string GainText(const ArmDifference& gain);

}  // namespace elastor

#endif  // ELASTOR_LAUNCHER_COMPARISON_ARM_SENTENCES_H_
