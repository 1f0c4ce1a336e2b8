#include "core/base/log.h"
#include "core/cuda/exact_sum_device.h"
#include "core/cuda/launch.h"
#include "core/task/branch_factors.h"
#include "trainer/step/cuda/step_kernels.h"

namespace elastor::cuda {
namespace {

constexpr double kNormEpsilon = 1e-6;  // PyTorch's clip_grad_norm_
constexpr int kExactSums = 4;          // of StepSums
constexpr int64_t kMostBatchLosses = 8;

__global__ void BeginKernel(int64_t requests, StepSums* sums) {
  int64_t* const words = reinterpret_cast<int64_t*>(sums);
  for (int64_t i = threadIdx.x; i < kStepSumWords; i += blockDim.x) words[i] = 0;
  __syncthreads();
  if (threadIdx.x < kRequestBits) sums->requests[threadIdx.x] = (requests >> threadIdx.x) & 1;
}

__device__ bool IsFinite(double value) { return value - value == 0; }

// One block: a thread a sum, one a request; thread 0 the gate.
__global__ void __launch_bounds__(kWarp)
    FinishKernel(const StepSums* sums, double clip_norm, StepOutcome* outcome, UpdateGate* gate) {
  __shared__ double values[kExactSums];
  const int i = static_cast<int>(threadIdx.x);
  if (i < kExactSums) {
    const DeviceExactSum* const all[kExactSums] = {&sums->loss, &sums->squared_norm, &sums->penalty,
                                                   &sums->squared_rows};
    values[i] = ExactSumValue(all[i]->words);
  } else if (i < kExactSums + kRequestBits) {
    outcome->requests[i - kExactSums] = sums->requests[i - kExactSums];
  }
  __syncthreads();
  if (i != 0) return;
  outcome->loss = values[0];
  outcome->squared_norm = values[1];
  outcome->penalty = values[2];
  outcome->squared_rows = values[3];
  const double norm = sqrt(values[1]);
  double scale = 1;
  if (clip_norm > 0 && clip_norm < norm + kNormEpsilon) scale = clip_norm / (norm + kNormEpsilon);
  gate->scale = static_cast<float>(scale);
  gate->proceed = IsFinite(values[0]) && IsFinite(norm) ? 1 : 0;
}

// One thread.
__global__ void BatchLossesKernel(const DeviceExactSum* sums, int64_t count, const double* weight,
                                  const float* inverse_weight, float* scales) {
  double means[kMostBatchLosses], factors[kMostBatchLosses];
  for (int64_t i = 0; i < count; ++i) {
    means[i] = *weight == 0 ? 0 : ExactSumValue(sums[i].words) / *weight;
  }
  BranchFactors(means, count - 1, factors);
  for (int64_t i = 0; i < count; ++i) {
    scales[i] = *inverse_weight * static_cast<float>(factors[i]);
  }
}

}  // namespace

void FinishBatchLosses(Stream& stream, const DeviceExactSum* sums, int64_t count,
                       const double* weight, const float* inverse_weight, float* scales) {
  CHECK_LE(count, kMostBatchLosses);
  Launch(stream, 1, 1, BatchLossesKernel, sums, count, weight, inverse_weight, scales);
}

void BeginSums(Stream& stream, int64_t requests, StepSums* sums) {
  Launch(stream, 1, 64, BeginKernel, requests, sums);
}

void FinishSums(Stream& stream, const StepSums* sums, double clip_norm, StepOutcome* outcome,
                UpdateGate* gate) {
  Launch(stream, 1, kWarp, FinishKernel, sums, clip_norm, outcome, gate);
}

}  // namespace elastor::cuda
