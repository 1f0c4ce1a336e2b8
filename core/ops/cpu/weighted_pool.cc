#include "core/ops/weighted_pool.h"

#include "core/kernels/matmul.h"
#include "core/ops/cpu/deliver.h"
#include "core/ops/cpu/kernel.h"

namespace elastor {
namespace {

// Feature k of a group's tokens is a vector of T numbers, of which a product with one row of U
// makes one.
template <typename T>
class WeightedPoolKernel final : public CpuKernel<T> {
 public:
  WeightedPoolKernel(const WeightedPoolOp& op, CpuKernelContext* context)
      : op_(op),
        weight_(context->parameter(0)),
        weight_offset_(context->offset(0)),
        precision_(context->precision()),
        forward_(op.width, PackedMatrix<T>(precision_)),
        transposed_(op.width, PackedMatrix<T>(precision_)) {
    CHECK_EQ(context->info(0).size, op.width * op.tokens) << context->info(0).name;
    context->Scratch(LeafSumElements(op.width * op.tokens));
  }

  KernelTraits traits() const override { return {.reads_inputs = 1, .adds_addend = true}; }

  void Prepare(const T*) override {
    for (PackedMatrix<T>& u : forward_) u.Reshape(1, op_.tokens);
    for (PackedMatrix<T>& u : transposed_) u.Reshape(op_.tokens, 1);
  }
  void Repack(const T* parameters, int part, int parts) override {
    const Range features = PartOf(part, parts, op_.width);
    for (int64_t k = features.begin; k < features.end; ++k) {
      const auto u =
          MatrixView<T>::RowMajor(parameters + weight_offset_ + k * op_.tokens, 1, op_.tokens);
      forward_[k].PackPart({{u}}, 0, 1);
      transposed_[k].PackPart({{u.Transposed()}}, 0, 1);
    }
  }

  void Forward(const Pass<T>& pass, const KernelMemory<T>&,
               const ForwardOperands<T>& operands) const override {
    pass.Share(pass.rows(), [&](int64_t begin, int64_t end) {
      const Panels<const T> x = operands.inputs[0].Rows(begin, end - begin);
      const Panels<T> y = operands.output.Rows(begin, end - begin);
      ForEachFeature([&](int64_t group, int64_t k) {
        MatMul<T>(forward_[k], {{Tokens(x, group, k)}}, Pooled(y, group, k), {});
      });
    });
  }

  void Backward(const Pass<T>& pass, const KernelMemory<T>& memory,
                const BackwardOperands<T>& operands) const override {
    T* const scratch = memory.scratch();
    const int64_t weights = op_.width * op_.tokens;
    SumOverLeaves(pass.leaves.leaves(), weights, scratch, [&](const LeafRows& leaf, T* dw) {
      const Panels<const T> x = leaf.Of(operands.inputs[0]);
      const Panels<const T> dy = leaf.Of(operands.doutput);
      ForEachFeature([&](int64_t group, int64_t k) {
        WeightGradient<T>(Pooled(dy, group, k), Tokens(x, group, k), dw + k * op_.tokens,
                          op_.tokens, group == 0 ? Store::kOverwrite : Store::kAdd, precision_);
      });
    });
    DeliverCopy(pass.sink, weight_, weights, scratch);
    pass.Share(pass.rows(), [&](int64_t begin, int64_t end) {
      const auto rows = [&](auto view) { return view.Rows(begin, end - begin); };
      ForEachFeature([&](int64_t group, int64_t k) {
        Epilogue<T> epilogue;
        if (operands.addends[0].data != nullptr) {
          epilogue.residual = Tokens(rows(operands.addends[0]), group, k);
        }
        MatMul<T>(transposed_[k], {{Pooled(rows(operands.doutput), group, k)}},
                  Tokens(rows(operands.dinputs[0]), group, k), epilogue);
      });
    });
  }

 private:
  // Feature k of every token of a group; of its sum.
  template <typename U>
  Panels<U> Tokens(Panels<U> x, int64_t group, int64_t k) const {
    return x.Every(group * op_.tokens * op_.width + k, op_.width, op_.tokens);
  }
  template <typename U>
  Panels<U> Pooled(Panels<U> y, int64_t group, int64_t k) const {
    return y.Slice(group * op_.width + k, 1);
  }
  template <typename Work>
  void ForEachFeature(const Work& work) const {
    for (int64_t group = 0; group < op_.groups; ++group) {
      for (int64_t k = 0; k < op_.width; ++k) work(group, k);
    }
  }

  const WeightedPoolOp op_;
  int weight_;
  int64_t weight_offset_;
  Precision precision_;
  std::vector<PackedMatrix<T>> forward_;     // the rows of U
  std::vector<PackedMatrix<T>> transposed_;  // as columns
};

}  // namespace

ELASTOR_DEFINE_CPU_KERNEL(WeightedPoolOp, WeightedPoolKernel)

}  // namespace elastor
