#include "core/models/token_model.h"

#include <string>
#include <utility>

#include "core/layers/dropout.h"
#include "core/layers/feed_forward.h"
#include "core/layers/residual.h"
#include "core/models/model_layers.h"
#include "core/kernels/elementwise.h"

namespace elastor {

template <typename T>
TokenModel<T>::TokenModel(const ModelSpec& spec)
    : Model<T>(spec),
      tokens_(spec.tokens),
      width_(spec.token_width),
      dropout_(spec.dropout),
      mean_pool_(spec.head == ModelSpec::Head::kMeanPool) {
  tokenizer_ = std::make_unique<Tokenizer<T>>(this->builder(), "tokenizer", TokenizerLayers(spec));

  WorkspacePlan& workspace = *this->builder()->workspace;
  x_ = workspace.Activations(tokens_ * width_);
  for (int& slot : gradient_) slot = workspace.Activations(tokens_ * width_);
  this->AddStage("tokens", tokens_, width_, x_);
  for (int64_t i = 0; i < spec.blocks; ++i) MakeBlock(spec, static_cast<int>(i));
  MakeHead(spec);
  this->FinishLayout();
}

template <typename T>
void TokenModel<T>::MakeBlock(const ModelSpec& spec, int index) {
  const int64_t features = tokens_ * width_;
  const std::string name = "block" + std::to_string(index);
  WorkspacePlan& workspace = *this->builder()->workspace;

  Block block;
  block.mixing = std::make_unique<Mixing<T>>(this->builder(), name + ".mixing", MixingLayers(spec));
  if (const NormShape norm = SecondNorm(spec); norm.width > 0) {
    block.second_norm =
        std::make_unique<NormLayer<T>>(this->builder(), name + ".norm", features, norm);
    block.normed = workspace.Activations(features);
  }
  block.feed_forward = MakeFeedForward(spec, name + ".ffn");
  block.dropout_layer = this->builder()->dropout_layers++;
  block.m = workspace.Activations(features);
  block.z = workspace.Activations(features);
  this->AddStage(name + ".mixing", tokens_, width_, block.m);
  this->AddStage(name + ".ffn", tokens_, width_, block.z);
  blocks_.push_back(std::move(block));
}

template <typename T>
std::unique_ptr<Module<T>> TokenModel<T>::MakeFeedForward(const ModelSpec& spec,
                                                          const std::string& name) {
  ModelBuilder* builder = this->builder();
  const int64_t hidden = spec.expansion * width_;
  std::unique_ptr<Module<T>> inner;
  if (spec.feed_forward == ModelSpec::FeedForward::kGated) {
    inner = std::make_unique<GatedFeedForward<T>>(builder, name, tokens_, width_, hidden,
                                                  spec.activation);
  } else if (spec.feed_forward == ModelSpec::FeedForward::kGatedSum) {
    inner = std::make_unique<GatedSumFeedForward<T>>(builder, name, tokens_, width_, hidden,
                                                     spec.activation);
  } else {
    inner = std::make_unique<Mlp<T>>(builder, name, TwoLayerFeedForward(spec));
  }
  const NormShape norm = FeedForwardNorm(spec);
  if (norm.width == 0) return inner;
  return std::make_unique<Residual<T>>(builder, name, norm, std::move(inner));
}

template <typename T>
void TokenModel<T>::MakeHead(const ModelSpec& spec) {
  head_ = std::make_unique<Mlp<T>>(this->builder(), "head", HeadLayers(spec));
  if (mean_pool_) {
    pooled_ = this->builder()->workspace->Activations(width_);
    dpooled_ = this->builder()->workspace->Activations(width_);
  }
}

template <typename T>
int64_t TokenModel<T>::multiply_adds() const {
  int64_t sum = tokenizer_->multiply_adds() + head_->multiply_adds();
  for (const Block& block : blocks_) {
    sum += block.mixing->multiply_adds() + block.feed_forward->multiply_adds();
  }
  return sum;
}

template <typename T>
void TokenModel<T>::PrepareLayers(const T* parameters) {
  tokenizer_->Prepare(parameters);
  for (Block& block : blocks_) {
    block.mixing->Prepare(parameters);
    if (block.second_norm) block.second_norm->Prepare(parameters);
    block.feed_forward->Prepare(parameters);
  }
  head_->Prepare(parameters);
}

template <typename T>
void TokenModel<T>::ForwardLayers(const Pass<T>& pass, Panels<const T> e, Panels<T> logits) const {
  Panels<T> x = pass.Slot(x_);
  tokenizer_->Forward(pass, e, x);
  for (const Block& block : blocks_) {
    const Panels<T> m = pass.Slot(block.m);
    const Panels<T> z = pass.Slot(block.z);
    if (block.second_norm) {
      block.mixing->Forward(pass, x, pass.Slot(block.normed));
      block.second_norm->Forward(pass, pass.Slot(block.normed), m);
    } else {
      block.mixing->Forward(pass, x, m);
    }
    block.feed_forward->Forward(pass, m, z);
    ApplyDropout(pass, dropout_, block.dropout_layer, z);
    x = z;
  }
  if (mean_pool_) {
    MeanPool<T>(tokens_, width_, x, pass.Slot(pooled_));
    head_->Forward(pass, pass.Slot(pooled_), logits);
  } else {
    head_->Forward(pass, x, logits);
  }
}

template <typename T>
void TokenModel<T>::BackwardLayers(const Pass<T>& pass, Panels<const T> e, Panels<const T> dlogits,
                                   Panels<T> de) const {
  const int blocks = static_cast<int>(blocks_.size());
  const auto input = [&](int i) { return pass.Slot(i == 0 ? x_ : blocks_[i - 1].z); };
  Panels<T> dz = pass.Slot(gradient_[0]);
  const Panels<T> dm = pass.Slot(gradient_[1]);
  if (mean_pool_) {
    head_->Backward(pass, pass.Slot(pooled_), dlogits, pass.Slot(dpooled_));
    MeanPoolBackward<T>(tokens_, width_, pass.Slot(dpooled_), dz);
  } else {
    head_->Backward(pass, input(blocks), dlogits, dz);
  }
  for (int i = blocks - 1; i >= 0; --i) {
    const Block& block = blocks_[i];
    ApplyDropout(pass, dropout_, block.dropout_layer, dz);
    block.feed_forward->Backward(pass, pass.Slot(block.m), dz, dm);
    if (block.second_norm) {
      block.second_norm->Backward(pass, pass.Slot(block.normed), dm, dm);
    }
    block.mixing->Backward(pass, input(i), dm, dz);
  }
  tokenizer_->Backward(pass, e, dz, de);
}

template class TokenModel<float>;
template class TokenModel<double>;

}  // namespace elastor
