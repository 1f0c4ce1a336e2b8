#ifndef ELASTOR_TRAINER_STEP_DENSE_SLOTS_H_
#define ELASTOR_TRAINER_STEP_DENSE_SLOTS_H_

#include <cstdint>

#include "embedding/sparse_optimizer.h"

namespace elastor {

// The slots of a dense optimizer as checkpoints see them, on whatever device they are: those of the
// slices this rank owns, in host memory.
template <typename T>
class DenseSlots {
 public:
  virtual ~DenseSlots() = default;

  // Slots of a parameter, one after another in checkpoints (SlotNames in state_view.h): 0 (SGD), 1
  // (Adagrad) or 2 (Adam). Copy and set one of them for the slice of `bucket`, elements in the
  // slice's order; reset: the values of a new run.
  virtual SparseOptimizerKind kind() const = 0;
  virtual int64_t slots() const = 0;
  virtual void CopySlot(int64_t slot, int bucket, T* values) const = 0;
  virtual void SetSlot(int64_t slot, int bucket, const T* values) = 0;
  virtual void ResetSlots() = 0;
};

}  // namespace elastor

#endif  // ELASTOR_TRAINER_STEP_DENSE_SLOTS_H_
