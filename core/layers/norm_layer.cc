#include "core/layers/norm_layer.h"

namespace elastor {

template <typename T>
NormLayer<T>::NormLayer(ModelBuilder* builder, const std::string& name, int64_t features,
                        const NormShape& shape)
    : Module<T>(features, features), shape_(shape) {
  CHECK_EQ(features % shape.width, 0);
  ParameterLayout& parameters = *builder->parameters;
  gain_ = parameters.Declare(name + ".gain", {shape.width}, Init::Constant(1), Decay::kNone);
  gain_offset_ = parameters[gain_].offset;
  if (shape.kind == NormKind::kLayer) {
    bias_ = parameters.Declare(name + ".bias", {shape.width}, Init::Constant(0), Decay::kNone);
    bias_offset_ = parameters[bias_].offset;
  }
  normalized_ = builder->workspace->Activations(features);
  scale_ = builder->workspace->Activations(features / shape.width);
}

template <typename T>
void NormLayer<T>::Prepare(const T* parameters) {
  parameters_ = parameters;
}

template <typename T>
void NormLayer<T>::DoForward(const Pass<T>& pass, Panels<const T> x, Panels<T> y) const {
  NormForward<T>(shape_, x, parameters_ + gain_offset_,
                 bias_ >= 0 ? parameters_ + bias_offset_ : nullptr, y, pass.Slot(normalized_),
                 pass.Slot(scale_));
}

template <typename T>
void NormLayer<T>::DoBackward(const Pass<T>& pass, Panels<const T> x, Panels<const T> dy,
                              Panels<T> dx) const {
  (void)x;
  BackwardWithResidual(pass, dy, {}, dx);
}

template <typename T>
void NormLayer<T>::BackwardWithResidual(const Pass<T>& pass, Panels<const T> dy,
                                        Panels<const T> residual, Panels<T> dx) const {
  const auto dgain = pass.sink->Open(gain_);
  const auto dbias =
      bias_ >= 0 ? pass.sink->Open(bias_) : typename GradientSink<T>::Target{nullptr, dgain.store};
  CHECK(dbias.store == dgain.store);
  NormBackward<T>(shape_, pass.Slot(normalized_), pass.Slot(scale_), parameters_ + gain_offset_, dy,
                  residual, dx, dgain.data, dbias.data, dgain.store);
  pass.sink->Close(gain_);
  if (bias_ >= 0) pass.sink->Close(bias_);
}

template class NormLayer<float>;
template class NormLayer<double>;

}  // namespace elastor
