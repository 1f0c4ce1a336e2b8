#include "core/ops/norm.h"

#include "core/ops/cpu/deliver.h"
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
    context->Scratch(LeafSumElements(gradients()));
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
    if (pass.row_sink != nullptr) {
      for (int64_t f = 0; f < operands.doutput.features; f += shape_.width) {
        const Panels<const T> dy = operands.doutput.Slice(f, shape_.width);
        pass.row_sink->AddTerm(gain_, 0, dy, memory.Saved(normalized_).Slice(f, shape_.width));
        if (bias_ >= 0) pass.row_sink->AddTerm(bias_, 0, dy, {});
      }
    }
    // A leaf's dgain and behind it dbias.
    T* const sums = memory.scratch();
    SumOverLeaves(pass.leaves.leaves(), gradients(), sums, [&](const LeafRows& leaf, T* dgain) {
      NormBackward<T>(shape_, leaf.Of(memory.Saved(normalized_)), leaf.Of(memory.Saved(scale_)),
                      parameters_ + gain_offset_, leaf.Of(operands.doutput),
                      leaf.Of(operands.addends[0]), leaf.Of(operands.dinputs[0]), dgain,
                      bias_ >= 0 ? dgain + shape_.width : nullptr, Store::kOverwrite);
    });
    if (pass.row_sink != nullptr) return;
    DeliverCopy(pass.sink, gain_, shape_.width, sums);
    if (bias_ >= 0) DeliverCopy(pass.sink, bias_, shape_.width, sums + shape_.width);
  }

 private:
  int64_t gradients() const { return (bias_ >= 0 ? 2 : 1) * shape_.width; }

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
