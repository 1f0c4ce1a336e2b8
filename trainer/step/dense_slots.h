#ifndef ELASTOR_TRAINER_STEP_DENSE_SLOTS_H_
#define ELASTOR_TRAINER_STEP_DENSE_SLOTS_H_

#include <cstdint>

#include "core/optimizer/optimizer_options.h"

namespace elastor {

// Gives checkpoints access to a dense optimizer's slots, on any device: reads and writes, in host
// memory, the slots of the slices that this rank owns.
template <typename T>
class DenseSlots {
 public:
  virtual ~DenseSlots() = default;

  // slots() is the number of slots per parameter: 0 (SGD), 1 (Adagrad) or 2 (Adam), in the order of
  // SlotNames (state_view.h). CopySlot and SetSlot read and write one slot of the slice of
  // `bucket`, in the slice's order. ResetSlots sets the values of a new run.
  virtual OptimizerKind kind() const = 0;
  virtual int64_t slots() const = 0;
  virtual void CopySlot(int64_t slot, int bucket, T* values) const = 0;
  virtual void SetSlot(int64_t slot, int bucket, const T* values) = 0;
  virtual void ResetSlots() = 0;
};

}  // namespace elastor

#endif  // ELASTOR_TRAINER_STEP_DENSE_SLOTS_H_
