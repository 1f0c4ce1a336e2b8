#ifndef ELASTOR_CORE_TASK_LOSS_H_
#define ELASTOR_CORE_TASK_LOSS_H_

#include <memory>

#include "core/task/task.h"
#include "core/tensor/panels.h"

namespace elastor {

// Rows of a pass and the inputs of their loss.
template <typename T>
struct LossRows {
  Panels<const T> outputs;         // [rows, task.graph_outputs()]
  const float* labels = nullptr;   // [rows][task.labels()]
  const float* weights = nullptr;  // [rows]; null: all 1
  T scale = 1;                     // factor of the gradients
  // Factors of the first outputs' gradients (BranchFactors), [task.batch_losses()]; null: all 1.
  const double* factors = nullptr;
};

// The loss of a task on the CPU.
template <typename T>
class Loss {
 public:
  virtual ~Loss() = default;
  // losses: [rows][task.losses()], in double and without weights; 0 where the label is missing.
  // doutputs = d(the row's loss)/doutputs * weight * scale, of outputs' shape, with the labels'
  // weights; 0 in padded rows.
  virtual void Compute(const LossRows<T>& rows, double* losses, Panels<T> doutputs) const = 0;
  // losses: [rows][task.batch_losses()], without weights; 0 where the label is missing. What it
  // leaves in doutputs has no meaning.
  virtual void BatchLosses(const LossRows<T>&, double* /*losses*/, Panels<T> /*doutputs*/) const {}
};

template <typename T>
std::unique_ptr<Loss<T>> MakeLoss(const Task& task);

}  // namespace elastor

#endif  // ELASTOR_CORE_TASK_LOSS_H_
