#include "core/ops/softmax_gate.h"

#include "core/kernels/softmax_gate.h"
#include "core/ops/cpu/kernel.h"

namespace elastor {
namespace {

template <typename T>
class SoftmaxGateKernel final : public CpuKernel<T> {
 public:
  SoftmaxGateKernel(const SoftmaxGateOp& op, CpuKernelContext* context)
      : op_(op), shares_(context->Save(op.tokens)) {}
  KernelTraits traits() const override { return {.reads_inputs = 1}; }
  void Forward(const Pass<T>&, const KernelMemory<T>& memory,
               const ForwardOperands<T>& operands) const override {
    SoftmaxGate<T>(op_.tokens, op_.width, operands.inputs[0], operands.inputs[1],
                   memory.Saved(shares_), operands.output);
  }
  void Backward(const Pass<T>&, const KernelMemory<T>& memory,
                const BackwardOperands<T>& operands) const override {
    SoftmaxGateBackward<T>(op_.tokens, op_.width, operands.inputs[0], memory.Saved(shares_),
                           operands.doutput, operands.dinputs[0], operands.dinputs[1]);
  }

 private:
  const SoftmaxGateOp op_;
  int shares_;  // saved
};

}  // namespace

ELASTOR_DEFINE_CPU_KERNEL(SoftmaxGateOp, SoftmaxGateKernel)

}  // namespace elastor
