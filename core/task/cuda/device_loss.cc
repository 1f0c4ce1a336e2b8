#include "core/task/cuda/device_loss.h"

#include "core/kernels/cuda/elementwise.h"
#include "glog/logging.h"

namespace elastor::cuda {
namespace {

class DeviceBinaryCrossEntropy final : public DeviceLoss {
 public:
  void Enqueue(Stream& stream, const DeviceLossRows& rows, double* losses,
               float* doutputs) const override {
    BceWithLogits(stream, rows.rows, rows.outputs, rows.labels, rows.weights, rows.inverse_weight,
                  rows.local_row, losses, doutputs);
  }
};

}  // namespace

std::unique_ptr<DeviceLoss> MakeDeviceLoss(const Task& task) {
  switch (task.kind) {
    case Task::Kind::kBinary:
      return std::make_unique<DeviceBinaryCrossEntropy>();
  }
  LOG(FATAL) << "no such task";
}

}  // namespace elastor::cuda
