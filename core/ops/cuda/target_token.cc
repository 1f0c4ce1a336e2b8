#include "core/ops/target_token.h"

#include "core/kernels/cuda/target_token.h"
#include "core/ops/cuda/kernel.h"

namespace elastor::cuda {
namespace {

KernelTraits TargetTokenTraits() {
  KernelTraits traits;
  traits.row_major_input = traits.row_major_output = true;
  traits.row_major_dinput = traits.row_major_doutput = true;
  return traits;
}

TargetTokenShape ShapeOf(const TargetTokenOp& op, int64_t field, const DevicePass& pass) {
  return {.fields = op.fields,
          .positions = op.positions,
          .width = op.width,
          .field = field,
          .lengths = pass.LengthsOf(op.sequence, op.sequences)};
}

HistoryShape ShapeOf(const AppendHistoryOp& op, const DevicePass& pass) {
  return {.before = op.before,
          .positions = op.positions,
          .width = op.width,
          .last = op.last,
          .behind = op.behind,
          .lengths = pass.LengthsOf(op.sequence, op.sequences)};
}

// Input 1, or nothing.
template <typename A>
Activations<A> Before(const AppendHistoryOp& op, const Activations<A>* values) {
  return op.before > 0 ? values[1].WithTokens(1) : Activations<A>();
}

}  // namespace

template <typename A>
std::unique_ptr<DeviceKernel<A>> MakeDeviceKernel(const AppendHistoryOp& op,
                                                  DeviceKernelContext<A>* context) {
  const auto forward = [op, context](const DevicePass& pass, const ForwardOperands<A>& o) {
    AppendHistory<A>(context->stream(), ShapeOf(op, pass), o.inputs[0].WithTokens(1),
                     Before<const A>(op, o.inputs), o.output.WithTokens(1));
  };
  const auto backward = [op, context](const KernelPass& pass, const BackwardOperands<A>& o) {
    AppendHistoryBackward<A>(context->stream(), ShapeOf(op, pass), o.doutput.WithTokens(1),
                             o.dinputs[0].WithTokens(1), Before<A>(op, o.dinputs));
  };
  return KernelOf<A>(TargetTokenTraits(), forward, backward);
}

template <typename A>
std::unique_ptr<DeviceKernel<A>> MakeDeviceKernel(const AppendTargetOp& op,
                                                  DeviceKernelContext<A>* context) {
  const auto forward = [op, context](const DevicePass& pass, const ForwardOperands<A>& o) {
    AppendTarget<A>(context->stream(), ShapeOf(op, op.target, pass), o.inputs[0].WithTokens(1),
                    o.output.WithTokens(1));
  };
  const auto backward = [op, context](const KernelPass& pass, const BackwardOperands<A>& o) {
    AppendTargetBackward<A>(context->stream(), ShapeOf(op, op.target, pass),
                            o.doutput.WithTokens(1), o.dinputs[0].WithTokens(1));
  };
  return KernelOf<A>(TargetTokenTraits(), forward, backward);
}

template <typename A>
std::unique_ptr<DeviceKernel<A>> MakeDeviceKernel(const ReadTargetOp& op,
                                                  DeviceKernelContext<A>* context) {
  const auto forward = [op, context](const DevicePass& pass, const ForwardOperands<A>& o) {
    ReadTarget<A>(context->stream(), ShapeOf(op, op.field, pass), o.inputs[0].WithTokens(1),
                  o.inputs[1].WithTokens(1), o.output.WithTokens(1));
  };
  const auto backward = [op, context](const KernelPass& pass, const BackwardOperands<A>& o) {
    ReadTargetBackward<A>(context->stream(), ShapeOf(op, op.field, pass), o.doutput.WithTokens(1),
                          o.dinputs[0].WithTokens(1), o.dinputs[1].WithTokens(1));
  };
  return KernelOf<A>(TargetTokenTraits(), forward, backward);
}

ELASTOR_INSTANTIATE_DEVICE_KERNEL(AppendHistoryOp)
ELASTOR_INSTANTIATE_DEVICE_KERNEL(AppendTargetOp)
ELASTOR_INSTANTIATE_DEVICE_KERNEL(ReadTargetOp)

}  // namespace elastor::cuda
