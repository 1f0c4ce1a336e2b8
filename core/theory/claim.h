#ifndef ELASTOR_CORE_THEORY_CLAIM_H_
#define ELASTOR_CORE_THEORY_CLAIM_H_

#include <string>
#include <vector>

namespace elastor {

// How a claim has the measured value stand to its bound.
enum class Relation { kAtLeast, kAtMost, kAbove, kBelow, kEqual };

// One statement about a representation (docs/results/reproduce_theory.md).
struct Claim {
  std::string name;       // the theorem and its part: "2.1 lower bound"
  std::string statement;  // in words of the theorem, measured value first
  // The quantity of its assumption that is measured with it; empty: it assumes nothing.
  std::string assumption = {};
  Relation relation = Relation::kAtLeast;
};

// What one representation has to say about a claim.
struct Finding {
  double bound = 0;
  double measured = 0;
  double assumption = 0;
};

// Whether the finding agrees with the claim, up to kClaimTolerance of the bound: measured values
// and bounds are rounded. False where either is NaN.
inline constexpr double kClaimTolerance = 1e-9;
bool Holds(const Claim& claim, const Finding& finding);

}  // namespace elastor

#endif  // ELASTOR_CORE_THEORY_CLAIM_H_
