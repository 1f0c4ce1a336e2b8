#ifndef ELASTOR_CORE_OPS_BATCH_NORM_H_
#define ELASTOR_CORE_OPS_BATCH_NORM_H_

#include "core/ops/op.h"

namespace elastor {

inline constexpr double kBatchNormEpsilon = 1e-5;  // PyTorch's default

// Ghost batch normalisation (Hoffer, Hubara & Soudry 2017): y = (x - mean) / sqrt(var + 1e-5) *
// gain + bias for every feature, in training with the mean and biased variance of the pass's rows,
// which must be a whole leaf; in evaluation with running values.
//
// Parameters: gain, bias, and the statistics running_mean and running_variance, all [features].
// As the statistics' gradients, Backward delivers the leaf's share of the batch's rows times the
// leaf's mean and unbiased variance (for a single row the biased variance, 0), so that the sum over
// leaves is the mean weighted by rows. Sums over rows: core/kernels/batch_norm.h.
struct BatchNormOp : OpBase {
  static constexpr const char* kName = "batch norm";
  Shape OutputShape(std::span<const Shape> inputs) const { return inputs[0]; }
  bool needs_whole_leaf() const { return true; }
};
ELASTOR_DECLARE_KERNELS(BatchNormOp)

}  // namespace elastor

#endif  // ELASTOR_CORE_OPS_BATCH_NORM_H_
