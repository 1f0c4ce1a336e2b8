#include "core/layers/batch_norm_layer.h"

namespace elastor {

template <typename T>
BatchNormLayer<T>::BatchNormLayer(ModelBuilder* builder, const std::string& name, int64_t features)
    : Module<T>(features, features),
      features_(features),
      running_scale_(features),
      layout_(builder->parameters) {
  ParameterLayout& parameters = *builder->parameters;
  gain_ = parameters.Declare(name + ".gain", {features}, Init::Constant(1), Decay::kNone);
  bias_ = parameters.Declare(name + ".bias", {features}, Init::Constant(0), Decay::kNone);
  running_mean_ = parameters.DeclareStatistic(name + ".running_mean", {features}, 0);
  running_variance_ = parameters.DeclareStatistic(name + ".running_variance", {features}, 1);
  mean_ = builder->workspace->Flat(features);
  variance_ = builder->workspace->Flat(features);
  scale_ = builder->workspace->Flat(features);
  builder->whole_leaf = true;
}

template <typename T>
void BatchNormLayer<T>::Prepare(const T* parameters) {
  const auto values = [&](int parameter) { return parameters + (*layout_)[parameter].offset; };
  gain_values_ = values(gain_);
  bias_values_ = values(bias_);
  running_mean_values_ = values(running_mean_);
  BatchNormScale<T>(kBatchNormEpsilon, features_, values(running_variance_), running_scale_.data());
}

template <typename T>
void BatchNormLayer<T>::DoForward(const Pass<T>& pass, Panels<const T> x, Panels<T> y) const {
  if (!pass.training) {
    BatchNormForward<T>(x, running_mean_values_, running_scale_.data(), gain_values_, bias_values_,
                        y);
    return;
  }
  T* const mean = pass.workspace->Flat(mean_);
  T* const scale = pass.workspace->Flat(scale_);
  T* const variance = pass.workspace->Flat(variance_);
  pass.Share(features_, [&](int64_t begin, int64_t end) {
    const Panels<const T> part = x.Slice(begin, end - begin);
    BatchStatistics<T>(kBatchNormEpsilon, part, mean + begin, variance + begin, scale + begin);
    BatchNormForward<T>(part, mean + begin, scale + begin, gain_values_ + begin,
                        bias_values_ + begin, y.Slice(begin, end - begin));
  });
}

template <typename T>
void BatchNormLayer<T>::DoBackward(const Pass<T>& pass, Panels<const T> x, Panels<const T> dy,
                                   Panels<T> dx) const {
  const T* const mean = pass.workspace->Flat(mean_);
  const auto dgain = pass.sink->Open(gain_);
  const auto dbias = pass.sink->Open(bias_);
  CHECK(dgain.store == dbias.store);
  const T* const scale = pass.workspace->Flat(scale_);
  pass.Share(features_, [&](int64_t begin, int64_t end) {
    const int64_t count = end - begin;
    BatchNormBackward<T>(x.Slice(begin, count), mean + begin, scale + begin, gain_values_ + begin,
                         dy.Slice(begin, count), dx.Slice(begin, count), dgain.data + begin,
                         dbias.data + begin, dgain.store);
  });
  pass.sink->Close(gain_);
  pass.sink->Close(bias_);
  const double rows = static_cast<double>(pass.rows);
  DeliverStatistic(pass, running_mean_, mean, 1);
  DeliverStatistic(pass, running_variance_, pass.workspace->Flat(variance_),
                   pass.rows > 1 ? rows / (rows - 1) : 1);
}

template <typename T>
void BatchNormLayer<T>::DeliverStatistic(const Pass<T>& pass, int statistic, const T* values,
                                         double factor) const {
  const auto target = pass.sink->Open(statistic);
  for (int64_t f = 0; f < features_; ++f) {
    const T value = static_cast<T>(values[f] * factor * pass.leaf_share);
    target.data[f] = target.store == Store::kAdd ? target.data[f] + value : value;
  }
  pass.sink->Close(statistic);
}

template class BatchNormLayer<float>;
template class BatchNormLayer<double>;

}  // namespace elastor
