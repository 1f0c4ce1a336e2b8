#include "core/ops/embedding_input.h"

#include "core/kernels/cuda/elementwise.h"
#include "core/ops/cuda/kernel.h"

namespace elastor::cuda {
namespace {

// E is read as [rows, 1, n k].
template <typename A>
class EmbeddingInputKernel final : public DeviceKernel<A> {
 public:
  EmbeddingInputKernel(const EmbeddingInputOp& op, DeviceKernelContext<A>* context)
      : op_(op), context_(context) {
    if (op.numeric_fields > 0) sums_ = context->ReserveColumnSums(2 * op.numeric_features());
  }

  KernelTraits traits() const override {
    KernelTraits traits;
    traits.row_major_output = traits.row_major_doutput = true;
    return traits;
  }

  void Forward(const DevicePass& pass, const ForwardOperands<A>& operands) override {
    if (op_.numeric_fields == 0) return;
    NumericEmbedding<A>(context_->stream(), pass.inputs.numeric, pass.inputs.local_row,
                        op_.numeric_fields, op_.width, context_->values(kVectors),
                        context_->values(kMissing), operands.output.WithTokens(1));
  }

  void Backward(const KernelPass& pass, const BackwardOperands<A>& operands) override {
    if (op_.numeric_fields == 0) return;
    const LeafGradients::Target dvectors = context_->Open(pass, kVectors, 1);
    const LeafGradients::Target dmissing = context_->Open(pass, kMissing, 1);
    NumericEmbeddingBackward<A>(context_->stream(), pass.inputs.numeric, pass.inputs.local_row,
                                op_.numeric_fields, op_.width, pass.shape,
                                operands.doutput.WithTokens(1), dvectors.data, dmissing.data,
                                dvectors.leaf_stride, context_->template Data<float>(sums_));
    context_->Close(pass, kMissing);
    context_->Close(pass, kVectors);
  }

 private:
  static constexpr int kVectors = 0;
  static constexpr int kMissing = 1;

  EmbeddingInputOp op_;
  DeviceKernelContext<A>* context_;
  int sums_ = -1;
};

}  // namespace

ELASTOR_DEFINE_DEVICE_KERNEL(EmbeddingInputOp, EmbeddingInputKernel)

}  // namespace elastor::cuda
