#ifndef ELASTOR_CORE_TASK_BRANCH_FACTORS_H_
#define ELASTOR_CORE_TASK_BRANCH_FACTORS_H_

#include <cstdint>

#include "core/base/build_config.h"

namespace elastor {

// Derivatives of L + sum_s max(0, L_s - L) L_s by L and by each L_s (Task::branches):
//   factors[0] = 1 - sum of L_s over the branches with L_s > L,
//   factors[s] = 2 L_s - L with L_s > L, else 0.
// means: [1 + branches], L and the L_s, means over the batch. A mean that is not a number makes its
// factors none.
ELASTOR_HOST_DEVICE inline void BranchFactors(const double* means, int64_t branches,
                                              double* factors) {
  factors[0] = 1;
  for (int64_t s = 1; s <= branches; ++s) {
    factors[s] = 0;
    if (means[s] <= means[0]) continue;
    factors[0] -= means[s];
    factors[s] = 2 * means[s] - means[0];
  }
}

}  // namespace elastor

#endif  // ELASTOR_CORE_TASK_BRANCH_FACTORS_H_
