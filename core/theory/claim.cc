#include "core/theory/claim.h"

#include <cmath>

namespace elastor {

bool Holds(const Claim& claim, const Finding& finding) {
  const double excess = finding.measured - finding.bound;
  const double slack = kClaimTolerance * std::abs(finding.bound);
  switch (claim.relation) {
    case Relation::kAtLeast:
      return excess >= -slack;
    case Relation::kAtMost:
      return excess <= slack;
    case Relation::kAbove:
      return excess > slack;
    case Relation::kBelow:
      return excess < -slack;
    case Relation::kEqual:
      return std::abs(excess) <= slack;
  }
  return false;
}

}  // namespace elastor
