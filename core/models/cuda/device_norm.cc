#include "core/models/cuda/device_norm.h"

#include "core/layers/batch_norm_layer.h"
#include "core/kernels/cuda/norm.h"

namespace elastor::cuda {

template <typename A>
DeviceNorm<A>::DeviceNorm(DeviceContext<A>* context, const std::string& name, int64_t tokens,
                          const NormShape& shape)
    : context_(context), shape_(shape), gain_(context->layout().Find(name + ".gain")) {
  if (shape.kind == NormKind::kLayer) bias_ = context->layout().Find(name + ".bias");
  normalized_ = context->Keep(TokenLayout::kTokenMajor, tokens, shape.width);
  scale_ = context->workspace().Keep({.row = tokens * static_cast<int64_t>(sizeof(float))});
  context->ReserveColumnSums(2 * shape.width, 1);
}

template <typename A>
void DeviceNorm<A>::Forward(const ModulePass& pass, Activations<const A> x,
                            Activations<const A> residual, Activations<A> y) {
  const float* bias = bias_ >= 0 ? context_->values(bias_) : nullptr;
  NormForward<A>(context_->stream(), shape_, x, residual, /*sum=*/{}, context_->values(gain_), bias,
                 y, context_->View(pass.shape, normalized_),
                 context_->workspace().template Slot<float>(scale_));
}

template <typename A>
void DeviceNorm<A>::Backward(const ModulePass& pass, Activations<const A> dy,
                             Activations<const A> residual, Activations<A> dx) {
  const LeafGradients::Target dgain = pass.gradients->Open(gain_, 1);
  float* dbias = nullptr;
  if (bias_ >= 0) dbias = pass.gradients->Open(bias_, 1).data;
  NormBackward<A>(context_->stream(), shape_, pass.shape, context_->View(pass.shape, normalized_),
                  context_->workspace().template Slot<float>(scale_), context_->values(gain_), dy,
                  residual, dx, dgain.data, dbias, dgain.leaf_stride,
                  context_->workspace().scratch());
  pass.gradients->Close(gain_);
  if (bias_ >= 0) pass.gradients->Close(bias_);
}

template <typename A>
DeviceBatchNorm<A>::DeviceBatchNorm(DeviceContext<A>* context, const std::string& name,
                                    int64_t features)
    : context_(context),
      features_(features),
      gain_(context->layout().Find(name + ".gain")),
      bias_(context->layout().Find(name + ".bias")),
      running_mean_(context->layout().Find(name + ".running_mean")),
      running_variance_(context->layout().Find(name + ".running_variance")) {
  const int64_t bytes = features * static_cast<int64_t>(sizeof(float));
  for (int* slot : {&mean_, &variance_, &scale_})
    *slot = context->workspace().Keep({.leaf = bytes});
  running_scale_ = context->workspace().Keep({.once = bytes});
}

template <typename A>
void DeviceBatchNorm<A>::Forward(const ModulePass& pass, Activations<const A> x, Activations<A> y) {
  Stream& stream = context_->stream();
  const auto slot = [&](int index) { return context_->workspace().template Slot<float>(index); };
  const float* mean = context_->values(running_mean_);
  float* scale = slot(running_scale_);
  if (pass.training) {
    mean = slot(mean_);
    scale = slot(scale_);
    BatchStatistics<A>(stream, kBatchNormEpsilon, pass.shape, pass.inputs.leaf_counts, x,
                       slot(mean_), slot(variance_), scale);
  } else {
    BatchNormScale(stream, kBatchNormEpsilon, features_, context_->values(running_variance_),
                   scale);
  }
  BatchNormForward<A>(stream, pass.shape, x, mean, scale, pass.training ? features_ : 0,
                      context_->values(gain_), context_->values(bias_), y);
}

template <typename A>
void DeviceBatchNorm<A>::Backward(const ModulePass& pass, Activations<const A> x,
                                  Activations<const A> dy, Activations<A> dx) {
  const auto slot = [&](int index) { return context_->workspace().template Slot<float>(index); };
  const LeafGradients::Target dgain = pass.gradients->Open(gain_, 1);
  const LeafGradients::Target dbias = pass.gradients->Open(bias_, 1);
  BatchNormBackward<A>(context_->stream(), pass.shape, pass.inputs.leaf_counts, x, slot(mean_),
                       slot(scale_), context_->values(gain_), dy, dx, dgain.data, dbias.data,
                       dgain.leaf_stride);
  pass.gradients->Close(gain_);
  pass.gradients->Close(bias_);
  DeliverStatistic(pass, running_mean_, /*unbiased=*/false, mean_);
  DeliverStatistic(pass, running_variance_, /*unbiased=*/true, variance_);
}

template <typename A>
void DeviceBatchNorm<A>::DeliverStatistic(const ModulePass& pass, int statistic, bool unbiased,
                                          int values) {
  const LeafGradients::Target target = pass.gradients->Open(statistic, 1);
  BatchNormDeliver(context_->stream(), pass.shape, pass.inputs.leaf_counts, pass.inputs.batch_rows,
                   features_, unbiased, context_->workspace().template Slot<float>(values),
                   target.data, target.leaf_stride);
  pass.gradients->Close(statistic);
}

template class DeviceNorm<float>;
template class DeviceNorm<BFloat16>;
template class DeviceBatchNorm<float>;
template class DeviceBatchNorm<BFloat16>;

}  // namespace elastor::cuda
