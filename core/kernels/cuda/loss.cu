#include "core/base/canonical_math.h"
#include "core/cuda/launch.h"
#include "core/cuda/math.h"
#include "core/kernels/cuda/elementwise.h"

namespace elastor::cuda {
namespace {

constexpr int kLossThreads = 256;

// A thread: one device row.
__global__ void __launch_bounds__(kLossThreads)
    BceKernel(int64_t rows, const BceLabel column, const float* logits, const float* labels,
              const float* weights, const float* inverse_weight, const int32_t* local_row,
              double* losses, float* dlogits) {
  const int64_t device_row = static_cast<int64_t>(blockIdx.x) * kLossThreads + threadIdx.x;
  if (device_row >= rows) return;
  const int64_t at = device_row * column.outputs + column.output;
  double* const row_loss =
      losses == nullptr ? nullptr : losses + device_row * column.losses + column.loss;
  const int64_t row = local_row[device_row];
  const float label = row < 0 ? 0.0f : labels[row * column.columns + column.column];
  if (row < 0 || label != label) {
    if (row_loss != nullptr) *row_loss = 0;
    if (dlogits != nullptr) dlogits[at] = 0;
    return;
  }
  const float z = logits[at];
  const double logit = z;
  const double loss =
      (logit < 0 ? 0.0 : logit) - logit * label + Log1pOfUnit(Exp(-(z < 0 ? -z : z)));
  if (dlogits == nullptr) {
    *row_loss = loss;
    return;
  }
  const float weight = weights == nullptr ? 1.0f : weights[row];
  if (row_loss != nullptr) *row_loss = weight * (column.weight * loss);
  dlogits[at] =
      (Sigmoid(z) - label) * weight * (*inverse_weight * static_cast<float>(column.weight));
}

// A thread: one device row.
__global__ void __launch_bounds__(kLossThreads)
    StudentKernel(int64_t rows, const BceLabel column, int64_t student, const float* logits,
                  const float* labels, const float* weights, const float* inverse_weight,
                  const int32_t* local_row, float* dlogits) {
  const int64_t device_row = static_cast<int64_t>(blockIdx.x) * kLossThreads + threadIdx.x;
  if (device_row >= rows) return;
  const float* const z = logits + device_row * column.outputs;
  float* const gradient = dlogits + device_row * column.outputs + student;
  const int64_t row = local_row[device_row];
  const float label = row < 0 ? 0.0f : labels[row * column.columns + column.column];
  *gradient = 0;
  if (row < 0 || label != label) return;
  const float weight = weights == nullptr ? 1.0f : weights[row];
  *gradient = (Sigmoid(z[student]) - Sigmoid(z[column.output])) * weight *
              (*inverse_weight * static_cast<float>(column.weight));
}

// A thread: one label of a device row.
__global__ void __launch_bounds__(kLossThreads)
    CrossEntropyKernel(int64_t rows, const ClassLabels task, const float* logits,
                       const float* labels, const float* weights, const float* inverse_weight,
                       const int32_t* local_row, double* losses, float* dlogits) {
  const int64_t at = static_cast<int64_t>(blockIdx.x) * kLossThreads + threadIdx.x;
  if (at >= rows * task.count) return;
  const int64_t row = local_row[at / task.count];
  const float* const of_row = labels + row * task.count;
  const float label = row < 0 ? 0.0f : of_row[at % task.count];
  float* const gradient = dlogits == nullptr ? nullptr : dlogits + at * task.classes;
  if (row < 0 || label != label) {
    losses[at] = 0;
    for (int64_t c = 0; gradient != nullptr && c < task.classes; ++c) gradient[c] = 0;
    return;
  }
  const float* const z = logits + at * task.classes;
  double most = z[0];
  for (int64_t c = 1; c < task.classes; ++c) most = z[c] > most ? z[c] : most;
  double sum = 0;
  for (int64_t c = 0; c < task.classes; ++c) sum += CanonicalExp(z[c] - most);
  const int64_t of_label = static_cast<int64_t>(label);
  const double loss = sum != sum ? sum : CanonicalLog(sum) + most - z[of_label];
  if (gradient == nullptr) {
    losses[at] = loss;
    return;
  }
  int64_t present = 0;
  for (int64_t i = 0; i < task.count; ++i) present += of_row[i] == of_row[i];
  const double share = 1 / static_cast<double>(present);
  const double weight = weights == nullptr ? 1.0f : weights[row];
  losses[at] = weight * (share * loss);
  const double inverse = 1 / sum;
  const double factor = weight * (share * *inverse_weight);
  for (int64_t c = 0; c < task.classes; ++c) {
    const double target = c == of_label ? 1 : 0;
    gradient[c] = static_cast<float>((CanonicalExp(z[c] - most) * inverse - target) * factor);
  }
}

}  // namespace

void SoftmaxCrossEntropy(Stream& stream, int64_t rows, const ClassLabels& task, const float* logits,
                         const float* labels, const float* weights, const float* inverse_weight,
                         const int32_t* local_row, double* losses, float* dlogits) {
  if (rows == 0) return;
  Launch(stream, Blocks(rows * task.count, kLossThreads), kLossThreads, CrossEntropyKernel, rows,
         task, logits, labels, weights, inverse_weight, local_row, losses, dlogits);
}

void BceWithLogits(Stream& stream, int64_t rows, const BceLabel& label, const float* logits,
                   const float* labels, const float* weights, const float* inverse_weight,
                   const int32_t* local_row, double* losses, float* dlogits) {
  if (rows == 0) return;
  Launch(stream, Blocks(rows, kLossThreads), kLossThreads, BceKernel, rows, label, logits, labels,
         weights, inverse_weight, local_row, losses, dlogits);
}

void StudentGradient(Stream& stream, int64_t rows, const BceLabel& label, int64_t student,
                     const float* logits, const float* labels, const float* weights,
                     const float* inverse_weight, const int32_t* local_row, float* dlogits) {
  if (rows == 0) return;
  Launch(stream, Blocks(rows, kLossThreads), kLossThreads, StudentKernel, rows, label, student,
         logits, labels, weights, inverse_weight, local_row, dlogits);
}

}  // namespace elastor::cuda
