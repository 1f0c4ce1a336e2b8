#include "core/models/cuda/device_feed_forward.h"

#include <utility>

#include "core/kernels/cuda/elementwise.h"

namespace elastor::cuda {

template <typename A>
DeviceGatedFeedForward<A>::DeviceGatedFeedForward(DeviceContext<A>* context,
                                                  const std::string& name, int64_t tokens,
                                                  int64_t width, int64_t hidden,
                                                  Activation activation)
    : context_(context),
      activation_(activation),
      lift_(context, name + ".lift", tokens, 2 * hidden, width),
      down_(context, name + ".down", tokens, width, hidden),
      residual_(context, name + ".residual", tokens, width, width),
      lifted_(context->Keep(TokenLayout::kTokenMajor, tokens, 2 * hidden)),
      h_(context->Keep(TokenLayout::kTokenMajor, tokens, hidden)) {
  const DeviceWorkspace::Frame frame(&context->workspace());
  dh_ = context->Temporary(TokenLayout::kTokenMajor, tokens, hidden);
}

template <typename A>
void DeviceGatedFeedForward<A>::Forward(const ModulePass& pass, Activations<const A> x,
                                        Activations<A> y) {
  const Activations<A> lifted = context_->View(pass.shape, lifted_);
  const Activations<A> h = context_->View(pass.shape, h_);
  lift_.Forward(pass, x, lifted, {});
  GatedUnit<A>(context_->stream(), activation_, lifted, h);
  down_.template Forward<A>(pass, h, y, {});
  residual_.Forward(pass, x, y, {.store = Store::kAdd});
}

template <typename A>
void DeviceGatedFeedForward<A>::Backward(const ModulePass& pass, Activations<const A> x,
                                         Activations<const A> dy, Activations<A> dx) {
  const Activations<A> lifted = context_->View(pass.shape, lifted_);
  const Activations<A> dlifted = lifted;
  const Activations<A> dh = context_->View(pass.shape, dh_);
  down_.InputGradient(pass, dy, dh, Store::kOverwrite);
  GatedUnitBackward<A>(context_->stream(), activation_, lifted, dh, dlifted);
  residual_.WeightGradient(pass, dy, x);
  down_.WeightGradient(pass, dy, context_->View(pass.shape, h_));
  lift_.WeightGradient(pass, dlifted, x);
  lift_.InputGradient(pass, dlifted, dx, Store::kOverwrite);
  residual_.InputGradient(pass, dy, dx, Store::kAdd);
}

template <typename A>
DeviceGatedSumFeedForward<A>::DeviceGatedSumFeedForward(DeviceContext<A>* context,
                                                        const std::string& name, int64_t tokens,
                                                        int64_t width, int64_t hidden,
                                                        Activation activation)
    : context_(context),
      tokens_(tokens),
      width_(width),
      activation_(activation),
      lift_(context, name + ".lift", tokens, 3 * hidden, width),
      down_(context, name + ".down", tokens, width, hidden),
      residual_(context, name + ".residual", tokens, width, width),
      lift_bias_(context->layout().Find(name + ".lift_bias")),
      down_bias_(context->layout().Find(name + ".down_bias")),
      residual_bias_(context->layout().Find(name + ".residual_bias")),
      lifted_(context->Keep(TokenLayout::kTokenMajor, tokens, 3 * hidden)),
      h_(context->Keep(TokenLayout::kTokenMajor, tokens, hidden)) {
  const DeviceWorkspace::Frame frame(&context->workspace());
  dh_ = context->Temporary(TokenLayout::kTokenMajor, tokens, hidden);
  output_bias_ = context->workspace().Temporary(
      {.once = tokens * width * static_cast<int64_t>(sizeof(float))});
  context->ReserveColumnSums(tokens * 3 * hidden, 1);
  context->ReserveColumnSums(tokens * width, 1);
}

template <typename A>
void DeviceGatedSumFeedForward<A>::Forward(const ModulePass& pass, Activations<const A> x,
                                           Activations<A> y) {
  Stream& stream = context_->stream();
  const Activations<A> lifted = context_->View(pass.shape, lifted_);
  const Activations<A> h = context_->View(pass.shape, h_);
  lift_.Forward(pass, x, lifted, {});
  GatedSumUnit<A>(stream, activation_, context_->values(lift_bias_), lifted, h);
  down_.template Forward<A>(pass, h, y, {});
  residual_.Forward(pass, x, y, {.store = Store::kAdd});
  const auto bias = [&](const float* values) {
    return Activations<const float>::RowMajor(values, 1, tokens_, width_);
  };
  float* const output_bias = context_->workspace().template Slot<float>(output_bias_);
  Add<float>(stream, bias(context_->values(down_bias_)), bias(context_->values(residual_bias_)),
             Activations<float>::RowMajor(output_bias, 1, tokens_, width_));
  BiasActivation<A>(stream, Activation::kIdentity, output_bias, false, y, y);
}

template <typename A>
void DeviceGatedSumFeedForward<A>::Backward(const ModulePass& pass, Activations<const A> x,
                                            Activations<const A> dy, Activations<A> dx) {
  const Activations<A> lifted = context_->View(pass.shape, lifted_);
  const Activations<A> dlifted = lifted;
  const Activations<A> dh = context_->View(pass.shape, dh_);
  down_.InputGradient(pass, dy, dh, Store::kOverwrite);
  GatedSumUnitBackward<A>(context_->stream(), activation_, context_->values(lift_bias_), lifted, dh,
                          dlifted);
  DeliverOutputBiases(pass, dy);
  residual_.WeightGradient(pass, dy, x);
  down_.WeightGradient(pass, dy, context_->View(pass.shape, h_));
  DeliverBias<A>(context_, pass, lift_bias_, dlifted);
  lift_.WeightGradient(pass, dlifted, x);
  lift_.InputGradient(pass, dlifted, dx, Store::kOverwrite);
  residual_.InputGradient(pass, dy, dx, Store::kAdd);
}

template <typename A>
void DeviceGatedSumFeedForward<A>::DeliverOutputBiases(const ModulePass& pass,
                                                       Activations<const A> dy) {
  // w and s have the same gradient, the sum of dy.
  const LeafGradients::Target ddown = pass.gradients->Open(down_bias_, tokens_);
  const LeafGradients::Target dresidual = pass.gradients->Open(residual_bias_, tokens_);
  LeafColumnSums<A>(context_->stream(), pass.shape, dy, ddown.data, ddown.map_stride,
                    ddown.leaf_stride, context_->workspace().scratch());
  Copy(context_->stream(), dresidual.data, ddown.data, pass.shape.leaves * tokens_ * width_);
  pass.gradients->Close(residual_bias_);
  pass.gradients->Close(down_bias_);
}

template <typename A>
DeviceResidual<A>::DeviceResidual(DeviceContext<A>* context, const std::string& name,
                                  int64_t tokens, const NormShape& norm,
                                  std::unique_ptr<DeviceModule<A>> inner)
    : context_(context),
      inner_(std::move(inner)),
      norm_(context, name + ".norm", tokens, norm),
      normal_(context->Keep(TokenLayout::kTokenMajor, tokens, norm.width)) {}

template <typename A>
void DeviceResidual<A>::Forward(const ModulePass& pass, Activations<const A> x, Activations<A> y) {
  const Activations<A> normal = context_->View(pass.shape, normal_);
  norm_.Forward(pass, x, {}, normal);
  inner_->Forward(pass, normal, y);
  Add<A>(context_->stream(), x, y, y);
}

template <typename A>
void DeviceResidual<A>::Backward(const ModulePass& pass, Activations<const A> x,
                                 Activations<const A> dy, Activations<A> dx) {
  (void)x;
  inner_->Backward(pass, context_->View(pass.shape, normal_), dy, dx);
  norm_.Backward(pass, dx, dy, dx);
}

template class DeviceGatedFeedForward<float>;
template class DeviceGatedFeedForward<BFloat16>;
template class DeviceGatedSumFeedForward<float>;
template class DeviceGatedSumFeedForward<BFloat16>;
template class DeviceResidual<float>;
template class DeviceResidual<BFloat16>;

}  // namespace elastor::cuda
