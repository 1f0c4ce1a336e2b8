// Kernels of ops on small matrices that every row has of its own.
#include "core/kernels/cuda/row_matrices.h"

#include "core/ops/cuda/kernel.h"
#include "core/ops/pairwise_dot.h"
#include "core/ops/softmax_gate.h"

namespace elastor::cuda {
namespace {

template <typename A>
class PairwiseDotKernel final : public DeviceKernel<A> {
 public:
  PairwiseDotKernel(const PairwiseDotOp& op, DeviceKernelContext<A>* context)
      : op_(op), context_(context) {}

  KernelTraits traits() const override {
    KernelTraits traits;
    traits.reads_inputs = 2;
    traits.adds_addend = true;
    // The inputs' tokens must be those that the op reads, or lie together.
    traits.row_major_input = traits.row_major_dinput =
        context_->input(0).tokens != op_.first || context_->input(1).tokens != op_.second;
    return traits;
  }
  void Forward(const DevicePass&, const ForwardOperands<A>& operands) override {
    MultiplyRowMatrices<A>(context_->stream(), {First(operands.inputs[0])},
                           {Second(operands.inputs[1]), /*transposed=*/true}, {}, operands.output);
  }
  void Backward(const KernelPass&, const BackwardOperands<A>& operands) override {
    Stream& stream = context_->stream();
    const Activations<const A> dy = operands.doutput;
    // The second input's gradient is computed first, since the first input's addend may be that
    // gradient.
    MultiplyRowMatrices<A>(stream, {dy, /*transposed=*/true}, {First(operands.inputs[0])},
                           Second(operands.addends[1]), Second(operands.dinputs[1]));
    MultiplyRowMatrices<A>(stream, {dy}, {Second(operands.inputs[1])}, First(operands.addends[0]),
                           First(operands.dinputs[0]));
  }

 private:
  template <typename B>
  Activations<B> First(Activations<B> view) const {
    return view.data == nullptr ? view : view.WithTokens(op_.first);
  }
  template <typename B>
  Activations<B> Second(Activations<B> view) const {
    return view.data == nullptr ? view : view.WithTokens(op_.second);
  }

  PairwiseDotOp op_;
  DeviceKernelContext<A>* context_;
};

// The shares are computed again from the scores.
template <typename A>
class SoftmaxGateKernel final : public DeviceKernel<A> {
 public:
  SoftmaxGateKernel(const SoftmaxGateOp& op, DeviceKernelContext<A>* context)
      : op_(op), context_(context) {}

  KernelTraits traits() const override {
    KernelTraits traits;
    traits.reads_inputs = 2;
    traits.row_major_input = traits.row_major_dinput = true;
    return traits;
  }
  void Forward(const DevicePass&, const ForwardOperands<A>& operands) override {
    SoftmaxGate<A>(context_->stream(), operands.inputs[0].WithTokens(op_.tokens),
                   operands.inputs[1].WithTokens(1), operands.output);
  }
  void Backward(const KernelPass&, const BackwardOperands<A>& operands) override {
    SoftmaxGateBackward<A>(context_->stream(), operands.inputs[0].WithTokens(op_.tokens),
                           operands.inputs[1].WithTokens(1), operands.doutput,
                           operands.dinputs[0].WithTokens(op_.tokens),
                           operands.dinputs[1].WithTokens(1));
  }

 private:
  SoftmaxGateOp op_;
  DeviceKernelContext<A>* context_;
};

}  // namespace

ELASTOR_DEFINE_DEVICE_KERNEL(PairwiseDotOp, PairwiseDotKernel)
ELASTOR_DEFINE_DEVICE_KERNEL(SoftmaxGateOp, SoftmaxGateKernel)

}  // namespace elastor::cuda
