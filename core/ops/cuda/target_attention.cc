#include "core/ops/target_attention.h"

#include <vector>

#include "core/kernels/cuda/elementwise.h"
#include "core/kernels/cuda/target_attention.h"
#include "core/ops/cuda/kernel.h"
#include "core/ops/cuda/linear_products.h"

namespace elastor::cuda {
namespace {

// All L positions of all rows go through the MLP, whose products' shapes must be known before a
// batch is; what the MLP makes is kept for the backward pass.
template <typename A>
class TargetAttentionKernel final : public DeviceKernel<A> {
 public:
  TargetAttentionKernel(const TargetAttentionOp& op, DeviceKernelContext<A>* context);

  KernelTraits traits() const override {
    KernelTraits traits;
    traits.reads_inputs = 1;
    traits.row_major_input = traits.row_major_output = true;
    traits.row_major_dinput = traits.row_major_doutput = true;
    return traits;
  }
  void Forward(const DevicePass& pass, const ForwardOperands<A>& operands) override;
  void Backward(const KernelPass& pass, const BackwardOperands<A>& operands) override;

 private:
  using View = typename DeviceKernelContext<A>::View;
  struct Layer {
    LinearProducts<A> products;
    int bias = -1;  // its place among the parameters; -1: none
    int bias_sums = -1;
    View input = {};
    View z = {};       // hidden layers but with ReLU: before the activation
    View dinput = {};  // the gradient of the input
  };

  View Reserve(DeviceLife life, int64_t features) {
    return context_->Reserve(life, TokenLayout::kRowMajor, {op_.positions, features});
  }
  // Positions as rows.
  Activations<A> Positions(const DevicePass& pass, const View& view) const {
    return Activations<A>::RowMajor(context_->At(pass, view).data,
                                    pass.shape.rows() * op_.positions, 1, view.shape.width);
  }
  TargetAttentionShape ShapeOf(const DevicePass& pass) const {
    return {.fields = op_.fields,
            .positions = op_.positions,
            .width = op_.width,
            .target = op_.target,
            .field = op_.field,
            .lengths = pass.LengthsOf(op_.sequence, op_.sequences)};
  }

  TargetAttentionOp op_;
  DeviceKernelContext<A>* context_;
  std::vector<Layer> layers_;
  int scores_ = -1;
  int weights_ = -1;
  int dweights_ = -1;
  View dscores_;
};

template <typename A>
TargetAttentionKernel<A>::TargetAttentionKernel(const TargetAttentionOp& op,
                                                DeviceKernelContext<A>* context)
    : op_(op), context_(context) {
  int parameter = 0;
  for (int64_t i = 0; i < op.layers(); ++i) {
    const int64_t in = op.layer_in(i);
    const int64_t out = op.layer_out(i);
    Layer layer = {.products = LinearProducts<A>(context, parameter++, 1, out, in)};
    if (op.has_bias(i)) {
      layer.bias = parameter++;
      layer.bias_sums = context->ReserveColumnSums(out, op.positions);
    }
    layer.input = Reserve(DeviceLife::kKept, in);
    layer.dinput = Reserve(DeviceLife::kBackward, in);
    if (i + 1 < op.layers() && op.activation != Activation::kRelu) {
      layer.z = Reserve(DeviceLife::kKept, out);
    }
    layers_.push_back(layer);
  }
  const DeviceBytes floats = {.row = op.positions * static_cast<int64_t>(sizeof(float))};
  scores_ = context->Reserve(DeviceLife::kForward, floats);
  weights_ = context->Reserve(DeviceLife::kKept, floats);
  dweights_ = context->Reserve(DeviceLife::kBackward, floats);
  dscores_ = Reserve(DeviceLife::kBackward, 1);
}

template <typename A>
void TargetAttentionKernel<A>::Forward(const DevicePass& pass, const ForwardOperands<A>& operands) {
  Stream& stream = context_->stream();
  const TargetAttentionShape shape = ShapeOf(pass);
  const Activations<const A> x = operands.inputs[0].WithTokens(1);
  TargetAttentionInputs<A>(stream, shape, x, Positions(pass, layers_[0].input));
  float* const scores = context_->template Data<float>(scores_);
  for (size_t i = 0; i < layers_.size(); ++i) {
    Layer& layer = layers_[i];
    const Activations<const A> input = Positions(pass, layer.input);
    typename LinearProducts<A>::Epilogue epilogue;
    if (layer.bias >= 0) epilogue.bias = context_->values(layer.bias);
    if (i + 1 == layers_.size()) {
      layer.products.Forward(pass, input, Activations<float>::RowMajor(scores, input.rows, 1, 1),
                             epilogue);
      continue;
    }
    const Activations<A> output = Positions(pass, layers_[i + 1].input);
    epilogue.relu = layer.z.empty();
    const Activations<A> z = layer.z.empty() ? output : Positions(pass, layer.z);
    layer.products.Forward(pass, input, z, epilogue);
    if (!layer.z.empty()) BiasActivation<A>(stream, op_.activation, nullptr, false, z, output);
  }
  float* const weights = context_->template Data<float>(weights_);
  TargetAttentionWeights(stream, shape, x.rows, op_.softmax, scores, weights);
  TargetAttentionOutput<A>(stream, shape, x, weights, operands.output.WithTokens(1));
}

template <typename A>
void TargetAttentionKernel<A>::Backward(const KernelPass& pass,
                                        const BackwardOperands<A>& operands) {
  Stream& stream = context_->stream();
  const TargetAttentionShape shape = ShapeOf(pass);
  const Activations<const A> x = operands.inputs[0].WithTokens(1);
  const Activations<const A> dy = operands.doutput.WithTokens(1);
  const float* const weights = context_->template Data<float>(weights_);
  Activations<A> dz = Positions(pass, dscores_);
  TargetAttentionScoreGradients<A>(stream, shape, op_.softmax, x, weights, dy,
                                   context_->template Data<float>(dweights_), dz);
  for (int64_t i = op_.layers() - 1; i >= 0; --i) {
    Layer& layer = layers_[i];
    const Activations<A> input = Positions(pass, layer.input);
    if (layer.bias >= 0) DeliverBias<A>(context_, pass, layer.bias, dz, layer.bias_sums);
    layer.products.WeightGradient(pass, dz, input);
    const Activations<A> dinput = Positions(pass, layer.dinput);
    layer.products.InputGradient(pass, dz, dinput, Store::kOverwrite);
    dz = dinput;
    if (i == 0) break;
    const View& z = layers_[i - 1].z;
    ActivationBackward<A>(stream, op_.activation, z.empty() ? input : Positions(pass, z), dz, dz);
  }
  TargetAttentionInputGradients<A>(stream, shape, x, weights, dy, dz,
                                   operands.dinputs[0].WithTokens(1));
}

}  // namespace

ELASTOR_DEFINE_DEVICE_KERNEL(TargetAttentionOp, TargetAttentionKernel)

}  // namespace elastor::cuda
