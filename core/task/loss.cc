#include "core/task/loss.h"

#include <vector>

#include "core/base/log.h"
#include "core/kernels/elementwise.h"

namespace elastor {
namespace {

template <typename T>
class BinaryCrossEntropy final : public Loss<T> {
 public:
  explicit BinaryCrossEntropy(const Task& task) : task_(task) {
    CHECK(task.students + task.branches == 0 || task.outputs() == 1);
  }
  void Compute(const LossRows<T>& rows, double* losses, Panels<T> doutputs) const override {
    for (int64_t i = 0; i < task_.outputs(); ++i) {
      const Task::Label& label = task_.learned[i];
      const Strided<const float> labels = {rows.labels + label.column, task_.labels()};
      BceWithLogits<T>(rows.outputs.Slice(i, 1), labels, rows.weights, Scale(rows, label, i),
                       {losses + i, task_.outputs()}, doutputs.Slice(i, 1));
    }
    for (int64_t s = 1; s <= task_.branches; ++s) {
      BceWithLogits<T>(rows.outputs.Slice(s, 1), FirstLabels(rows), rows.weights,
                       Scale(rows, task_.learned[0], s), /*loss=*/{}, doutputs.Slice(s, 1));
    }
    for (int64_t s = 1; s <= task_.students; ++s) {
      StudentGradient<T>(rows.outputs.Slice(s, 1), rows.outputs.Slice(0, 1), FirstLabels(rows),
                         rows.weights, Scale(rows, task_.learned[0], s), doutputs.Slice(s, 1));
    }
  }
  void BatchLosses(const LossRows<T>& rows, double* losses, Panels<T> doutputs) const override {
    for (int64_t i = 0; i < task_.batch_losses(); ++i) {
      BceWithLogits<T>(rows.outputs.Slice(i, 1), FirstLabels(rows), rows.weights, rows.scale,
                       {losses + i, task_.batch_losses()}, doutputs.Slice(i, 1));
    }
  }

 private:
  Strided<const float> FirstLabels(const LossRows<T>& rows) const {
    return {rows.labels + task_.learned[0].column, task_.labels()};
  }
  // The factor of the gradients of an output that learns `label`.
  static T Scale(const LossRows<T>& rows, const Task::Label& label, int64_t output) {
    const T scale = rows.scale * static_cast<T>(label.weight);
    return rows.factors == nullptr ? scale : scale * static_cast<T>(rows.factors[output]);
  }

  const Task task_;
};

template <typename T>
class ClassCrossEntropy final : public Loss<T> {
 public:
  explicit ClassCrossEntropy(const Task& task) : task_(task) {}
  void Compute(const LossRows<T>& rows, double* losses, Panels<T> doutputs) const override {
    const int64_t classes = task_.outputs_per_label();
    std::vector<double> scales(rows.outputs.rows);
    for (size_t row = 0; row < scales.size(); ++row) {
      scales[row] =
          task_.RowShare(rows.labels + row * task_.labels()) * static_cast<double>(rows.scale);
    }
    for (int64_t i = 0; i < task_.losses(); ++i) {
      const Strided<const float> labels = {rows.labels + task_.learned[i].column, task_.labels()};
      SoftmaxCrossEntropy<T>(rows.outputs.Slice(i * classes, classes), labels, rows.weights,
                             scales.data(), {losses + i, task_.losses()},
                             doutputs.Slice(i * classes, classes));
    }
  }

 private:
  const Task task_;
};

}  // namespace

template <typename T>
std::unique_ptr<Loss<T>> MakeLoss(const Task& task) {
  switch (task.kind) {
    case Task::Kind::kBinary:
      return std::make_unique<BinaryCrossEntropy<T>>(task);
    case Task::Kind::kClasses:
      return std::make_unique<ClassCrossEntropy<T>>(task);
  }
  LOG(FATAL) << "no such task";
}

template std::unique_ptr<Loss<float>> MakeLoss(const Task&);
template std::unique_ptr<Loss<double>> MakeLoss(const Task&);

}  // namespace elastor
