#include "core/cuda/launch.h"
#include "core/cuda/math.h"
#include "core/kernels/cuda/elementwise.h"

namespace elastor::cuda {
namespace {

constexpr int kThreads = 256;

// A thread: one device_row.
__global__ void __launch_bounds__(kThreads)
    BceKernel(int64_t rows, const float* logits, const float* labels, const float* weights,
              const float* inverse_weight, const int32_t* local_row, double* losses,
              float* dlogits) {
  const int64_t device_row = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (device_row >= rows) return;
  const int64_t row = local_row[device_row];
  if (row < 0) {
    losses[device_row] = 0;
    if (dlogits != nullptr) dlogits[device_row] = 0;
    return;
  }
  const float z = logits[device_row];
  const float label = labels[row];
  const double logit = z;
  const double loss =
      (logit < 0 ? 0.0 : logit) - logit * label + Log1pOfUnit(Exp(-(z < 0 ? -z : z)));
  if (dlogits == nullptr) {
    losses[device_row] = loss;
    return;
  }
  const float weight = weights == nullptr ? 1.0f : weights[row];
  losses[device_row] = weight * loss;
  dlogits[device_row] = (Sigmoid(z) - label) * weight * *inverse_weight;
}

}  // namespace

void BceWithLogits(Stream& stream, int64_t rows, const float* logits, const float* labels,
                   const float* weights, const float* inverse_weight, const int32_t* local_row,
                   double* losses, float* dlogits) {
  if (rows == 0) return;
  Launch(stream, Blocks(rows, kThreads), kThreads, BceKernel, rows, logits, labels, weights,
         inverse_weight, local_row, losses, dlogits);
}

}  // namespace elastor::cuda
