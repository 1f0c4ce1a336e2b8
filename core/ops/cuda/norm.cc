#include "core/ops/norm.h"

#include "core/kernels/cuda/norm.h"
#include "core/ops/cuda/kernel.h"

namespace elastor::cuda {
namespace {

template <typename A>
class NormKernel final : public DeviceKernel<A> {
 public:
  NormKernel(const NormOp& op, DeviceKernelContext<A>* context)
      : shape_(op.norm),
        context_(context),
        runs_(context->output().tokens),
        normalized_(
            context->Reserve(DeviceLife::kKept, TokenLayout::kTokenMajor, {runs_, op.norm.width})),
        scale_(context->Reserve(DeviceLife::kKept,
                                {.row = runs_ * static_cast<int64_t>(sizeof(float))})),
        sums_(context->ReserveColumnSums(2 * op.norm.width)) {}

  KernelTraits traits() const override {
    KernelTraits traits;
    traits.in_place_inputs = 1;
    traits.gradient_in_place = true;
    traits.adds_addend = true;
    traits.any_layout = true;
    traits.row_major_input = context_->regroups_inputs(runs_);
    traits.row_major_dinput = context_->regroups_first_input(runs_);
    return traits;
  }

  void Forward(const DevicePass& pass, const ForwardOperands<A>& operands) override {
    Activations<const A> residual;
    if (context_->inputs() > 1) residual = operands.inputs[1].WithTokens(runs_);
    NormForward<A>(context_->stream(), shape_, operands.inputs[0].WithTokens(runs_), residual,
                   /*sum=*/{}, context_->values(kGain),
                   has_bias() ? context_->values(kBias) : nullptr, operands.output,
                   context_->At(pass, normalized_), context_->template Data<float>(scale_));
  }

  void Backward(const KernelPass& pass, const BackwardOperands<A>& operands) override {
    Activations<const A> addend = operands.addends[0];
    if (addend.data != nullptr) addend = addend.WithTokens(runs_);
    const LeafGradients::Target dgain = context_->Open(pass, kGain, 1);
    float* dbias = nullptr;
    if (has_bias()) dbias = context_->Open(pass, kBias, 1).data;
    NormBackward<A>(context_->stream(), shape_, pass.shape, context_->At(pass, normalized_),
                    context_->template Data<float>(scale_), context_->values(kGain),
                    operands.doutput, addend, operands.dinputs[0].WithTokens(runs_), dgain.data,
                    dbias, dgain.leaf_stride, context_->template Data<float>(sums_));
    context_->Close(pass, kGain);
    if (has_bias()) context_->Close(pass, kBias);
  }

 private:
  static constexpr int kGain = 0;
  static constexpr int kBias = 1;
  bool has_bias() const { return shape_.kind == NormKind::kLayer; }

  NormShape shape_;
  DeviceKernelContext<A>* context_;
  int64_t runs_;  // of a row
  typename DeviceKernelContext<A>::View normalized_;
  int scale_;  // [rows][runs]
  int sums_;
};

}  // namespace

ELASTOR_DEFINE_DEVICE_KERNEL(NormOp, NormKernel)

}  // namespace elastor::cuda
