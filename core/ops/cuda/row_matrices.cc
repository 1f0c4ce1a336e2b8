// Kernels of ops on small matrices that every row has of its own.
#include "core/kernels/cuda/row_matrices.h"

#include "core/ops/cuda/kernel.h"
#include "core/ops/pairwise_dot.h"
#include "core/ops/softmax_gate.h"

namespace elastor::cuda {
namespace {

template <typename U>
Activations<U> WithTokens(Activations<U> view, int64_t tokens) {
  return view.data == nullptr ? view : view.WithTokens(tokens);
}

}  // namespace

template <typename A>
std::unique_ptr<DeviceKernel<A>> MakeDeviceKernel(const PairwiseDotOp& op,
                                                  DeviceKernelContext<A>* context) {
  KernelTraits traits;
  traits.reads_inputs = 2;
  traits.adds_addend = true;
  // The inputs' tokens must be those that the op reads, or lie together.
  traits.row_major_input = traits.row_major_dinput =
      context->input(0).tokens != op.first || context->input(1).tokens != op.second;
  const auto forward = [op, context](const ForwardOperands<A>& o) {
    MultiplyRowMatrices<A>(context->stream(), {WithTokens(o.inputs[0], op.first)},
                           {WithTokens(o.inputs[1], op.second), /*transposed=*/true}, {}, o.output);
  };
  const auto backward = [op, context](const BackwardOperands<A>& o) {
    // The second input's gradient is computed first, since the first input's addend may be that
    // gradient.
    MultiplyRowMatrices<A>(context->stream(), {o.doutput, /*transposed=*/true},
                           {WithTokens(o.inputs[0], op.first)}, WithTokens(o.addends[1], op.second),
                           WithTokens(o.dinputs[1], op.second));
    MultiplyRowMatrices<A>(context->stream(), {o.doutput}, {WithTokens(o.inputs[1], op.second)},
                           WithTokens(o.addends[0], op.first), WithTokens(o.dinputs[0], op.first));
  };
  return KernelOf<A>(traits, forward, backward);
}

// The shares are computed again from the scores.
template <typename A>
std::unique_ptr<DeviceKernel<A>> MakeDeviceKernel(const SoftmaxGateOp& op,
                                                  DeviceKernelContext<A>* context) {
  KernelTraits traits;
  traits.reads_inputs = 2;
  traits.row_major_input = traits.row_major_dinput = true;
  const int64_t tokens = op.tokens;
  const auto forward = [context, tokens](const ForwardOperands<A>& o) {
    SoftmaxGate<A>(context->stream(), o.inputs[0].WithTokens(tokens), o.inputs[1].WithTokens(1),
                   o.output);
  };
  const auto backward = [context, tokens](const BackwardOperands<A>& o) {
    SoftmaxGateBackward<A>(context->stream(), o.inputs[0].WithTokens(tokens),
                           o.inputs[1].WithTokens(1), o.doutput, o.dinputs[0].WithTokens(tokens),
                           o.dinputs[1].WithTokens(1));
  };
  return KernelOf<A>(traits, forward, backward);
}

ELASTOR_INSTANTIATE_DEVICE_KERNEL(PairwiseDotOp)
ELASTOR_INSTANTIATE_DEVICE_KERNEL(SoftmaxGateOp)

}  // namespace elastor::cuda
