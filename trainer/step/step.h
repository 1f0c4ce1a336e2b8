#ifndef ELASTOR_TRAINER_STEP_STEP_H_
#define ELASTOR_TRAINER_STEP_STEP_H_

#include <array>
#include <cstdint>
#include <functional>
#include <string>

#include "core/base/status.h"
#include "core/tensor/panels.h"
#include "trainer/data/batch.h"
#include "trainer/step/dense_slots.h"
#include "trainer/step/step_calls.h"

namespace elastor {

struct StepResult {
  double loss = 0;                               // the task's weighted loss
  double l2 = 0;                                 // penalty: sum of lambda/2 w^2
  double gradient_norm = 0;                      // norm before clipping
  std::array<int64_t, kRequestBits> requests{};  // how many ranks set each bit
};

// Returns the error that ends a run whose step diverged.
inline Status DivergedAtStep(int64_t step) {
  return DivergedError("step " + std::to_string(step) +
                       ": the loss or the gradient norm is not finite; lower "
                       "optimizer.learning_rate or set optimizer.clip_norm");
}

// Rows of a batch after a forward pass, in host memory.
template <typename T>
struct EvaluatedRows {
  int64_t begin = 0;  // index of the first row among the batch's local rows
  int64_t rows = 0;
  Panels<const T> logits;          // [rows, outputs of the task], those that predict
  const double* losses = nullptr;  // [rows][losses of the task], unweighted
  // Returns probe `probe` of the model's graph, [rows, tokens * width], valid during the visit.
  std::function<Panels<const T>(int probe)> probe;
};

// The training state of one rank and the step that advances it, on any device
// (docs/inside/design.md, "One step"). Every rank makes the same calls.
template <typename T>
class Step {
 public:
  virtual ~Step() = default;

  // Does one step on `batch`. `next` is the batch of the next call, whose ids may be exchanged
  // meanwhile; null without one. `requests` are this rank's bits, which travel with the loss.
  // Diverged when a loss or the gradient norm is not finite; the state is then unchanged except for
  // rows made at first touch.
  virtual StatusOr<StepResult> Run(const LocalBatch& batch, const LocalBatch* next,
                                   double learning_rate, int64_t requests) = 0;

  // Does forward passes only, without dropout. Visits each row of the batch once; visit may be
  // called on several threads at once.
  virtual Status Evaluate(const LocalBatch& batch,
                          const std::function<void(const EvaluatedRows<T>&)>& visit) = 0;

  // Number of steps done, on which the next step's random choices depend. Set it to continue a run.
  int64_t steps() const { return steps_; }
  void set_steps(int64_t steps) { steps_ = steps; }
  // Sets the steps of an earlier run whose optimizer state this one continues. Bias correction
  // counts them.
  void set_optimizer_step_offset(int64_t offset) { optimizer_step_offset_ = offset; }

  // Brings the weights to their state after the last Run, which may leave what other ranks own to
  // the next. Collective.
  virtual Status Settle() = 0;
  // Returns the flat array of the current dense weights in host memory. Call WeightsChanged after
  // writing to it. REQUIRES: Settle or Evaluate was called after the last Run.
  virtual T* weights() = 0;
  virtual void WeightsChanged() = 0;
  virtual DenseSlots<T>* optimizer() = 0;

  const StepTimes& times() const { return times_; }

 protected:
  // Returns the number of the step that is being done, from 1, for its optimizers.
  int64_t optimizer_step() const { return optimizer_step_offset_ + steps_ + 1; }
  // Counts that step, and returns its number.
  int64_t BeginUpdate() { return optimizer_step_offset_ + ++steps_; }

  StepTimes times_;

 private:
  int64_t steps_ = 0;
  int64_t optimizer_step_offset_ = 0;
};

}  // namespace elastor

#endif  // ELASTOR_TRAINER_STEP_STEP_H_
