#include "core/task/cuda/device_loss.h"

#include "core/base/log.h"
#include "core/kernels/cuda/elementwise.h"

namespace elastor::cuda {
namespace {

class DeviceBinaryCrossEntropy final : public DeviceLoss {
 public:
  explicit DeviceBinaryCrossEntropy(const Task& task) : task_(task) {}
  void Enqueue(Stream& stream, const DeviceLossRows& rows, double* losses,
               float* doutputs) const override {
    for (int64_t i = 0; i < task_.outputs(); ++i) {
      BceLabel one = LabelOf(i, i);
      one.losses = task_.losses();
      one.loss = i;
      Bce(stream, rows, one, losses, doutputs);
      if (doutputs == nullptr) continue;
      for (int64_t s = 1; s <= task_.students; ++s) {
        StudentGradient(stream, rows.rows, one, s, rows.outputs, rows.labels, rows.weights,
                        rows.inverse_weight, rows.local_row, doutputs);
      }
    }
    if (doutputs == nullptr) return;
    for (int64_t s = 1; s <= task_.branches; ++s) {
      Bce(stream, rows, LabelOf(0, s), /*losses=*/nullptr, doutputs);
    }
  }
  void EnqueueBatchLosses(Stream& stream, const DeviceLossRows& rows, double* losses,
                          float* doutputs) const override {
    for (int64_t i = 0; i < task_.batch_losses(); ++i) {
      BceLabel one = LabelOf(0, i);
      one.weight = 1;
      Bce(stream, rows, one, losses + i * rows.rows, doutputs);
    }
  }

 private:
  BceLabel LabelOf(int64_t learned, int64_t output) const {
    const Task::Label& label = task_.learned[learned];
    return {.outputs = task_.graph_outputs(),
            .output = output,
            .columns = task_.labels(),
            .column = label.column,
            .weight = label.weight};
  }
  static void Bce(Stream& stream, const DeviceLossRows& rows, const BceLabel& label, double* losses,
                  float* doutputs) {
    const float* const scale =
        rows.output_scales == nullptr ? rows.inverse_weight : rows.output_scales + label.output;
    BceWithLogits(stream, rows.rows, label, rows.outputs, rows.labels, rows.weights, scale,
                  rows.local_row, losses, doutputs);
  }

  const Task task_;
};

class DeviceClassCrossEntropy final : public DeviceLoss {
 public:
  explicit DeviceClassCrossEntropy(const Task& task) : task_(task) {}
  void Enqueue(Stream& stream, const DeviceLossRows& rows, double* losses,
               float* doutputs) const override {
    const ClassLabels labels = {.count = task_.losses(), .classes = task_.outputs_per_label()};
    SoftmaxCrossEntropy(stream, rows.rows, labels, rows.outputs, rows.labels, rows.weights,
                        rows.inverse_weight, rows.local_row, losses, doutputs);
  }

 private:
  const Task task_;
};

}  // namespace

std::unique_ptr<DeviceLoss> MakeDeviceLoss(const Task& task) {
  switch (task.kind) {
    case Task::Kind::kBinary:
      return std::make_unique<DeviceBinaryCrossEntropy>(task);
    case Task::Kind::kClasses:
      return std::make_unique<DeviceClassCrossEntropy>(task);
  }
  LOG(FATAL) << "no such task";
}

}  // namespace elastor::cuda
