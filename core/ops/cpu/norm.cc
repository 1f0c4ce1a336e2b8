#include "core/ops/norm.h"

#include "core/ops/cpu/kernel.h"

namespace elastor {
namespace {

template <typename T>
class NormKernel final : public CpuKernel<T> {
 public:
  NormKernel(const NormOp& op, CpuKernelContext* context)
      : shape_(op.norm), gain_(context->parameter(0)), gain_offset_(context->offset(0)) {
    CHECK_EQ(context->info(0).size, shape_.width) << context->info(0).name;
    if (shape_.kind == NormKind::kLayer) {
      bias_ = context->parameter(1);
      bias_offset_ = context->offset(1);
    }
    normalized_ = context->Save(context->input_features(0));
    scale_ = context->Save(context->input_features(0) / shape_.width);
  }

  KernelTraits traits() const override {
    return {.in_place_inputs = 1, .gradient_in_place = true, .adds_addend = true};
  }

  void Prepare(const T* parameters) override { parameters_ = parameters; }

  void Forward(const Pass<T>&, const KernelMemory<T>& memory,
               const ForwardOperands<T>& operands) const override {
    CHECK(operands.inputs[1].data == nullptr) << "the residual of a norm is added before it";
    NormForward<T>(shape_, operands.inputs[0], parameters_ + gain_offset_,
                   bias_ >= 0 ? parameters_ + bias_offset_ : nullptr, operands.output,
                   memory.Saved(normalized_), memory.Saved(scale_));
  }

  void Backward(const Pass<T>& pass, const KernelMemory<T>& memory,
                const BackwardOperands<T>& operands) const override {
    const auto dgain = pass.sink->Open(gain_);
    const auto dbias = bias_ >= 0 ? pass.sink->Open(bias_)
                                  : typename GradientSink<T>::Target{nullptr, dgain.store};
    CHECK(dbias.store == dgain.store);
    NormBackward<T>(shape_, memory.Saved(normalized_), memory.Saved(scale_),
                    parameters_ + gain_offset_, operands.doutput, operands.addends[0],
                    operands.dinputs[0], dgain.data, dbias.data, dgain.store);
    pass.sink->Close(gain_);
    if (bias_ >= 0) pass.sink->Close(bias_);
  }

 private:
  const NormShape shape_;
  int gain_;
  int bias_ = -1;
  int64_t gain_offset_;
  int64_t bias_offset_ = 0;
  int normalized_;  // saved: the value before gain and bias
  int scale_;       // saved: 1 / sqrt(...) of every run
  const T* parameters_ = nullptr;
};

}  // namespace

ELASTOR_DEFINE_CPU_KERNEL(NormOp, NormKernel)

}  // namespace elastor
