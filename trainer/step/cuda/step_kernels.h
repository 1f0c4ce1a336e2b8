#ifndef ELASTOR_TRAINER_STEP_CUDA_STEP_KERNELS_H_
#define ELASTOR_TRAINER_STEP_CUDA_STEP_KERNELS_H_

#include <cstdint>

#include "core/cuda/exact_sum.h"
#include "core/cuda/runtime.h"
#include "embedding/cuda/update_gate.h"
#include "trainer/step/step.h"

namespace elastor::cuda {

// Sums over all ranks, made once per step. They are integers, so that an all-reduce gives the same
// bits anywhere.
struct StepSums {
  DeviceExactSum loss;
  DeviceExactSum squared_norm;
  DeviceExactSum penalty;
  DeviceExactSum squared_rows;  // sum w^2 of embedding rows
  int64_t requests[kRequestBits];
};
inline constexpr int64_t kStepSumWords = sizeof(StepSums) / sizeof(int64_t);
static_assert(sizeof(StepSums) == kStepSumWords * sizeof(int64_t));

// Values of the sums as floating-point numbers. A value is NaN if an addend was not finite.
struct StepOutcome {
  double loss;  // sum over all rows, not yet divided by their weight
  double squared_norm;
  double penalty;
  double squared_rows;
  int64_t requests[kRequestBits];
};

// Sets all sums to zero, except that requests[i] becomes bit i of `requests`.
void BeginSums(Stream& stream, int64_t requests, StepSums* sums);

// Turns sums over all ranks of losses (Task::batch_losses, [count]) into the scales of the outputs'
// gradients: inverse_weight[0] * BranchFactors of the sums / weight[0]. All pointers are to device
// memory.
void FinishBatchLosses(Stream& stream, const DeviceExactSum* sums, int64_t count,
                       const double* weight, const float* inverse_weight, float* scales);

// Turns the sums over all ranks into the outcome and the gate of the updates. The gate's scale is
// min(1, clip_norm / (norm + 1e-6)), or 1 without clipping (clip_norm 0); it is closed when loss or
// norm is not finite.
void FinishSums(Stream& stream, const StepSums* sums, double clip_norm, StepOutcome* outcome,
                UpdateGate* gate);

}  // namespace elastor::cuda

#endif  // ELASTOR_TRAINER_STEP_CUDA_STEP_KERNELS_H_
