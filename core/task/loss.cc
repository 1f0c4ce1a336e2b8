#include "core/task/loss.h"

#include "core/kernels/elementwise.h"
#include "glog/logging.h"

namespace elastor {
namespace {

template <typename T>
class BinaryCrossEntropy final : public Loss<T> {
 public:
  void Compute(const LossRows<T>& rows, double* losses, Panels<T> doutputs) const override {
    BceWithLogits<T>(rows.outputs, rows.labels, rows.weights, rows.scale, losses, doutputs);
  }
};

}  // namespace

template <typename T>
std::unique_ptr<Loss<T>> MakeLoss(const Task& task) {
  switch (task.kind) {
    case Task::Kind::kBinary:
      return std::make_unique<BinaryCrossEntropy<T>>();
  }
  LOG(FATAL) << "no such task";
}

template std::unique_ptr<Loss<float>> MakeLoss(const Task&);
template std::unique_ptr<Loss<double>> MakeLoss(const Task&);

}  // namespace elastor
