#ifndef ELASTOR_CORE_OPTIMIZER_OPTIMIZER_OPTIONS_H_
#define ELASTOR_CORE_OPTIMIZER_OPTIMIZER_OPTIONS_H_

#include <cstdint>

namespace elastor {

// An optimizer of rows of embedding tables, or of blocks of the dense parameters. For blocks,
// kRowWiseAdagrad and kLazyAdam have no meaning.
enum class OptimizerKind {
  kSgd,             // w -= lr g
  kAdagrad,         // a += g^2 (per element); w -= lr g / (sqrt(a) + eps)
  kRowWiseAdagrad,  // a += mean(g^2) (per row); w -= lr g / (sqrt(a) + eps)
  kLazyAdam,        // Adam on touched rows only; bias corrected by the global step
  kDenseAdam,       // Adam on every row at every step, what PyTorch's dense Adam does
};

// Formulas in docs/reference/training.md. The gradient g already contains lambda * w and the
// clipping scale.
struct OptimizerOptions {
  OptimizerKind kind = OptimizerKind::kLazyAdam;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double initial_accumulator = 0;  // Adagrad
};

// Returns the number of slot elements of a row of `width` elements: 0, width, 1, 2 * width, 2 *
// width.
int64_t SlotElements(OptimizerKind kind, int64_t width);

// Returns the value of every slot element of a new run.
double InitialSlot(const OptimizerOptions& options);

}  // namespace elastor

#endif  // ELASTOR_CORE_OPTIMIZER_OPTIMIZER_OPTIONS_H_
