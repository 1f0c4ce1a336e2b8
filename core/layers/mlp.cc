#include "core/layers/mlp.h"

#include "core/layers/batch_norm_layer.h"
#include "core/layers/dropout.h"
#include "core/layers/norm_layer.h"
#include "core/kernels/elementwise.h"

namespace elastor {

template <typename T>
Mlp<T>::Mlp(ModelBuilder* builder, const std::string& name, const MlpOptions& options)
    : Module<T>(options.tokens * options.inputs, options.tokens * options.outputs),
      options_(options) {
  const bool with_norm = options.hidden_norm != HiddenNorm::kNone;
  CHECK(!with_norm || options.activation == Activation::kRelu);
  WorkspacePlan& workspace = *builder->workspace;
  int64_t in = options.inputs;
  for (size_t i = 0; i < options.hidden.size(); ++i) {
    const std::string layer_name = name + ".hidden" + std::to_string(i);
    const int64_t features = options.tokens * options.hidden[i];
    Layer layer;
    layer.linear = std::make_unique<TokenLinear<T>>(
        builder, layer_name, options.tokens, in, options.hidden[i],
        with_norm ? Activation::kIdentity : options.activation, options.sharing,
        options.hidden_norm == HiddenNorm::kBatch ? Bias::kNone : Bias::kAdded);
    if (options.hidden_norm == HiddenNorm::kRms) {
      const NormShape shape{NormKind::kRms, options.hidden[i], kHiddenRmsEpsilon};
      layer.norm = std::make_unique<NormLayer<T>>(builder, layer_name + ".norm", features, shape);
    } else if (with_norm) {
      layer.norm = std::make_unique<BatchNormLayer<T>>(builder, layer_name + ".norm", features);
    }
    if (with_norm) {
      layer.linear_out = workspace.Activations(features);
      layer.norm_out = workspace.Activations(features);
    }
    layer.out = workspace.Activations(features);
    layer.dout = workspace.Activations(features);
    layer.dropout_layer = builder->dropout_layers++;
    hidden_.push_back(std::move(layer));
    in = options.hidden[i];
  }
  output_ =
      std::make_unique<TokenLinear<T>>(builder, name + ".output", options.tokens, in,
                                       options.outputs, Activation::kIdentity, options.sharing);
}

template <typename T>
int64_t Mlp<T>::multiply_adds() const {
  int64_t sum = output_->multiply_adds();
  for (const Layer& layer : hidden_) sum += layer.linear->multiply_adds();
  return sum;
}

template <typename T>
void Mlp<T>::Prepare(const T* parameters) {
  for (Layer& layer : hidden_) {
    layer.linear->Prepare(parameters);
    if (layer.norm) layer.norm->Prepare(parameters);
  }
  output_->Prepare(parameters);
}

template <typename T>
void Mlp<T>::DoForward(const Pass<T>& pass, Panels<const T> x, Panels<T> y) const {
  for (const Layer& layer : hidden_) {
    const Panels<T> out = pass.Slot(layer.out);
    if (layer.norm) {
      const Panels<T> normal = pass.Slot(layer.norm_out);
      layer.linear->Forward(pass, x, pass.Slot(layer.linear_out));
      layer.norm->Forward(pass, pass.Slot(layer.linear_out), normal);
      pass.Share(pass.rows, [&](int64_t begin, int64_t end) {
        const Panels<T> derivative = normal.Rows(begin, end - begin);
        Relu<T>(derivative, out.Rows(begin, end - begin), derivative);
      });
    } else {
      layer.linear->Forward(pass, x, out);
    }
    ApplyDropout(pass, options_.dropout, layer.dropout_layer, out);
    x = out;
  }
  output_->Forward(pass, x, y);
}

template <typename T>
void Mlp<T>::DoBackward(const Pass<T>& pass, Panels<const T> x, Panels<const T> dy,
                        Panels<T> dx) const {
  const int layers = static_cast<int>(hidden_.size());
  const auto input = [&](int i) {
    return i == 0 ? x : Panels<const T>(pass.Slot(hidden_[i - 1].out));
  };
  const auto dinput = [&](int i) { return i == 0 ? dx : pass.Slot(hidden_[i - 1].dout); };
  output_->Backward(pass, input(layers), dy, dinput(layers));
  for (int i = layers - 1; i >= 0; --i) {
    const Layer& layer = hidden_[i];
    Panels<T> dout = pass.Slot(layer.dout);
    ApplyDropout(pass, options_.dropout, layer.dropout_layer, dout);
    if (layer.norm) {
      pass.Share(pass.rows, [&](int64_t begin, int64_t end) {
        const Panels<T> part = dout.Rows(begin, end - begin);
        Multiply<T>(part, pass.Slot(layer.norm_out).Rows(begin, end - begin), part);  // by ReLU'
      });
      layer.norm->Backward(pass, pass.Slot(layer.linear_out), dout, dout);
    }
    layer.linear->Backward(pass, input(i), dout, dinput(i));
  }
}

template class Mlp<float>;
template class Mlp<double>;

}  // namespace elastor
