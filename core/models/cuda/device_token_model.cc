#include "core/models/cuda/device_token_model.h"

#include <utility>

#include "core/models/cuda/device_feed_forward.h"
#include "core/models/model_layers.h"
#include "core/kernels/cuda/elementwise.h"

namespace elastor::cuda {

template <typename A>
DeviceTokenModel<A>::DeviceTokenModel(const ModelSpec& spec, const Model<float>& model,
                                      const DeviceModelOptions& options, Stream* stream)
    : DeviceModelBase<A>(spec, model, options, stream),
      tokens_(spec.tokens),
      width_(spec.token_width),
      dropout_(spec.dropout),
      mean_pool_(spec.head == ModelSpec::Head::kMeanPool),
      linear_head_(HeadLayers(spec).hidden.empty()) {
  DeviceContext<A>* context = this->context();
  dz_ = context->Temporary(TokenLayout::kTokenMajor, tokens_, width_);
  dm_ = context->Temporary(TokenLayout::kTokenMajor, tokens_, width_);
  row_major_ = {dm_.slot, TokenLayout::kRowMajor, tokens_, width_};
  x_ = context->Keep(TokenLayout::kRowMajor, tokens_, width_);
  tokenizer_ = std::make_unique<DeviceTokenizer<A>>(context, "tokenizer", TokenizerLayers(spec));
  if (SecondNorm(spec).width > 0) {
    normed_ = context->Temporary(TokenLayout::kTokenMajor, tokens_, width_);
  }
  for (int64_t i = 0; i < spec.blocks; ++i) MakeBlock(spec, static_cast<int>(i));
  if (mean_pool_) {
    pooled_ = context->Keep(TokenLayout::kRowMajor, 1, width_);
    dpooled_ = context->Temporary(TokenLayout::kRowMajor, 1, width_);
  }
  head_ = std::make_unique<DeviceMlp<A>>(context, "head", HeadLayers(spec));
}

template <typename A>
void DeviceTokenModel<A>::MakeBlock(const ModelSpec& spec, int index) {
  DeviceContext<A>* context = this->context();
  const std::string name = "block" + std::to_string(index);
  Block block;
  block.mixing = std::make_unique<DeviceMixing<A>>(context, name + ".mixing", MixingLayers(spec));
  if (const NormShape norm = SecondNorm(spec); norm.width > 0) {
    block.second_norm = std::make_unique<DeviceNorm<A>>(context, name + ".norm", tokens_, norm);
  }
  block.feed_forward = MakeFeedForward(spec, name + ".ffn");
  block.dropout_layer = context->NextDropoutLayer();
  block.m = context->Keep(TokenLayout::kTokenMajor, tokens_, width_);
  block.z = context->Keep(TokenLayout::kRowMajor, tokens_, width_);
  blocks_.push_back(std::move(block));
}

template <typename A>
std::unique_ptr<DeviceModule<A>> DeviceTokenModel<A>::MakeFeedForward(const ModelSpec& spec,
                                                                      const std::string& name) {
  DeviceContext<A>* context = this->context();
  const int64_t hidden = spec.expansion * width_;
  std::unique_ptr<DeviceModule<A>> inner;
  if (spec.feed_forward == ModelSpec::FeedForward::kGated) {
    inner = std::make_unique<DeviceGatedFeedForward<A>>(context, name, tokens_, width_, hidden,
                                                        spec.activation);
  } else if (spec.feed_forward == ModelSpec::FeedForward::kGatedSum) {
    inner = std::make_unique<DeviceGatedSumFeedForward<A>>(context, name, tokens_, width_, hidden,
                                                           spec.activation);
  } else {
    inner = std::make_unique<DeviceMlp<A>>(context, name, TwoLayerFeedForward(spec));
  }
  const NormShape norm = FeedForwardNorm(spec);
  if (norm.width == 0) return inner;
  return std::make_unique<DeviceResidual<A>>(context, name, tokens_, norm, std::move(inner));
}

template <typename A>
void DeviceTokenModel<A>::ForwardLayers(const ModulePass& pass, Activations<const A> e,
                                        Activations<float> logits) {
  Activations<A> x = View(pass.shape, x_);
  tokenizer_->Forward(pass, e, x);
  for (const Block& block : blocks_) {
    const Activations<A> m = View(pass.shape, block.m);
    const Activations<A> z = View(pass.shape, block.z);
    if (block.second_norm) {
      const Activations<A> normed = View(pass.shape, normed_);
      block.mixing->Forward(pass, x, normed);
      block.second_norm->Forward(pass, normed, {}, m);
    } else {
      block.mixing->Forward(pass, x, m);
    }
    block.feed_forward->Forward(pass, m, z);
    ApplyDropout<A>(*this->context(), pass, dropout_, block.dropout_layer, z);
    x = z;
  }
  if (mean_pool_) {
    const Activations<A> pooled = View(pass.shape, pooled_);
    MeanPool<A>(this->context()->stream(), x, pooled);
    head_->ForwardInFloat(pass, pooled, logits);
  } else {
    head_->ForwardInFloat(pass, x.WithTokens(1), logits);
  }
}

template <typename A>
void DeviceTokenModel<A>::BackwardLayers(const ModulePass& pass, Activations<const A> e,
                                         Activations<const A> dlogits, Activations<A> de) {
  const Activations<A> dm = View(pass.shape, dm_);
  Activations<A> dz = View(pass.shape, dz_);
  BackwardHead(pass, dlogits, dz);
  for (int i = static_cast<int>(blocks_.size()) - 1; i >= 0; --i) {
    const Block& block = blocks_[i];
    ApplyDropout<A>(*this->context(), pass, dropout_, block.dropout_layer, dz);
    block.feed_forward->Backward(pass, View(pass.shape, block.m), dz, dm);
    if (block.second_norm) block.second_norm->Backward(pass, dm, {}, dm);
    if (i == 0) dz = View(pass.shape, {dz_.slot, tokenizer_->layout(), tokens_, width_});
    block.mixing->Backward(pass, View(pass.shape, input(i)), dm, dz);
  }
  tokenizer_->Backward(pass, e, dz, de);
}

template <typename A>
void DeviceTokenModel<A>::BackwardHead(const ModulePass& pass, Activations<const A> dlogits,
                                       Activations<A> dz) {
  const Activations<A> z = View(pass.shape, input(static_cast<int>(blocks_.size())));
  Stream& stream = this->context()->stream();
  if (mean_pool_) {
    const Activations<A> dpooled = View(pass.shape, dpooled_);
    head_->Backward(pass, View(pass.shape, pooled_), dlogits, dpooled);
    MeanPoolBackward<A>(stream, dpooled, dz);
  } else if (linear_head_) {  // an outer product: written token by token at no cost
    head_->Backward(pass, z.WithTokens(1), dlogits, dz);
  } else {
    const Activations<A> flat = View(pass.shape, row_major_);
    head_->Backward(pass, z.WithTokens(1), dlogits, flat.WithTokens(1));
    Copy<A>(stream, flat, dz);
  }
}

template <typename A>
Activations<const A> DeviceTokenModel<A>::LayerOutput(const LeafShape& shape, int stage) const {
  // 1: X; then M and Z of every block.
  if (stage == 1) return View(shape, x_);
  const Block& block = blocks_[(stage - 2) / 2];
  if (stage % 2 == 1) return View(shape, block.z);
  const Activations<A> m = View(shape, row_major_);
  Copy<A>(this->context()->stream(), View(shape, block.m), m);
  return m;
}

template class DeviceTokenModel<float>;
template class DeviceTokenModel<BFloat16>;

}  // namespace elastor::cuda
