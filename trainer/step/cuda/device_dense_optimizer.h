#ifndef ELASTOR_TRAINER_STEP_CUDA_DEVICE_DENSE_OPTIMIZER_H_
#define ELASTOR_TRAINER_STEP_CUDA_DEVICE_DENSE_OPTIMIZER_H_

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/leaves.h"
#include "core/cuda/exact_sum.h"
#include "core/cuda/runtime.h"
#include "core/parameters/parameter_layout.h"
#include "embedding/cuda/update_gate.h"
#include "trainer/step/dense_slots.h"
#include "trainer/step/step_options.h"

namespace elastor::cuda {

// DenseOptimizer (trainer/step/dense_optimizer.h) on the device: all owned slices of all parameters
// in one kernel a pass. Sums of squares are taken per block of kParameterBlock elements in one
// order: thread i of 256 sums elements i, i + 256, ..., then lanes by halves, then warps in order.
class DeviceDenseOptimizer final : public DenseSlots<float> {
 public:
  // slices: those this rank owns, one a bucket, in order; each is whole blocks. stream outlives the
  // object.
  DeviceDenseOptimizer(const DenseOptimizerOptions& options, const ParameterLayout& layout,
                       std::span<const Range> slices, Stream* stream);

  // The gradient of slice `bucket`, from its first element.
  float* gradient(int bucket) const {
    return gradient_.data() + first_block_[bucket] * kParameterBlock;
  }

  // Do what those of DenseOptimizer do. weights: the flat array on the device.
  void AddL2(const float* weights, DeviceExactSum* squared_norm, DeviceExactSum* penalty);
  void Update(const UpdateGate* gate, double learning_rate, int64_t step, float* weights);

  OptimizerKind kind() const override { return options_.rule.kind; }
  int64_t slots() const override { return slots_; }
  void CopySlot(int64_t slot, int bucket, float* values) const override;
  void SetSlot(int64_t slot, int bucket, const float* values) override;
  void ResetSlots() override;

 private:
  int64_t blocks() const { return first_block_.back(); }

  DenseOptimizerOptions options_;
  Stream* stream_;
  int64_t slots_;                     // of a parameter
  std::vector<int64_t> first_block_;  // of every bucket's slice, and the end
  Buffer<int64_t> block_begin_;       // of every owned block, in the flat array
  Buffer<uint8_t> decay_;             // of every owned element: Decay, or kStatistic
  Buffer<float> gradient_;
  Buffer<float> slot_values_;  // block by block, slot by slot
  Buffer<double> block_sums_;  // [2][blocks]: squared norm, penalty
};

}  // namespace elastor::cuda

#endif  // ELASTOR_TRAINER_STEP_CUDA_DEVICE_DENSE_OPTIMIZER_H_
