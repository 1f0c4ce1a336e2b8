#ifndef ELASTOR_EMBEDDING_SPARSE_OPTIMIZER_H_
#define ELASTOR_EMBEDDING_SPARSE_OPTIMIZER_H_

#include <cstdint>

namespace elastor {

enum class SparseOptimizerKind {
  kSgd,             // w -= lr g
  kAdagrad,         // a += g^2 (per element); w -= lr g / (sqrt(a) + eps)
  kRowWiseAdagrad,  // a += mean(g^2) (per row); w -= lr g / (sqrt(a) + eps)
  kLazyAdam,        // Adam on touched rows only; bias corrected by the global step
  kDenseAdam,       // Adam on every row at every step, what PyTorch's dense Adam does
};

// Formulas in docs/models.md. Gradient g already holds l2 * w and the clipping scale.
struct SparseOptimizerOptions {
  SparseOptimizerKind kind = SparseOptimizerKind::kLazyAdam;
  double l2 = 0;  // lambda of lambda/2 |w|^2
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double initial_accumulator = 0;  // Adagrad
};

// Slot elements of a row of `width`: 0, width, 1, 2 * width, 2 * width.
int64_t SlotElements(SparseOptimizerKind kind, int64_t width);

}  // namespace elastor

#endif  // ELASTOR_EMBEDDING_SPARSE_OPTIMIZER_H_
