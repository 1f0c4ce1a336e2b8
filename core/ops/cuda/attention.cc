#include "core/ops/attention.h"

#include "core/base/random.h"
#include "core/kernels/cuda/attention.h"
#include "core/kernels/cuda/elementwise.h"
#include "core/ops/cuda/kernel.h"

namespace elastor::cuda {
namespace {

template <typename A>
class AttentionKernel final : public DeviceKernel<A> {
 public:
  AttentionKernel(const AttentionOp& op, DeviceKernelContext<A>* context)
      : op_(op),
        shape_(op.attention),
        key_(MakeRandomKey(context->options().seed, RandomPurpose::kAttentionDropout,
                           op.dropout_layer)),
        context_(context) {
    const auto reserve = [&](int64_t elements) {
      return context->Reserve(DeviceLife::kBackward,
                              {.row = elements * static_cast<int64_t>(sizeof(float))});
    };
    weights_ = reserve(AttentionScratch(shape_));
    gradients_ = reserve(AttentionScratch(shape_));
    if (!op_.position_bias) return;
    row_gradients_ = reserve(shape_.differences());
    sums_ = context->ReserveColumnSums(shape_.differences());
  }

  KernelTraits traits() const override {
    KernelTraits traits;
    traits.reads_inputs = kMaxInputs;
    traits.any_layout = true;
    for (int i = 0; i < context_->inputs(); ++i) {
      if (context_->input(i).tokens != Tokens(i)) traits.row_major_input = true;
    }
    traits.row_major_dinput = traits.row_major_input;
    return traits;
  }

  void Forward(const DevicePass& pass, const ForwardOperands<A>& operands) override {
    const auto& in = operands.inputs;
    AttentionForward<A>(context_->stream(), shape_, Cut(in[0], 0), Cut(in[1], 1), Cut(in[2], 2),
                        RowsOf(pass), bias(), operands.output);
  }

  void Backward(const KernelPass& pass, const BackwardOperands<A>& operands) override {
    Stream& stream = context_->stream();
    const auto& in = operands.inputs;
    const auto& din = operands.dinputs;
    float* const row_gradients =
        op_.position_bias ? context_->template Data<float>(row_gradients_) : nullptr;
    AttentionBackward<A>(stream, shape_, Cut(in[0], 0), Cut(in[1], 1), Cut(in[2], 2), RowsOf(pass),
                         bias(), operands.doutput, Cut(din[0], 0), Cut(din[1], 1), Cut(din[2], 2),
                         row_gradients, context_->template Data<float>(weights_),
                         context_->template Data<float>(gradients_));
    if (!op_.position_bias) return;
    const LeafGradients::Target target = context_->Open(pass, 0, 1);
    LeafColumnSums<float>(stream, pass.shape,
                          Activations<const float>(Activations<float>::RowMajor(
                              row_gradients, pass.shape.rows(), 1, shape_.differences())),
                          target.data, target.map_stride, target.leaf_stride,
                          context_->template Data<float>(sums_));
    context_->Close(pass, 0);
  }

 private:
  int64_t Tokens(int input) const { return input == 0 ? shape_.queries : shape_.keys; }
  template <typename B>
  Activations<B> Cut(const Activations<B>& view, int input) const {
    return view.WithTokens(Tokens(input));
  }
  const float* bias() const { return op_.position_bias ? context_->values(0) : nullptr; }

  AttentionRows RowsOf(const DevicePass& pass) const {
    AttentionRows rows;
    rows.all_keys = op_.sequence < 0;
    if (!rows.all_keys) rows.lengths = pass.LengthsOf(op_.sequence, op_.sequences);
    rows.lengths.count = op_.read_sequences;
    rows.others = op_.others;
    if (pass.training) rows.dropout = pass.Dropout(key_, op_.dropout);
    return rows;
  }

  AttentionOp op_;
  AttentionShape shape_;
  uint64_t key_;
  DeviceKernelContext<A>* context_;
  int weights_;             // [rows, h, Tq, Tk]
  int gradients_;           // of the scores, alike
  int row_gradients_ = -1;  // every row's of the position bias
  int sums_ = -1;
};

}  // namespace

ELASTOR_DEFINE_DEVICE_KERNEL(AttentionOp, AttentionKernel)

}  // namespace elastor::cuda
