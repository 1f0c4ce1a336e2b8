#include "core/ops/pairwise_dot.h"

#include "core/kernels/row_matrices.h"
#include "core/ops/cpu/kernel.h"

namespace elastor {
namespace {

template <typename T>
class PairwiseDotKernel final : public CpuKernel<T> {
 public:
  PairwiseDotKernel(const PairwiseDotOp& op, CpuKernelContext*) : op_(op) {}
  KernelTraits traits() const override { return {.reads_inputs = 2, .adds_addend = true}; }

  void Forward(const Pass<T>& pass, const KernelMemory<T>&,
               const ForwardOperands<T>& operands) const override {
    pass.Share(pass.rows(), [&](int64_t begin, int64_t end) {
      const auto rows = [&](auto view) { return view.Rows(begin, end - begin); };
      MultiplyRowMatrices<T>(op_.first, op_.second, op_.width, Tokens(rows(operands.inputs[0])),
                             Tokens(rows(operands.inputs[1])).Transposed(), {},
                             Dots(rows(operands.output)));
    });
  }
  void Backward(const Pass<T>& pass, const KernelMemory<T>&,
                const BackwardOperands<T>& operands) const override {
    pass.Share(pass.rows(), [&](int64_t begin, int64_t end) {
      const auto rows = [&](auto view) {
        return view.data == nullptr ? view : view.Rows(begin, end - begin);
      };
      const RowMatrix<const T> dy = Dots(rows(operands.doutput));
      // The second input's gradient is computed first, since the first input's addend may be that
      // gradient.
      MultiplyRowMatrices<T>(op_.second, op_.width, op_.first, dy.Transposed(),
                             Tokens(rows(operands.inputs[0])), rows(operands.addends[1]),
                             Tokens(rows(operands.dinputs[1])));
      MultiplyRowMatrices<T>(op_.first, op_.width, op_.second, dy, Tokens(rows(operands.inputs[1])),
                             rows(operands.addends[0]), Tokens(rows(operands.dinputs[0])));
    });
  }

 private:
  template <typename U>
  RowMatrix<U> Tokens(Panels<U> view) const {
    return {view, op_.width, 1};
  }
  template <typename U>
  RowMatrix<U> Dots(Panels<U> view) const {
    return {view, op_.second, 1};
  }

  const PairwiseDotOp op_;
};

}  // namespace

ELASTOR_DEFINE_CPU_KERNEL(PairwiseDotOp, PairwiseDotKernel)

}  // namespace elastor
