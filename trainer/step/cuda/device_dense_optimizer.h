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

// DenseOptimizer (trainer/step/dense_optimizer.h) on the device. One kernel per pass handles all
// owned slices of all parameters. Sums of squares are taken per block of kParameterBlock elements
// in a fixed order: thread i of 256 sums elements i, i + 256, ..., then lanes are added by halves,
// then warps in order.
class DeviceDenseOptimizer final : public DenseSlots<float> {
 public:
  // slices: the slices that this rank owns, one per bucket, in order; each consists of whole
  // blocks. stream outlives the object.
  DeviceDenseOptimizer(const DenseOptimizerOptions& options, const ParameterLayout& layout,
                       std::span<const Range> slices, Stream* stream);

  // Returns the gradient of slice `bucket`, from the slice's first element on.
  float* gradient(int bucket) const {
    return gradient_.data() + first_block_[bucket] * kParameterBlock;
  }

  // These do what the functions of DenseOptimizer do. weights: the flat array on the device.
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
  int64_t slots_;                     // number of slots per parameter
  std::vector<int64_t> first_block_;  // first block of every bucket's slice, then the end
  Buffer<int64_t> block_begin_;       // first element of every owned block, in the flat array
  Buffer<uint8_t> decay_;             // kind of every owned element: Decay, or kStatisticElement
  Buffer<float> gradient_;
  Buffer<float> slot_values_;  // [blocks][slots][kParameterBlock]
  Buffer<double> block_sums_;  // [2][blocks]: squared norm, penalty
};

}  // namespace elastor::cuda

#endif  // ELASTOR_TRAINER_STEP_CUDA_DEVICE_DENSE_OPTIMIZER_H_
