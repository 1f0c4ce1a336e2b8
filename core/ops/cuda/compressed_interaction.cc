#include "core/ops/compressed_interaction.h"

#include "core/kernels/cuda/interaction.h"
#include "core/ops/cuda/kernel.h"

namespace elastor::cuda {
namespace {

// Every sum of products, forward and backward, is one Interaction with W's dimensions in another
// order.
template <typename A>
class CompressedInteractionKernel final : public DeviceKernel<A> {
 public:
  CompressedInteractionKernel(const CompressedInteractionOp& op, DeviceKernelContext<A>* context)
      : op_(op), context_(context) {
    CHECK_EQ(context->size(kWeight), op.maps * op.first * op.b_tokens());
    CHECK_EQ(context->size(kBias), op.maps);
  }

  KernelTraits traits() const override {
    KernelTraits traits;
    traits.reads_inputs = context_->inputs();
    traits.adds_addend = true;
    // The inputs' tokens must be those that the op reads, or lie together.
    for (int i = 0; i < context_->inputs(); ++i) {
      const int64_t tokens = i == 0 ? op_.first : op_.b_tokens();
      if (context_->input(i).tokens != tokens) {
        traits.row_major_input = traits.row_major_dinput = true;
      }
    }
    return traits;
  }
  void Forward(const DevicePass&, const ForwardOperands<A>& operands) override {
    const Activations<const A> a = First(operands.inputs);
    const Activations<const A> b = Second(operands.inputs);
    Interaction<A>(context_->stream(), Weights(kMap, kFirst, kSecond), a, b,
                   context_->values(kBias), {}, operands.output);
  }
  void Backward(const KernelPass& pass, const BackwardOperands<A>& operands) override;

 private:
  static constexpr int kWeight = 0;
  static constexpr int kBias = 1;
  // W's dimensions.
  static constexpr int kMap = 0;
  static constexpr int kFirst = 1;
  static constexpr int kSecond = 2;

  InteractionWeights<A> Weights(int o, int u, int v) const {
    const int64_t strides[] = {op_.first * op_.b_tokens(), op_.b_tokens(), 1};
    return {context_->factors(kWeight), {strides[o], strides[u], strides[v]}};
  }
  Activations<const A> First(const Activations<const A>* inputs) const {
    return inputs[0].WithTokens(op_.first);
  }
  Activations<const A> Second(const Activations<const A>* inputs) const {
    return inputs[context_->inputs() - 1].WithTokens(op_.b_tokens());
  }

  CompressedInteractionOp op_;
  DeviceKernelContext<A>* context_;
};

template <typename A>
void CompressedInteractionKernel<A>::Backward(const KernelPass& pass,
                                              const BackwardOperands<A>& operands) {
  Stream& stream = context_->stream();
  const Activations<const A> a = First(operands.inputs);
  const Activations<const A> b = Second(operands.inputs);
  const Activations<const A> dy = operands.doutput;
  const LeafGradients::Target dw = context_->Open(pass, kWeight, 1);
  const LeafGradients::Target dbias = context_->Open(pass, kBias, 1);
  InteractionGradients<A>(stream, pass.shape, dy, a, b, dw.data, dw.leaf_stride, dbias.data,
                          dbias.leaf_stride);
  context_->Close(pass, kBias);
  context_->Close(pass, kWeight);
  const auto addend = [&](int input, int64_t tokens) {
    const Activations<const A> view = operands.addends[input];
    return view.data == nullptr ? view : view.WithTokens(tokens);
  };
  // The first input's addend may be the second one's gradient.
  const int second = context_->inputs() - 1;
  const Activations<A> db = operands.dinputs[second].WithTokens(op_.b_tokens());
  Interaction<A>(stream, Weights(kSecond, kMap, kFirst), dy, a, nullptr,
                 addend(second, op_.b_tokens()), db);
  const Activations<A> da = operands.dinputs[0].WithTokens(op_.first);
  Interaction<A>(stream, Weights(kFirst, kMap, kSecond), dy, b, nullptr,
                 second == 0 ? Activations<const A>(db) : addend(0, op_.first), da);
}

}  // namespace

ELASTOR_DEFINE_DEVICE_KERNEL(CompressedInteractionOp, CompressedInteractionKernel)

}  // namespace elastor::cuda
