#include "core/ops/logit_sum.h"

#include "core/kernels/elementwise.h"
#include "core/ops/cpu/deliver.h"
#include "core/ops/cpu/kernel.h"

namespace elastor {
namespace {

template <typename T>
class LogitSumKernel final : public CpuKernel<T> {
 public:
  LogitSumKernel(const LogitSumOp&, CpuKernelContext* context)
      : bias_(context->parameter(0)), offset_(context->offset(0)), lanes_(kPanelRows) {
    CHECK_EQ(context->info(0).size, 1) << context->info(0).name;
    context->Scratch(LeafSumElements(1));
  }

  KernelTraits traits() const override { return {}; }

  // Every lane gets b.
  void Prepare(const T* parameters) override {
    std::fill(lanes_.begin(), lanes_.end(), parameters[offset_]);
  }

  void Forward(const Pass<T>&, const KernelMemory<T>&,
               const ForwardOperands<T>& operands) const override {
    const Panels<const T> x = operands.inputs[0];
    const Panels<T> y = operands.output;
    SumPool<T>(1, x.features, x, y);
    Add<T>(y, {lanes_.data(), y.rows, 1, /*panel_stride=*/0}, y);
  }

  void Backward(const Pass<T>& pass, const KernelMemory<T>& memory,
                const BackwardOperands<T>& operands) const override {
    const Panels<const T> dy = operands.doutput;
    const Panels<T> dx = operands.dinputs[0];
    if (dx.data != nullptr) {
      for (int64_t f = 0; f < dx.features; ++f) Copy<T>(dy, dx.Slice(f, 1));
    }
    if (pass.row_sink != nullptr) return pass.row_sink->AddTerm(bias_, 0, dy, {});
    SumOverLeaves(pass.leaves.leaves(), 1, memory.scratch(), [&](const LeafRows& leaf, T* db) {
      BiasGradient<T>(leaf.Of(dy), db, Store::kOverwrite);
    });
    DeliverCopy(pass.sink, bias_, 1, memory.scratch());
  }

 private:
  const int bias_;
  const int64_t offset_;
  std::vector<T> lanes_;  // b for all rows of a panel
};

}  // namespace

ELASTOR_DEFINE_CPU_KERNEL(LogitSumOp, LogitSumKernel)

}  // namespace elastor
