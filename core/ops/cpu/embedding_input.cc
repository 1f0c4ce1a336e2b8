#include "core/ops/embedding_input.h"

#include "core/kernels/elementwise.h"
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
  }

  KernelTraits traits() const override { return {}; }

  void Prepare(const T* parameters) override {
    vector_values_ = parameters + vectors_offset_;
    missing_values_ = parameters + missing_offset_;
  }

  void Forward(const Pass<T>& pass, const KernelMemory<T>&,
               const ForwardOperands<T>& operands) const override {
    if (op_.numeric_fields == 0) return;
    NumericEmbedding<T>(pass.numeric, op_.numeric_fields, op_.width, vector_values_,
                        missing_values_, operands.output.Slice(0, op_.numeric_features()));
  }

  void Backward(const Pass<T>& pass, const KernelMemory<T>&,
                const BackwardOperands<T>& operands) const override {
    if (op_.numeric_fields == 0) return;
    const auto dvectors = pass.sink->Open(vectors_);
    const auto dmissing = pass.sink->Open(missing_);
    CHECK(dvectors.store == dmissing.store);
    NumericEmbeddingBackward<T>(pass.numeric, op_.numeric_fields, op_.width,
                                operands.doutput.Slice(0, op_.numeric_features()), dvectors.data,
                                dmissing.data, dvectors.store);
    pass.sink->Close(vectors_);
    pass.sink->Close(missing_);
  }

 private:
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
