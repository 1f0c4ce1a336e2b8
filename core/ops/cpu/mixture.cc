#include "core/ops/mixture.h"

#include "core/ops/cpu/kernel.h"

namespace elastor {
namespace {

template <typename T>
class MixtureKernel final : public CpuKernel<T> {
 public:
  MixtureKernel(const MixtureOp& op, CpuKernelContext* context)
      : shape_(op.mixture), weights_(context->Save(context->input_features(1))) {}
  KernelTraits traits() const override { return {.reads_inputs = 1}; }
  void Forward(const Pass<T>&, const KernelMemory<T>& memory,
               const ForwardOperands<T>& operands) const override {
    Mixture<T>(shape_, operands.inputs[0], operands.inputs[1], memory.Saved(weights_),
               operands.output);
  }
  void Backward(const Pass<T>&, const KernelMemory<T>& memory,
                const BackwardOperands<T>& operands) const override {
    MixtureBackward<T>(shape_, operands.inputs[0], memory.Saved(weights_), operands.doutput,
                       operands.dinputs[0], operands.dinputs[1]);
  }

 private:
  const MixtureShape shape_;
  const int weights_;  // saved: the softmax of the gates
};

}  // namespace

ELASTOR_DEFINE_CPU_KERNEL(MixtureOp, MixtureKernel)

}  // namespace elastor
