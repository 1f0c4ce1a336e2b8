#ifndef ELASTOR_CORE_OPTIMIZER_WITH_RULE_H_
#define ELASTOR_CORE_OPTIMIZER_WITH_RULE_H_

#include <cstdint>

#include "core/optimizer/adagrad.h"
#include "core/optimizer/adam.h"
#include "core/optimizer/optimizer_options.h"
#include "core/optimizer/row_wise_adagrad.h"
#include "core/optimizer/sgd.h"

namespace elastor {

// Calls fn with the optimizer's rule for one step: rule(width, scale, gradient, weights, slots)
// updates one row, or one block of dense parameters.
template <typename T, typename Fn>
void WithRule(const OptimizerOptions& options, double learning_rate, int64_t step, const Fn& fn) {
  switch (options.kind) {
    case OptimizerKind::kSgd:
      return fn(Sgd<T>::ForStep(options, learning_rate, step));
    case OptimizerKind::kAdagrad:
      return fn(Adagrad<T>::ForStep(options, learning_rate, step));
    case OptimizerKind::kRowWiseAdagrad:
      return fn(RowWiseAdagrad<T>::ForStep(options, learning_rate, step));
    case OptimizerKind::kLazyAdam:
    case OptimizerKind::kDenseAdam:
      return fn(Adam<T>::ForStep(options, learning_rate, step));
  }
}

}  // namespace elastor

#endif  // ELASTOR_CORE_OPTIMIZER_WITH_RULE_H_
