#include "core/cuda/launch.h"
#include "core/cuda/math.h"
#include "core/kernels/cuda/elementwise.h"

namespace elastor::cuda {
namespace {

constexpr int kThreads = 256;

// A thread: one device row.
__global__ void __launch_bounds__(kThreads)
    BceKernel(int64_t rows, const BceLabel column, const float* logits, const float* labels,
              const float* weights, const float* inverse_weight, const int32_t* local_row,
              double* losses, float* dlogits) {
  const int64_t device_row = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (device_row >= rows) return;
  const int64_t at = device_row * column.outputs + column.output;
  const int64_t row = local_row[device_row];
  const float label = row < 0 ? 0.0f : labels[row * column.columns + column.column];
  if (row < 0 || label != label) {
    losses[at] = 0;
    if (dlogits != nullptr) dlogits[at] = 0;
    return;
  }
  const float z = logits[at];
  const double logit = z;
  const double loss =
      (logit < 0 ? 0.0 : logit) - logit * label + Log1pOfUnit(Exp(-(z < 0 ? -z : z)));
  if (dlogits == nullptr) {
    losses[at] = loss;
    return;
  }
  const float weight = weights == nullptr ? 1.0f : weights[row];
  losses[at] = weight * (column.weight * loss);
  dlogits[at] =
      (Sigmoid(z) - label) * weight * (*inverse_weight * static_cast<float>(column.weight));
}

}  // namespace

void BceWithLogits(Stream& stream, int64_t rows, const BceLabel& label, const float* logits,
                   const float* labels, const float* weights, const float* inverse_weight,
                   const int32_t* local_row, double* losses, float* dlogits) {
  if (rows == 0) return;
  Launch(stream, Blocks(rows, kThreads), kThreads, BceKernel, rows, label, logits, labels, weights,
         inverse_weight, local_row, losses, dlogits);
}

}  // namespace elastor::cuda
