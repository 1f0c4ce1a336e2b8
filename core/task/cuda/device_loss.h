#ifndef ELASTOR_CORE_TASK_CUDA_DEVICE_LOSS_H_
#define ELASTOR_CORE_TASK_CUDA_DEVICE_LOSS_H_

#include <cstdint>
#include <memory>

#include "core/cuda/runtime.h"
#include "core/task/task.h"

namespace elastor::cuda {

// Rows of a pass on the device, padding included, and the inputs of their loss. All pointers are to
// device memory.
struct DeviceLossRows {
  int64_t rows = 0;
  const float* outputs = nullptr;  // [rows][task.graph_outputs()]
  // Arrays indexed by local row of the batch: labels, [..][task.labels()], and weights, one a row
  // (null: all 1).
  const float* labels = nullptr;
  const float* weights = nullptr;
  const float* inverse_weight = nullptr;  // a scalar: 1 / weight of the batch
  const int32_t* local_row = nullptr;     // [rows]: the local row; negative: padding
  // Device, [task.batch_losses()]: inverse_weight times the factor of the first outputs' gradients
  // (BranchFactors); null: inverse_weight for all.
  const float* output_scales = nullptr;
};

// The loss of a task on a device.
class DeviceLoss {
 public:
  virtual ~DeviceLoss() = default;
  // Enqueues losses [rows][task.losses()], in double, and doutputs = dloss/doutputs * weight *
  // inverse_weight, with the labels' weights; both are 0 in padding and where the label is missing.
  // If doutputs is given, the losses are weighted by row and label; if it is null (an evaluation),
  // they are not weighted.
  virtual void Enqueue(Stream& stream, const DeviceLossRows& rows, double* losses,
                       float* doutputs) const = 0;
  // Enqueues losses [task.batch_losses()][rows], in double and weighted by row; 0 in padding and
  // where the label is missing. What it leaves in doutputs has no meaning.
  virtual void EnqueueBatchLosses(Stream&, const DeviceLossRows&, double* /*losses*/,
                                  float* /*doutputs*/) const {}
};

std::unique_ptr<DeviceLoss> MakeDeviceLoss(const Task& task);

}  // namespace elastor::cuda

#endif  // ELASTOR_CORE_TASK_CUDA_DEVICE_LOSS_H_
