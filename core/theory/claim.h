#ifndef ELASTOR_CORE_THEORY_CLAIM_H_
#define ELASTOR_CORE_THEORY_CLAIM_H_

#include <string>
#include <vector>

namespace elastor {

// The relation that a claim states between the measured value and its bound.
enum class Relation { kAtLeast, kAtMost, kAbove, kBelow, kEqual };

// One statement about a representation (docs/results/reproduce_theory.md).
struct Claim {
  std::string name;       // the theorem and its part: "2.1 lower bound"
  std::string statement;  // in the theorem's words, measured value first
  // The quantity of the claim's assumption that is measured with it; empty if it assumes nothing.
  std::string assumption = {};
  Relation relation = Relation::kAtLeast;
};

// The finding of one representation about a claim.
struct Finding {
  double bound = 0;
  double measured = 0;
  double assumption = 0;
};

// Returns whether the finding agrees with the claim, up to kClaimTolerance times the bound, since
// measured values and bounds are rounded. False if either is NaN.
inline constexpr double kClaimTolerance = 1e-9;
bool Holds(const Claim& claim, const Finding& finding);

}  // namespace elastor

#endif  // ELASTOR_CORE_THEORY_CLAIM_H_
