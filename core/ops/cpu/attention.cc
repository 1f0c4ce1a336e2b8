#include "core/ops/attention.h"

#include "core/kernels/elementwise.h"
#include "core/ops/cpu/deliver.h"
#include "core/ops/cpu/kernel.h"

namespace elastor {
namespace {

template <typename T>
class AttentionKernel final : public CpuKernel<T> {
 public:
  AttentionKernel(const AttentionOp& op, CpuKernelContext* context) : shape_(op.attention) {
    if (!op.position_bias) return;
    bias_ = context->parameter(0);
    bias_offset_ = context->offset(0);
    CHECK_EQ(context->info(0).size, shape_.differences()) << context->info(0).name;
    row_gradients_ = context->Save(shape_.differences());
    context->Scratch(LeafSumElements(shape_.differences()));
  }

  KernelTraits traits() const override { return {.reads_inputs = kMaxInputs}; }

  void Prepare(const T* parameters) override {
    if (bias_ >= 0) bias_values_ = parameters + bias_offset_;
  }

  void Forward(const Pass<T>& pass, const KernelMemory<T>&,
               const ForwardOperands<T>& operands) const override {
    pass.Share(pass.rows(), [&](int64_t begin, int64_t end) {
      const auto rows = [&](auto view) {
        return view.data == nullptr ? view : view.Rows(begin, end - begin);
      };
      const auto& in = operands.inputs;
      AttentionForward<T>(shape_, rows(in[0]), rows(in[1]), rows(in[2]), rows(in[3]), bias_values_,
                          rows(operands.output));
    });
  }

  void Backward(const Pass<T>& pass, const KernelMemory<T>& memory,
                const BackwardOperands<T>& operands) const override {
    Panels<T> row_gradients;
    if (bias_ >= 0) row_gradients = memory.Saved(row_gradients_);
    pass.Share(pass.rows(), [&](int64_t begin, int64_t end) {
      const auto rows = [&](auto view) {
        return view.data == nullptr ? view : view.Rows(begin, end - begin);
      };
      const auto& in = operands.inputs;
      const auto& din = operands.dinputs;
      AttentionBackward<T>(shape_, rows(in[0]), rows(in[1]), rows(in[2]), rows(in[3]), bias_values_,
                           rows(operands.doutput), rows(din[0]), rows(din[1]), rows(din[2]),
                           rows(row_gradients));
    });
    if (operands.dinputs[3].data != nullptr) Fill<T>(T{0}, operands.dinputs[3]);
    if (bias_ < 0) return;
    SumOverLeaves(pass.leaves.leaves(), shape_.differences(), memory.scratch(),
                  [&](const LeafRows& leaf, T* db) {
                    BiasGradient<T>(leaf.Of(row_gradients), db, Store::kOverwrite);
                  });
    DeliverCopy(pass.sink, bias_, shape_.differences(), memory.scratch());
  }

 private:
  const AttentionShape shape_;
  int bias_ = -1;
  int64_t bias_offset_ = 0;
  int row_gradients_ = -1;  // saved: every row's gradient of the position bias
  const T* bias_values_ = nullptr;
};

}  // namespace

ELASTOR_DEFINE_CPU_KERNEL(AttentionOp, AttentionKernel)

}  // namespace elastor
