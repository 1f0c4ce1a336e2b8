#include "core/cuda/launch.h"
#include "core/cuda/math.h"
#include "core/kernels/cuda/elementwise.h"

namespace elastor::cuda {
namespace {

constexpr int kThreads = 256;

// A thread: one place.
__global__ void __launch_bounds__(kThreads)
    BceKernel(int64_t rows, const float* logits, const float* labels, const float* weights,
              const float* inverse_weight, const int32_t* place_row, double* losses,
              float* dlogits) {
  const int64_t place = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (place >= rows) return;
  const int64_t row = place_row[place];
  if (row < 0) {
    losses[place] = 0;
    if (dlogits != nullptr) dlogits[place] = 0;
    return;
  }
  const float z = logits[place];
  const float label = labels[row];
  const double logit = z;
  const double loss =
      (logit < 0 ? 0.0 : logit) - logit * label + Log1pOfUnit(Exp(-(z < 0 ? -z : z)));
  if (dlogits == nullptr) {
    losses[place] = loss;
    return;
  }
  const float weight = weights == nullptr ? 1.0f : weights[row];
  losses[place] = weight * loss;
  dlogits[place] = (Sigmoid(z) - label) * weight * *inverse_weight;
}

}  // namespace

void BceWithLogits(Stream& stream, int64_t rows, const float* logits, const float* labels,
                   const float* weights, const float* inverse_weight, const int32_t* place_row,
                   double* losses, float* dlogits) {
  if (rows == 0) return;
  Launch(stream, Blocks(rows, kThreads), kThreads, BceKernel, rows, logits, labels, weights,
         inverse_weight, place_row, losses, dlogits);
}

}  // namespace elastor::cuda
