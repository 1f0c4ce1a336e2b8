#include "core/ops/weighted_pool.h"

#include "core/kernels/cuda/weighted_pool.h"
#include "core/ops/cuda/kernel.h"

namespace elastor::cuda {
namespace {

template <typename A>
class WeightedPoolKernel final : public DeviceKernel<A> {
 public:
  WeightedPoolKernel(const WeightedPoolOp& op, DeviceKernelContext<A>* context)
      : tokens_(op.groups * op.tokens), context_(context) {
    CHECK_EQ(context->size(kWeight), op.width * op.tokens);
  }

  KernelTraits traits() const override {
    KernelTraits traits;
    traits.reads_inputs = 1;
    traits.row_major_input = context_->regroups_inputs(tokens_);
    traits.row_major_dinput = context_->regroups_first_input(tokens_);
    return traits;
  }
  void Forward(const DevicePass&, const ForwardOperands<A>& operands) override {
    WeightedPool<A>(context_->stream(), context_->factors(kWeight),
                    operands.inputs[0].WithTokens(tokens_), operands.output);
  }
  void Backward(const KernelPass& pass, const BackwardOperands<A>& operands) override {
    const LeafGradients::Target du = context_->Open(pass, kWeight, 1);
    WeightedPoolGradient<A>(context_->stream(), pass.shape, operands.doutput,
                            operands.inputs[0].WithTokens(tokens_), du.data, du.leaf_stride);
    context_->Close(pass, kWeight);
    WeightedPoolBackward<A>(context_->stream(), context_->factors(kWeight), operands.doutput,
                            operands.dinputs[0].WithTokens(tokens_));
  }

 private:
  static constexpr int kWeight = 0;

  int64_t tokens_;
  DeviceKernelContext<A>* context_;
};

}  // namespace

ELASTOR_DEFINE_DEVICE_KERNEL(WeightedPoolOp, WeightedPoolKernel)

}  // namespace elastor::cuda
