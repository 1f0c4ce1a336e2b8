#include "core/ops/embedding_input.h"

#include <cmath>
#include <vector>

#include "core/kernels/elementwise.h"
#include "core/ops/cpu/deliver.h"
#include "core/ops/cpu/kernel.h"

namespace elastor {
namespace {

template <typename T>
class EmbeddingInputKernel final : public CpuKernel<T> {
 public:
  EmbeddingInputKernel(const EmbeddingInputOp& op, CpuKernelContext* context) : op_(op) {
    if (op.numeric_fields == 0) return;
    vectors_ = context->parameter(0);
    missing_ = context->parameter(1);
    vectors_offset_ = context->offset(0);
    missing_offset_ = context->offset(1);
    context->Scratch(LeafSumElements(2 * op.numeric_features()));
  }

  KernelTraits traits() const override { return {}; }

  void Prepare(const T* parameters) override {
    vector_values_ = parameters + vectors_offset_;
    missing_values_ = parameters + missing_offset_;
  }

  void Forward(const Pass<T>& pass, const KernelMemory<T>&,
               const ForwardOperands<T>& operands) const override {
    if (op_.numeric_fields == 0) return;
    const Panels<T> e = operands.output.Slice(0, op_.numeric_features());
    for (const LeafRows& leaf : pass.leaves.leaves()) {
      NumericEmbedding<T>(NumericOf(pass, leaf), op_.numeric_fields, op_.width, vector_values_,
                          missing_values_, leaf.Of(e));
    }
  }

  void Backward(const Pass<T>& pass, const KernelMemory<T>& memory,
                const BackwardOperands<T>& operands) const override {
    if (op_.numeric_fields == 0) return;
    const int64_t size = op_.numeric_features();
    const Panels<const T> de = operands.doutput.Slice(0, size);
    if (pass.row_sink != nullptr) return DeliverRowGradients(pass, de);
    // A leaf's dvectors and behind them dmissing.
    T* const sums = memory.scratch();
    SumOverLeaves(pass.leaves.leaves(), 2 * size, sums, [&](const LeafRows& leaf, T* dvectors) {
      NumericEmbeddingBackward<T>(NumericOf(pass, leaf), op_.numeric_fields, op_.width, leaf.Of(de),
                                  dvectors, dvectors + size, Store::kOverwrite);
    });
    DeliverCopy(pass.sink, vectors_, size, sums);
    DeliverCopy(pass.sink, missing_, size, sums + size);
  }

 private:
  // The factors of dE: the fields' values where they are known, and 1 where they are missing.
  void DeliverRowGradients(const Pass<T>& pass, Panels<const T> de) const {
    const int64_t size = op_.numeric_features();
    std::vector<T> factors(PanelElements(pass.rows(), 2 * size));
    const Panels<T> both = {factors.data(), pass.rows(), 2 * size, PanelStride(2 * size)};
    for (const LeafRows& leaf : pass.leaves.leaves()) {
      const Panels<T> of_leaf = leaf.Of(both);
      for (int64_t row = 0; row < leaf.rows; ++row) {
        for (int64_t f = 0; f < size; ++f) {
          const float value = NumericOf(pass, leaf)[row * op_.numeric_fields + f / op_.width];
          const bool missing = std::isnan(value);
          of_leaf.At(row, f) = missing ? T(0) : static_cast<T>(value);
          of_leaf.At(row, size + f) = missing ? T(1) : T(0);
        }
      }
    }
    pass.row_sink->AddTerm(vectors_, 0, de, both.Slice(0, size));
    pass.row_sink->AddTerm(missing_, 0, de, both.Slice(size, size));
  }

  const float* NumericOf(const Pass<T>& pass, const LeafRows& leaf) const {
    return pass.numeric + leaf.first_row * op_.numeric_fields;
  }

  const EmbeddingInputOp op_;
  int vectors_ = -1;
  int missing_ = -1;
  int64_t vectors_offset_ = 0;
  int64_t missing_offset_ = 0;
  const T* vector_values_ = nullptr;
  const T* missing_values_ = nullptr;
};

}  // namespace

ELASTOR_DEFINE_CPU_KERNEL(EmbeddingInputOp, EmbeddingInputKernel)

}  // namespace elastor
