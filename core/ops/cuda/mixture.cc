#include "core/ops/mixture.h"

#include "core/kernels/cuda/mixture.h"
#include "core/ops/cuda/kernel.h"

namespace elastor::cuda {
namespace {

// Reads x as [rows, E, D] and the gates as [rows, 1, T E].
template <typename A>
class MixtureKernel final : public DeviceKernel<A> {
 public:
  MixtureKernel(const MixtureOp& op, DeviceKernelContext<A>* context)
      : shape_(op.mixture),
        context_(context),
        weights_(context->Reserve(DeviceLife::kKept, {.row = WeightBytes()})),
        gradients_(context->Reserve(DeviceLife::kBackward, {.row = WeightBytes()})) {}

  KernelTraits traits() const override {
    KernelTraits traits;
    traits.reads_inputs = 1;
    traits.row_major_input = traits.row_major_dinput = true;
    return traits;
  }
  void Forward(const DevicePass&, const ForwardOperands<A>& operands) override {
    Mixture<A>(context_->stream(), shape_, operands.inputs[0].WithTokens(shape_.experts),
               operands.inputs[1].WithTokens(1), context_->template Data<float>(weights_),
               operands.output);
  }
  void Backward(const KernelPass&, const BackwardOperands<A>& operands) override {
    MixtureBackward<A>(context_->stream(), shape_, operands.inputs[0].WithTokens(shape_.experts),
                       context_->template Data<float>(weights_), operands.doutput,
                       context_->template Data<float>(gradients_),
                       operands.dinputs[0].WithTokens(shape_.experts),
                       operands.dinputs[1].WithTokens(1));
  }

 private:
  int64_t WeightBytes() const {
    return shape_.mixtures * shape_.experts * static_cast<int64_t>(sizeof(float));
  }

  const MixtureShape shape_;
  DeviceKernelContext<A>* const context_;
  const int weights_;    // the softmax of the gates
  const int gradients_;  // of the weights
};

}  // namespace

ELASTOR_DEFINE_DEVICE_KERNEL(MixtureOp, MixtureKernel)

}  // namespace elastor::cuda
