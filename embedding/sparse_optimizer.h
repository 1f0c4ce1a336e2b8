#ifndef ELASTOR_EMBEDDING_SPARSE_OPTIMIZER_H_
#define ELASTOR_EMBEDDING_SPARSE_OPTIMIZER_H_

#include "core/optimizer/optimizer_options.h"

namespace elastor {

struct SparseOptimizerOptions {
  OptimizerOptions rule;
  double l2 = 0;  // lambda of lambda/2 |w|^2
};

}  // namespace elastor

#endif  // ELASTOR_EMBEDDING_SPARSE_OPTIMIZER_H_
