#include "core/kernels/softmax_gate.h"

#include "core/ops/cpu/kernel.h"
#include "core/ops/softmax_gate.h"

namespace elastor {

template <typename T>
std::unique_ptr<CpuKernel<T>> MakeCpuKernel(const SoftmaxGateOp& op, CpuKernelContext* context) {
  const int shares = context->Save(op.tokens);
  const auto forward = [op, shares](const Pass<T>&, const KernelMemory<T>& memory,
                                    const ForwardOperands<T>& o) {
    SoftmaxGate<T>(op.tokens, op.width, o.inputs[0], o.inputs[1], memory.Saved(shares), o.output);
  };
  const auto backward = [op, shares](const Pass<T>&, const KernelMemory<T>& memory,
                                     const BackwardOperands<T>& o) {
    SoftmaxGateBackward<T>(op.tokens, op.width, o.inputs[0], memory.Saved(shares), o.doutput,
                           o.dinputs[0], o.dinputs[1]);
  };
  return KernelOf<T>({.reads_inputs = 1}, forward, backward);
}

ELASTOR_INSTANTIATE_CPU_KERNEL(SoftmaxGateOp)

}  // namespace elastor
