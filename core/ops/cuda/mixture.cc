#include "core/ops/mixture.h"

#include "core/kernels/cuda/mixture.h"
#include "core/ops/cuda/kernel.h"

namespace elastor::cuda {

// Reads x as [rows, E, D] and the gates as [rows, 1, T E].
template <typename A>
std::unique_ptr<DeviceKernel<A>> MakeDeviceKernel(const MixtureOp& op,
                                                  DeviceKernelContext<A>* context) {
  KernelTraits traits;
  traits.reads_inputs = 1;
  traits.row_major_input = traits.row_major_dinput = true;
  const MixtureShape shape = op.mixture;
  const int64_t row_bytes = shape.mixtures * shape.experts * static_cast<int64_t>(sizeof(float));
  const int weights = context->Reserve(DeviceLife::kKept, {.row = row_bytes});  // softmax of gates
  const int gradients = context->Reserve(DeviceLife::kBackward, {.row = row_bytes});
  const auto forward = [=](const ForwardOperands<A>& o) {
    Mixture<A>(context->stream(), shape, o.inputs[0].WithTokens(shape.experts),
               o.inputs[1].WithTokens(1), context->template Data<float>(weights), o.output);
  };
  const auto backward = [=](const BackwardOperands<A>& o) {
    MixtureBackward<A>(context->stream(), shape, o.inputs[0].WithTokens(shape.experts),
                       context->template Data<float>(weights), o.doutput,
                       context->template Data<float>(gradients),
                       o.dinputs[0].WithTokens(shape.experts), o.dinputs[1].WithTokens(1));
  };
  return KernelOf<A>(traits, forward, backward);
}

ELASTOR_INSTANTIATE_DEVICE_KERNEL(MixtureOp)

}  // namespace elastor::cuda
