#include "core/models/cuda/device_mlp.h"

#include <algorithm>
#include <utility>

#include "core/kernels/cuda/elementwise.h"

namespace elastor::cuda {

template <typename A>
TokenLayout DeviceMlp<A>::Layout(const MlpOptions& options) {
  const bool own = options.tokens > 1 && options.sharing == Sharing::kOwnWeights;
  return own ? TokenLayout::kTokenMajor : TokenLayout::kRowMajor;
}

template <typename A>
DeviceMlp<A>::DeviceMlp(DeviceContext<A>* context, const std::string& name,
                        const MlpOptions& options)
    : context_(context), options_(options) {
  const DeviceWorkspace::Frame frame(&context->workspace());
  int dout[2] = {-1, -1};  // hidden layers' gradients, in turn
  if (!options.hidden.empty()) {
    const int64_t widest = *std::max_element(options.hidden.begin(), options.hidden.end());
    for (int& slot : dout) {
      slot = context->Temporary(TokenLayout::kRowMajor, options.tokens, widest).slot;
    }
  }
  int64_t in = options.inputs;
  for (size_t i = 0; i < options.hidden.size(); ++i) {
    MakeHidden(name + ".hidden" + std::to_string(i), in, options.hidden[i], dout[i % 2]);
    in = options.hidden[i];
  }
  output_ = std::make_unique<DeviceLinear<A>>(context, name + ".output", options.tokens, in,
                                              options.outputs, options.sharing);
}

template <typename A>
void DeviceMlp<A>::MakeHidden(const std::string& name, int64_t in, int64_t out, int dout) {
  const TokenLayout layout = Layout(options_);
  const int64_t tokens = options_.tokens;
  const bool batch_norm = options_.hidden_norm == HiddenNorm::kBatch;
  Layer layer;
  layer.linear = std::make_unique<DeviceLinear<A>>(
      context_, name, tokens, in, out, options_.sharing, batch_norm ? Bias::kNone : Bias::kAdded);
  if (batch_norm) {
    layer.batch_norm = std::make_unique<DeviceBatchNorm<A>>(context_, name + ".norm", out);
  } else if (options_.hidden_norm == HiddenNorm::kRms) {
    const NormShape shape{NormKind::kRms, out, kHiddenRmsEpsilon};
    layer.norm = std::make_unique<DeviceNorm<A>>(context_, name + ".norm", tokens, shape);
  }
  layer.out = context_->Keep(layout, tokens, out);
  layer.z = layer.out;  // a norm saves what it needs of z; ReLU needs its result only
  if (batch_norm || options_.activation != Activation::kRelu) {
    layer.z = context_->Keep(layout, tokens, out);
  }
  layer.dout = {dout, layout, tokens, out};
  layer.dropout_layer = context_->NextDropoutLayer();
  hidden_.push_back(std::move(layer));
}

template <typename A>
void DeviceMlp<A>::Forward(const ModulePass& pass, Activations<const A> x, Activations<A> y) {
  output_->Forward(pass, ForwardHidden(pass, x), Activation::kIdentity, y, y);
}

template <typename A>
void DeviceMlp<A>::ForwardInFloat(const ModulePass& pass, Activations<const A> x,
                                  Activations<float> y) {
  output_->Forward(pass, ForwardHidden(pass, x), Activation::kIdentity, y, y);
}

template <typename A>
Activations<const A> DeviceMlp<A>::ForwardHidden(const ModulePass& pass, Activations<const A> x) {
  for (Layer& layer : hidden_) {
    ForwardLayer(pass, layer, x);
    x = context_->View(pass.shape, layer.out);
    ApplyDropout<A>(*context_, pass, options_.dropout, layer.dropout_layer,
                    context_->View(pass.shape, layer.out));
  }
  return x;
}

template <typename A>
void DeviceMlp<A>::ForwardLayer(const ModulePass& pass, Layer& layer, Activations<const A> x) {
  const Activations<A> z = context_->View(pass.shape, layer.z);
  const Activations<A> out = context_->View(pass.shape, layer.out);
  if (layer.norm == nullptr && layer.batch_norm == nullptr) {
    return layer.linear->Forward(pass, x, options_.activation, z, out);
  }
  layer.linear->Forward(pass, x, Activation::kIdentity, z, z);
  if (layer.norm) {
    layer.norm->Forward(pass, z, {}, out);
  } else {
    layer.batch_norm->Forward(pass, z, out);
  }
  BiasActivation<A>(context_->stream(), Activation::kRelu, nullptr, false, out, out);
}

template <typename A>
void DeviceMlp<A>::Backward(const ModulePass& pass, Activations<const A> x, Activations<const A> dy,
                            Activations<A> dx) {
  const int layers = static_cast<int>(hidden_.size());
  const auto input = [&](int i) {
    return i == 0 ? x : Activations<const A>(context_->View(pass.shape, hidden_[i - 1].out));
  };
  const auto dinput = [&](int i) {
    return i == 0 ? dx : context_->View(pass.shape, hidden_[i - 1].dout);
  };
  output_->Backward(pass, input(layers), dy, dinput(layers));
  for (int i = layers - 1; i >= 0; --i) {
    const Activations<A> dout = context_->View(pass.shape, hidden_[i].dout);
    BackwardLayer(pass, hidden_[i], dout);
    hidden_[i].linear->Backward(pass, input(i), dout, dinput(i));
  }
}

template <typename A>
void DeviceMlp<A>::BackwardLayer(const ModulePass& pass, Layer& layer, Activations<A> dout) {
  ApplyDropout<A>(*context_, pass, options_.dropout, layer.dropout_layer, dout);
  // Dropout leaves the sign that ReLU's derivative needs, or a gradient of 0.
  const bool relu = options_.activation == Activation::kRelu;
  ActivationBackward<A>(context_->stream(), options_.activation,
                        context_->View(pass.shape, relu ? layer.out : layer.z), dout, dout);
  if (layer.norm) layer.norm->Backward(pass, dout, {}, dout);
  if (layer.batch_norm) {
    layer.batch_norm->Backward(pass, context_->View(pass.shape, layer.z), dout, dout);
  }
}

template class DeviceMlp<float>;
template class DeviceMlp<BFloat16>;

}  // namespace elastor::cuda
