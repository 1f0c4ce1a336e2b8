#include "core/ops/patch_input.h"

#include "core/kernels/cuda/elementwise.h"
#include "core/ops/cuda/kernel.h"

namespace elastor::cuda {

// E is read as [rows, 1, pixels].
template <typename A>
std::unique_ptr<DeviceKernel<A>> MakeDeviceKernel(const PatchInputOp& op,
                                                  DeviceKernelContext<A>* context) {
  KernelTraits traits;
  traits.row_major_output = traits.row_major_doutput = true;
  const auto forward = [image = op.image, context](const DevicePass& pass,
                                                   const ForwardOperands<A>& o) {
    Patches<A>(context->stream(), pass.inputs.numeric, pass.inputs.local_row, image,
               o.output.WithTokens(1));
  };
  return KernelOf<A>(traits, forward, NothingToCompute());
}

ELASTOR_INSTANTIATE_DEVICE_KERNEL(PatchInputOp)

}  // namespace elastor::cuda
