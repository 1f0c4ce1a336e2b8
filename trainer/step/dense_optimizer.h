#ifndef ELASTOR_TRAINER_STEP_DENSE_OPTIMIZER_H_
#define ELASTOR_TRAINER_STEP_DENSE_OPTIMIZER_H_

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/exact_sum.h"
#include "core/base/leaves.h"
#include "core/base/thread_pool.h"
#include "core/parameters/parameter_layout.h"
#include "trainer/step/dense_slots.h"
#include "trainer/step/step_options.h"

namespace elastor {

// The optimizer of the dense parameters, on the slices that this rank owns; slots exist only there.
// The formulas are PyTorch's (docs/reference/training.md). In a step the caller fills gradient()
// with the summed gradients, then calls AddL2 and Update. Statistics of the layout move towards
// their "gradient", the batch's value, instead. They have no learning rate, penalty, scale or
// slots, and do not count in the norm.
template <typename T>
class DenseOptimizer final : public DenseSlots<T> {
 public:
  // slices: this rank's slices, one per bucket, in order; each consists of whole blocks of
  // kParameterBlock. pool outlives the object.
  DenseOptimizer(const DenseOptimizerOptions& options, const ParameterLayout& layout,
                 std::span<const Range> slices, ThreadPool* pool);

  // Returns the gradient of slice `bucket`, from the slice's first element on.
  T* gradient(int bucket) { return gradient_.data() + first_block_[bucket] * kParameterBlock; }

  // Adds the L2 term: g += lambda w. Adds sum g^2 to *squared_norm and sum lambda/2 w^2 to
  // *penalty, block by block.
  void AddL2(const T* weights, ExactSum* squared_norm, ExactSum* penalty);

  // Updates this rank's slices of the flat array with gradient scale * g; step counts from 1.
  void Update(double scale, double learning_rate, int64_t step, T* weights);

  OptimizerKind kind() const override { return options_.rule.kind; }
  int64_t slots() const override { return slot_elements_ / kParameterBlock; }
  void CopySlot(int64_t slot, int bucket, T* values) const override;
  void SetSlot(int64_t slot, int bucket, const T* values) override;
  void ResetSlots() override;

 private:
  // A run of one owned block that belongs to one parameter with lambda > 0.
  struct Decayed {
    int64_t offset;  // first element, relative to the block
    int64_t size;
    T lambda;
  };
  // One whole block of an owned slice. The gradient and slots of block i begin at i times their
  // block size.
  struct Block {
    int64_t global;  // index of its first element in the flat array
    std::vector<Decayed> decayed;
    std::vector<Range> statistics;  // running statistics, as ranges of elements in the block
    std::vector<Range> shrinking;   // elements with decoupled decay, likewise
  };

  // Returns the squared norm of a block's gradient without statistics.
  static double SquaredNorm(const Block& block, const T* gradient);
  // Moves a block's statistics and clears their gradient, so that the optimizer's rule does not
  // change them.
  static void MoveStatistics(const Block& block, T* gradient, T* weights);
  // Applies decoupled decay: multiplies the decayed weights by `kept`.
  static void Shrink(const Block& block, T kept, T* weights);

  DenseOptimizerOptions options_;
  ThreadPool* pool_;
  int64_t slot_elements_;  // number of slot values per block
  std::vector<Block> blocks_;
  std::vector<int64_t> first_block_;  // first block of every bucket's slice, then the end
  std::vector<T> gradient_;
  std::vector<T> slots_;
};

}  // namespace elastor

#endif  // ELASTOR_TRAINER_STEP_DENSE_OPTIMIZER_H_
