#include "core/ops/logit_sum.h"

#include "core/kernels/cuda/elementwise.h"
#include "core/ops/cuda/kernel.h"

namespace elastor::cuda {
namespace {

// Values are read as [rows, 1, features].
template <typename A>
class LogitSumKernel final : public DeviceKernel<A> {
 public:
  LogitSumKernel(const LogitSumOp&, DeviceKernelContext<A>* context)
      : context_(context), sums_(context->ReserveColumnSums(1)) {
    CHECK_EQ(context->size(0), 1);
  }

  KernelTraits traits() const override {
    KernelTraits traits;
    traits.row_major_input = context_->regroups_inputs(1);
    traits.row_major_dinput = context_->regroups_first_input(1);
    return traits;
  }

  void Forward(const DevicePass&, const ForwardOperands<A>& operands) override {
    const auto x = operands.inputs[0].WithTokens(1);
    Stream& stream = context_->stream();
    if (operands.logits.data != nullptr) {
      LogitSum<A>(stream, x, context_->values(0), operands.logits);
    } else {
      LogitSum<A>(stream, x, context_->values(0), operands.output);
    }
  }

  void Backward(const KernelPass& pass, const BackwardOperands<A>& operands) override {
    DeliverBias<A>(context_, pass, 0, operands.doutput, sums_);
    if (operands.dinputs[0].data == nullptr) return;
    SumPoolBackward<A>(context_->stream(), operands.doutput, operands.dinputs[0].WithTokens(1));
  }

 private:
  DeviceKernelContext<A>* context_;
  int sums_;
};

}  // namespace

ELASTOR_DEFINE_DEVICE_KERNEL(LogitSumOp, LogitSumKernel)

}  // namespace elastor::cuda
