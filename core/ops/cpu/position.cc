#include "core/ops/position.h"

#include "core/kernels/elementwise.h"
#include "core/ops/cpu/deliver.h"
#include "core/ops/cpu/kernel.h"

namespace elastor {
namespace {

template <typename T>
class PositionKernel final : public CpuKernel<T> {
 public:
  PositionKernel(const PositionOp& op, CpuKernelContext* context)
      : op_(op),
        parameter_(context->parameter(0)),
        offset_(context->offset(0)),
        size_(op.parameter_features()),
        lanes_(size_ * kPanelRows) {
    CHECK_EQ(context->info(0).size, size_) << context->info(0).name;
    context->Scratch(LeafSumElements(size_));
  }

  KernelTraits traits() const override { return {.in_place_inputs = 1, .gradient_in_place = true}; }

  // Every lane gets scale * p.
  void Prepare(const T* parameters) override {
    for (int64_t i = 0; i < size_; ++i) {
      std::fill_n(lanes_.begin() + i * kPanelRows, kPanelRows, scale() * parameters[offset_ + i]);
    }
  }

  void Forward(const Pass<T>&, const KernelMemory<T>&,
               const ForwardOperands<T>& operands) const override {
    Panels<const T> x = operands.inputs[0];
    const Panels<T> y = operands.output;
    const int64_t first = op_.first_feature();
    const Panels<const T> added = {lanes_.data(), y.rows, size_, /*panel_stride=*/0};
    if (x.data == nullptr) return Copy<T>(added, y);
    if (op_.input_scale != 1) {
      Scale<T>(input_scale(), x, y);
      x = y;
    }
    if (x.data != y.data && first > 0) Copy<T>(x.Slice(0, first), y.Slice(0, first));
    Add<T>(x.Slice(first, size_), added, y.Slice(first, size_));
  }

  void Backward(const Pass<T>& pass, const KernelMemory<T>& memory,
                const BackwardOperands<T>& operands) const override {
    SumOverLeaves(pass.leaves.leaves(), size_, memory.scratch(), [&](const LeafRows& leaf, T* dp) {
      BiasGradient<T>(leaf.Of(operands.doutput).Slice(op_.first_feature(), size_), dp,
                      Store::kOverwrite);
      for (int64_t i = 0; i < size_; ++i) dp[i] *= scale();
    });
    DeliverCopy(pass.sink, parameter_, size_, memory.scratch());
    if (op_.input_scale != 1) Scale<T>(input_scale(), operands.doutput, operands.dinputs[0]);
  }

 private:
  T scale() const { return static_cast<T>(op_.scale); }
  T input_scale() const { return static_cast<T>(op_.input_scale); }

  const PositionOp op_;
  const int parameter_;
  const int64_t offset_;
  const int64_t size_;
  std::vector<T> lanes_;  // scale * p, each element for all rows of a panel
};

}  // namespace

ELASTOR_DEFINE_CPU_KERNEL(PositionOp, PositionKernel)

}  // namespace elastor
