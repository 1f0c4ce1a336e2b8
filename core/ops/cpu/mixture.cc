#include "core/ops/mixture.h"

#include "core/ops/cpu/kernel.h"

namespace elastor {

template <typename T>
std::unique_ptr<CpuKernel<T>> MakeCpuKernel(const MixtureOp& op, CpuKernelContext* context) {
  const int weights = context->Save(context->input_features(1));  // the softmax of the gates
  const auto forward = [op, weights](const Pass<T>&, const KernelMemory<T>& memory,
                                     const ForwardOperands<T>& o) {
    Mixture<T>(op.mixture, o.inputs[0], o.inputs[1], memory.Saved(weights), o.output);
  };
  const auto backward = [op, weights](const Pass<T>&, const KernelMemory<T>& memory,
                                      const BackwardOperands<T>& o) {
    MixtureBackward<T>(op.mixture, o.inputs[0], memory.Saved(weights), o.doutput, o.dinputs[0],
                       o.dinputs[1]);
  };
  return KernelOf<T>({.reads_inputs = 1}, forward, backward);
}

ELASTOR_INSTANTIATE_CPU_KERNEL(MixtureOp)

}  // namespace elastor
