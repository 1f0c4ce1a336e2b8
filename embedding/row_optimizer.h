#ifndef ELASTOR_EMBEDDING_ROW_OPTIMIZER_H_
#define ELASTOR_EMBEDDING_ROW_OPTIMIZER_H_

#include <cstdint>

#include "embedding/adagrad.h"
#include "embedding/adam.h"
#include "embedding/row_wise_adagrad.h"
#include "embedding/sgd.h"
#include "embedding/sparse_optimizer.h"

namespace elastor {

// Calls fn with the optimizer's rule for one step: rule(width, scale, gradient, weights, slots)
// updates one row, or one block of dense parameters.
template <typename T, typename Fn>
void WithOptimizer(const SparseOptimizerOptions& options, double learning_rate, int64_t step,
                   const Fn& fn) {
  switch (options.kind) {
    case SparseOptimizerKind::kSgd:
      return fn(Sgd<T>::ForStep(options, learning_rate, step));
    case SparseOptimizerKind::kAdagrad:
      return fn(Adagrad<T>::ForStep(options, learning_rate, step));
    case SparseOptimizerKind::kRowWiseAdagrad:
      return fn(RowWiseAdagrad<T>::ForStep(options, learning_rate, step));
    case SparseOptimizerKind::kLazyAdam:
    case SparseOptimizerKind::kDenseAdam:
      return fn(Adam<T>::ForStep(options, learning_rate, step));
  }
}

}  // namespace elastor

#endif  // ELASTOR_EMBEDDING_ROW_OPTIMIZER_H_
