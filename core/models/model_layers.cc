#include "core/models/model_layers.h"

namespace elastor {
namespace {

constexpr double kLayerNormEpsilon = 1e-5;  // PyTorch's default
constexpr double kRmsNormEpsilon = 1e-12;   // the public code's

NormShape LayerNorm(int64_t width) { return {NormKind::kLayer, width, kLayerNormEpsilon}; }
NormShape RmsNorm(int64_t width) { return {NormKind::kRms, width, kRmsNormEpsilon}; }

int64_t Inputs(const ModelSpec& spec) { return spec.fields() * spec.embedding_width; }
bool PublicCode(const ModelSpec& spec) {
  return spec.convention == ModelSpec::Convention::kPublicCode;
}
bool Mixer(const ModelSpec& spec) { return spec.kind == ModelSpec::Kind::kRankMixer; }

}  // namespace

MlpOptions BaselineLayers(const ModelSpec& spec) {
  MlpOptions options;
  options.inputs = Inputs(spec);
  options.hidden = spec.hidden;
  options.outputs = 1;
  options.hidden_norm = spec.batch_norm ? HiddenNorm::kBatch : HiddenNorm::kNone;
  options.dropout = spec.dropout;
  return options;
}

TokenizerOptions TokenizerLayers(const ModelSpec& spec) {
  TokenizerOptions options;
  options.kind = spec.tokenizer;
  options.inputs = Inputs(spec);
  options.tokens = spec.tokens;
  options.width = spec.token_width;
  options.hidden = spec.tokenizer_hidden;
  options.hidden_norm = PublicCode(spec);
  options.dropout = spec.dropout;
  if (spec.input_norm == ModelSpec::InputNorm::kRms) options.norm = RmsNorm(options.inputs);
  if (spec.input_norm == ModelSpec::InputNorm::kLayer) options.norm = LayerNorm(options.inputs);
  return options;
}

MixingOptions MixingLayers(const ModelSpec& spec) {
  MixingOptions options;
  options.kind = Mixer(spec) ? MixingOptions::Kind::kBlockTranspose : MixingOptions::Kind::kFull;
  options.tokens = spec.tokens;
  options.width = spec.token_width;
  options.block_width = spec.mixing_block_width;
  options.post_norm = LayerNorm(spec.token_width);
  if (PublicCode(spec) && !Mixer(spec)) {
    options.pre_norm = RmsNorm(spec.tokens * spec.token_width);
    options.post_norm = RmsNorm(spec.token_width);
  }
  return options;
}

NormShape SecondNorm(const ModelSpec& spec) {
  return PublicCode(spec) && Mixer(spec) ? RmsNorm(spec.token_width) : NormShape{};
}

NormShape FeedForwardNorm(const ModelSpec& spec) {
  return PublicCode(spec) ? RmsNorm(spec.token_width) : NormShape{};
}

MlpOptions TwoLayerFeedForward(const ModelSpec& spec) {
  MlpOptions options;
  options.tokens = spec.tokens;
  options.inputs = options.outputs = spec.token_width;
  options.hidden = {spec.expansion * spec.token_width};
  options.activation = spec.activation;
  return options;
}

MlpOptions HeadLayers(const ModelSpec& spec) {
  const bool mean_pool = spec.head == ModelSpec::Head::kMeanPool;
  MlpOptions options;
  options.inputs = mean_pool ? spec.token_width : spec.tokens * spec.token_width;
  options.outputs = 1;
  if (spec.head == ModelSpec::Head::kFlattenMlp) options.hidden = spec.head_hidden;
  options.dropout = spec.dropout;
  return options;
}

}  // namespace elastor
