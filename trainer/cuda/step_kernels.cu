#include "core/cuda/exact_sum_device.h"
#include "core/cuda/launch.h"
#include "trainer/cuda/step_kernels.h"

namespace elastor::cuda {
namespace {

constexpr double kNormEpsilon = 1e-6;  // PyTorch's clip_grad_norm_

__global__ void BeginKernel(int64_t requests, StepSums* sums) {
  int64_t* const words = reinterpret_cast<int64_t*>(sums);
  for (int64_t i = threadIdx.x; i < kStepSumWords; i += blockDim.x) words[i] = 0;
  __syncthreads();
  if (threadIdx.x < kRequestBits) sums->requests[threadIdx.x] = (requests >> threadIdx.x) & 1;
}

__device__ bool IsFinite(double value) { return value - value == 0; }

// One thread: four sums of eleven words.
__global__ void FinishKernel(const StepSums* sums, double clip_norm, StepOutcome* outcome,
                             UpdateGate* gate) {
  outcome->loss = ExactSumValue(sums->loss.words);
  outcome->squared_norm = ExactSumValue(sums->squared_norm.words);
  outcome->penalty = ExactSumValue(sums->penalty.words);
  outcome->squared_rows = ExactSumValue(sums->squared_rows.words);
  for (int i = 0; i < kRequestBits; ++i) outcome->requests[i] = sums->requests[i];
  const double norm = sqrt(outcome->squared_norm);
  double scale = 1;
  if (clip_norm > 0 && clip_norm < norm + kNormEpsilon) scale = clip_norm / (norm + kNormEpsilon);
  gate->scale = static_cast<float>(scale);
  gate->proceed = IsFinite(outcome->loss) && IsFinite(norm) ? 1 : 0;
}

}  // namespace

void BeginSums(Stream& stream, int64_t requests, StepSums* sums) {
  Launch(stream, 1, 64, BeginKernel, requests, sums);
}

void FinishSums(Stream& stream, const StepSums* sums, double clip_norm, StepOutcome* outcome,
                UpdateGate* gate) {
  Launch(stream, 1, 1, FinishKernel, sums, clip_norm, outcome, gate);
}

}  // namespace elastor::cuda
