#include "trainer/step/cuda/device_dense_optimizer.h"

#include <algorithm>

#include "core/base/log.h"
#include "trainer/step/cuda/dense_optimizer_kernels.h"

namespace elastor::cuda {
DeviceDenseOptimizer::DeviceDenseOptimizer(const DenseOptimizerOptions& options,
                                           const ParameterLayout& layout,
                                           std::span<const Range> slices, Stream* stream)
    : options_(options),
      stream_(stream),
      slots_(SlotElements(options.rule.kind, kParameterBlock) / kParameterBlock),
      block_begin_(stream),
      decay_(stream),
      gradient_(stream),
      slot_values_(stream),
      block_sums_(stream) {
  std::vector<uint8_t> decay_of(layout.flat_size(), static_cast<uint8_t>(Decay::kNone));
  for (const ParameterInfo& p : layout.parameters()) {
    std::fill_n(decay_of.begin() + p.offset, p.size,
                p.statistic ? kStatisticElement : static_cast<uint8_t>(p.decay));
  }
  std::vector<int64_t> begin;
  std::vector<uint8_t> decay;
  for (const Range& slice : slices) {
    CHECK_EQ(slice.size() % kParameterBlock, 0);
    first_block_.push_back(static_cast<int64_t>(begin.size()));
    for (int64_t at = slice.begin; at < slice.end; at += kParameterBlock) begin.push_back(at);
    decay.insert(decay.end(), decay_of.begin() + slice.begin, decay_of.begin() + slice.end);
  }
  first_block_.push_back(static_cast<int64_t>(begin.size()));
  Upload(*stream_, begin, &block_begin_);
  Upload(*stream_, decay, &decay_);
  gradient_.Resize(blocks() * kParameterBlock);
  slot_values_.Resize(blocks() * slots_ * kParameterBlock);
  block_sums_.Resize(2 * blocks());
  ResetSlots();
}

void DeviceDenseOptimizer::AddL2(const float* weights, DeviceExactSum* squared_norm,
                                 DeviceExactSum* penalty) {
  AddDenseL2(*stream_, {blocks(), block_begin_.data(), decay_.data()},
             static_cast<float>(options_.dense_l2), static_cast<float>(options_.embedding_l2),
             weights, gradient_.data(), block_sums_.data());
  AddToExactSum(*stream_, block_sums_.data(), blocks(), squared_norm);
  AddToExactSum(*stream_, block_sums_.data() + blocks(), blocks(), penalty);
}

void DeviceDenseOptimizer::Update(const UpdateGate* gate, double learning_rate, int64_t step,
                                  float* weights) {
  UpdateDense(*stream_, {blocks(), block_begin_.data(), decay_.data()}, options_.rule,
              learning_rate, step, static_cast<float>(1 - learning_rate * options_.decoupled_decay),
              gate, gradient_.data(), weights, slot_values_.data());
}

void DeviceDenseOptimizer::CopySlot(int64_t slot, int bucket, float* values) const {
  const int64_t begin = first_block_[bucket];
  Copy2D<float>(*stream_, values, kParameterBlock,
                slot_values_.data() + (begin * slots_ + slot) * kParameterBlock,
                slots_ * kParameterBlock, kParameterBlock, first_block_[bucket + 1] - begin);
}

void DeviceDenseOptimizer::SetSlot(int64_t slot, int bucket, const float* values) {
  const int64_t begin = first_block_[bucket];
  Copy2D<float>(*stream_, slot_values_.data() + (begin * slots_ + slot) * kParameterBlock,
                slots_ * kParameterBlock, values, kParameterBlock, kParameterBlock,
                first_block_[bucket + 1] - begin);
}

void DeviceDenseOptimizer::ResetSlots() {
  SetValues(*stream_, static_cast<float>(InitialSlot(options_.rule)), slot_values_.size(),
            slot_values_.data());
}

}  // namespace elastor::cuda
