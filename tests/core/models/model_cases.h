#ifndef ELASTOR_TESTS_CORE_MODELS_MODEL_CASES_H_
#define ELASTOR_TESTS_CORE_MODELS_MODEL_CASES_H_

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "core/models/models.h"

namespace elastor {

// Small models of every kind, for tests on any device.
struct ModelCase {
  std::string name;
  ModelConfig config;
  // 2 numeric and 3 categorical fields of 4 features: 20, which 3 tokens do not divide.
  FeatureShape features = {2, 3, 4, 0.5};

  Graph graph() const { return MakeModel(config, features); }
};

inline void PrintTo(const ModelCase& test_case, std::ostream* out) { *out << test_case.name; }

inline TokenModelConfig TokenCase(TokenModelConfig::Convention convention) {
  TokenModelConfig config;
  config.set_convention(convention);
  config.set_tokens(3);
  config.set_token_width(6);
  config.set_blocks(2);
  config.mutable_tokenizer()->set_kind(TokenizerConfig::GROUPED);
  config.mutable_mixing()->set_block_width(1);
  config.mutable_feed_forward()->set_kind(FeedForwardConfig::GATED);
  config.mutable_feed_forward()->set_activation(FeedForwardConfig::GELU);
  config.mutable_feed_forward()->set_expansion(2);
  config.mutable_head()->set_kind(HeadConfig::FLATTEN_LINEAR);
  if (convention == TokenModelConfig::PUBLIC_CODE) {
    config.mutable_tokenizer()->set_kind(TokenizerConfig::SHARED);
    config.mutable_tokenizer()->set_hidden(7);
    config.mutable_tokenizer()->set_norm(TokenizerConfig::NORM_RMS);
    config.mutable_feed_forward()->set_kind(FeedForwardConfig::GATED_SUM);
    config.mutable_head()->set_kind(HeadConfig::FLATTEN_MLP);
    config.mutable_head()->add_hidden(10);
  }
  return config;
}

inline std::vector<ModelCase> ModelCases() {
  std::vector<ModelCase> cases;
  using Change = std::function<void(TokenModelConfig*)>;
  const auto add = [&](const std::string& name, TokenModelConfig::Convention convention, bool mixer,
                       const Change& change) {
    ModelCase& added = cases.emplace_back();
    added.name = name;
    TokenModelConfig* const config =
        mixer ? added.config.mutable_rank_mixer() : added.config.mutable_rank_elastor();
    *config = TokenCase(convention);
    if (change) change(config);
  };
  const auto paper = [&](const std::string& name, const Change& change = nullptr) {
    add(name, TokenModelConfig::PAPER, /*mixer=*/false, change);
  };
  const auto public_code = [&](const std::string& name, const Change& change = nullptr) {
    add(name, TokenModelConfig::PUBLIC_CODE, /*mixer=*/false, change);
  };
  const auto mlp = [&](const std::string& name, bool batch_norm, double dropout) {
    ModelCase& added = cases.emplace_back();
    added.name = name;
    MlpConfig* const config = added.config.mutable_mlp();
    config->add_hidden(9);
    config->add_hidden(5);
    config->set_batch_norm(batch_norm);
    config->set_dropout(dropout);
  };
  const auto two_layer = [](TokenModelConfig* config) {
    config->mutable_feed_forward()->set_kind(FeedForwardConfig::TWO_LAYER);
  };

  paper("RankElastorPaper");
  public_code("RankElastorPublicCode");
  add("RankMixerPaper", TokenModelConfig::PAPER, /*mixer=*/true, two_layer);
  add("RankMixerPublicCode", TokenModelConfig::PUBLIC_CODE, /*mixer=*/true, nullptr);
  mlp("Mlp", /*batch_norm=*/false, /*dropout=*/0);
  mlp("MlpBatchNorm", /*batch_norm=*/true, /*dropout=*/0);
  paper("MeanPool",
        [](TokenModelConfig* config) { config->mutable_head()->set_kind(HeadConfig::MEAN_POOL); });
  paper("FlattenMlp", [](TokenModelConfig* config) {
    config->mutable_head()->set_kind(HeadConfig::FLATTEN_MLP);
    for (const int width : {8, 5}) config->mutable_head()->add_hidden(width);
  });
  paper("BlockMixing",
        [](TokenModelConfig* config) { config->mutable_mixing()->set_block_width(3); });
  paper("TwoLayer", two_layer);
  paper("ReGlu", [](TokenModelConfig* config) {
    config->mutable_feed_forward()->set_activation(FeedForwardConfig::RELU);
  });
  paper("SwiGlu", [](TokenModelConfig* config) {
    config->mutable_feed_forward()->set_activation(FeedForwardConfig::SWISH);
  });
  paper("OneBlock", [](TokenModelConfig* config) { config->set_blocks(1); });
  paper("NoNumericFields");
  cases.back().features.numeric_fields = 0;
  paper("LayerNormBeforeFullTokenizer", [](TokenModelConfig* config) {
    config->mutable_tokenizer()->set_kind(TokenizerConfig::FULL);
    config->mutable_tokenizer()->set_norm(TokenizerConfig::NORM_LAYER);
  });
  paper("GroupedMlpTokenizer",
        [](TokenModelConfig* config) { config->mutable_tokenizer()->set_hidden(5); });
  paper("GroupedTokenizerWithNorm", [](TokenModelConfig* config) {
    config->mutable_tokenizer()->set_norm(TokenizerConfig::NORM_RMS);
  });
  paper("SharedTokenizerWithoutPadding", [](TokenModelConfig* config) {
    config->mutable_tokenizer()->set_kind(TokenizerConfig::SHARED);
    config->set_tokens(5);
  });
  paper("EmptyLastGroup", [](TokenModelConfig* config) { config->set_tokens(8); });
  paper("DropoutPaper", [](TokenModelConfig* config) {
    config->mutable_tokenizer()->set_hidden(5);
    config->mutable_head()->set_kind(HeadConfig::FLATTEN_MLP);
    config->mutable_head()->add_hidden(8);
    config->set_dropout(0.25);
  });
  public_code("Dropout", [](TokenModelConfig* config) { config->set_dropout(0.25); });
  public_code("GroupedPublicCode", [](TokenModelConfig* config) {
    config->mutable_tokenizer()->set_kind(TokenizerConfig::GROUPED);
    config->mutable_mixing()->set_block_width(2);
  });
  add("TwoLayerRankMixerPublicCode", TokenModelConfig::PUBLIC_CODE, /*mixer=*/true, two_layer);
  mlp("MlpBatchNormDropout", /*batch_norm=*/true, /*dropout=*/0.25);
  return cases;
}

}  // namespace elastor

#endif  // ELASTOR_TESTS_CORE_MODELS_MODEL_CASES_H_
