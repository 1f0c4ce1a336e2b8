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

template <typename A>
class AppendTargetKernel final : public DeviceKernel<A> {
 public:
  AppendTargetKernel(const AppendTargetOp& op, DeviceKernelContext<A>* context)
      : op_(op), context_(context) {}
  KernelTraits traits() const override { return TargetTokenTraits(); }

  void Forward(const DevicePass& pass, const ForwardOperands<A>& operands) override {
    AppendTarget<A>(context_->stream(), ShapeOf(op_, op_.target, pass),
                    operands.inputs[0].WithTokens(1), operands.output.WithTokens(1));
  }
  void Backward(const KernelPass& pass, const BackwardOperands<A>& operands) override {
    AppendTargetBackward<A>(context_->stream(), ShapeOf(op_, op_.target, pass),
                            operands.doutput.WithTokens(1), operands.dinputs[0].WithTokens(1));
  }

 private:
  AppendTargetOp op_;
  DeviceKernelContext<A>* context_;
};

template <typename A>
class ReadTargetKernel final : public DeviceKernel<A> {
 public:
  ReadTargetKernel(const ReadTargetOp& op, DeviceKernelContext<A>* context)
      : op_(op), context_(context) {}
  KernelTraits traits() const override { return TargetTokenTraits(); }

  void Forward(const DevicePass& pass, const ForwardOperands<A>& operands) override {
    ReadTarget<A>(context_->stream(), ShapeOf(op_, op_.field, pass),
                  operands.inputs[0].WithTokens(1), operands.inputs[1].WithTokens(1),
                  operands.output.WithTokens(1));
  }
  void Backward(const KernelPass& pass, const BackwardOperands<A>& operands) override {
    ReadTargetBackward<A>(context_->stream(), ShapeOf(op_, op_.field, pass),
                          operands.doutput.WithTokens(1), operands.dinputs[0].WithTokens(1),
                          operands.dinputs[1].WithTokens(1));
  }

 private:
  ReadTargetOp op_;
  DeviceKernelContext<A>* context_;
};

}  // namespace

ELASTOR_DEFINE_DEVICE_KERNEL(AppendTargetOp, AppendTargetKernel)
ELASTOR_DEFINE_DEVICE_KERNEL(ReadTargetOp, ReadTargetKernel)

}  // namespace elastor::cuda
