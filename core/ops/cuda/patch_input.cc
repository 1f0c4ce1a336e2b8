#include "core/ops/patch_input.h"

#include "core/kernels/cuda/elementwise.h"
#include "core/ops/cuda/kernel.h"

namespace elastor::cuda {
namespace {

// E is read as [rows, 1, pixels].
template <typename A>
class PatchInputKernel final : public DeviceKernel<A> {
 public:
  PatchInputKernel(const PatchInputOp& op, DeviceKernelContext<A>* context)
      : image_(op.image), context_(context) {}

  KernelTraits traits() const override {
    KernelTraits traits;
    traits.row_major_output = traits.row_major_doutput = true;
    return traits;
  }

  void Forward(const DevicePass& pass, const ForwardOperands<A>& operands) override {
    Patches<A>(context_->stream(), pass.inputs.numeric, pass.inputs.local_row, image_,
               operands.output.WithTokens(1));
  }
  void Backward(const KernelPass&, const BackwardOperands<A>&) override {}

 private:
  const ImageShape image_;
  DeviceKernelContext<A>* const context_;
};

}  // namespace

ELASTOR_DEFINE_DEVICE_KERNEL(PatchInputOp, PatchInputKernel)

}  // namespace elastor::cuda
