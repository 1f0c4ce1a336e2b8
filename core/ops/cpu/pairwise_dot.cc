#include "core/ops/pairwise_dot.h"

#include "core/kernels/row_matrices.h"
#include "core/ops/cpu/kernel.h"

namespace elastor {
namespace {

template <typename U>
RowMatrix<U> Tokens(const PairwiseDotOp& op, Panels<U> view) {
  return {view, op.width, 1};
}
template <typename U>
RowMatrix<U> Dots(const PairwiseDotOp& op, Panels<U> view) {
  return {view, op.second, 1};
}

}  // namespace

template <typename T>
std::unique_ptr<CpuKernel<T>> MakeCpuKernel(const PairwiseDotOp& op, CpuKernelContext*) {
  const auto forward = [op](const Pass<T>& pass, const ForwardOperands<T>& o) {
    pass.Share(pass.rows(), [&](int64_t begin, int64_t end) {
      const auto rows = [&](auto view) { return view.Rows(begin, end - begin); };
      MultiplyRowMatrices<T>(op.first, op.second, op.width, Tokens(op, rows(o.inputs[0])),
                             Tokens(op, rows(o.inputs[1])).Transposed(), {},
                             Dots(op, rows(o.output)));
    });
  };
  const auto backward = [op](const Pass<T>& pass, const BackwardOperands<T>& o) {
    pass.Share(pass.rows(), [&](int64_t begin, int64_t end) {
      const auto rows = [&](auto view) {
        return view.data == nullptr ? view : view.Rows(begin, end - begin);
      };
      const RowMatrix<const T> dy = Dots(op, rows(o.doutput));
      // The second input's gradient is computed first, since the first input's addend may be that
      // gradient.
      MultiplyRowMatrices<T>(op.second, op.width, op.first, dy.Transposed(),
                             Tokens(op, rows(o.inputs[0])), rows(o.addends[1]),
                             Tokens(op, rows(o.dinputs[1])));
      MultiplyRowMatrices<T>(op.first, op.width, op.second, dy, Tokens(op, rows(o.inputs[1])),
                             rows(o.addends[0]), Tokens(op, rows(o.dinputs[0])));
    });
  };
  return KernelOf<T>({.reads_inputs = 2, .adds_addend = true}, forward, backward);
}

ELASTOR_INSTANTIATE_CPU_KERNEL(PairwiseDotOp)

}  // namespace elastor
