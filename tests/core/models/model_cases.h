#ifndef ELASTOR_TESTS_CORE_MODELS_MODEL_CASES_H_
#define ELASTOR_TESTS_CORE_MODELS_MODEL_CASES_H_

#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "core/models/model_spec.h"

namespace elastor {

// Small models of every kind, for tests on any device.

inline constexpr int64_t kNumericFields = 2;

// 2 numeric and 3 categorical fields of 4 features: 20, which 3 tokens do not divide.
inline ModelSpec TokenSpec(ModelSpec::Kind kind, ModelSpec::Convention convention) {
  ModelSpec spec;
  spec.kind = kind;
  spec.convention = convention;
  spec.numeric_fields = kNumericFields;
  spec.categorical_fields = 3;
  spec.embedding_width = 4;
  spec.embedding_stddev = 0.5;
  spec.tokens = 3;
  spec.token_width = 6;
  spec.expansion = 2;
  if (convention == ModelSpec::Convention::kPublicCode) {
    spec.tokenizer = TokenizerOptions::Kind::kShared;
    spec.tokenizer_hidden = 7;
    spec.input_norm = ModelSpec::InputNorm::kRms;
    spec.feed_forward = ModelSpec::FeedForward::kGatedSum;
    spec.head = ModelSpec::Head::kFlattenMlp;
    spec.head_hidden = {10};
  }
  return spec;
}

inline ModelSpec MlpSpec() {
  ModelSpec spec = TokenSpec(ModelSpec::Kind::kMlp, ModelSpec::Convention::kPaper);
  spec.hidden = {9, 5};
  return spec;
}

struct ModelCase {
  std::string name;
  ModelSpec spec;
};

inline void PrintTo(const ModelCase& test_case, std::ostream* out) { *out << test_case.name; }

inline std::vector<ModelCase> ModelCases() {
  std::vector<ModelCase> cases = {
      {"RankElastorPaper", TokenSpec(ModelSpec::Kind::kRankElastor, ModelSpec::Convention::kPaper)},
      {"RankElastorPublicCode",
       TokenSpec(ModelSpec::Kind::kRankElastor, ModelSpec::Convention::kPublicCode)},
      {"RankMixerPaper", TokenSpec(ModelSpec::Kind::kRankMixer, ModelSpec::Convention::kPaper)},
      {"RankMixerPublicCode",
       TokenSpec(ModelSpec::Kind::kRankMixer, ModelSpec::Convention::kPublicCode)},
      {"Mlp", MlpSpec()},
      {"MlpBatchNorm", MlpSpec()},
  };
  cases[5].spec.batch_norm = true;
  cases[2].spec.feed_forward = ModelSpec::FeedForward::kTwoLayer;
  const auto add = [&](const std::string& name, auto change) {
    cases.push_back(
        {name, TokenSpec(ModelSpec::Kind::kRankElastor, ModelSpec::Convention::kPaper)});
    change(&cases.back().spec);
  };
  add("MeanPool", [](ModelSpec* spec) { spec->head = ModelSpec::Head::kMeanPool; });
  add("FlattenMlp", [](ModelSpec* spec) {
    spec->head = ModelSpec::Head::kFlattenMlp;
    spec->head_hidden = {8, 5};
  });
  add("BlockMixing", [](ModelSpec* spec) { spec->mixing_block_width = 3; });
  add("TwoLayer", [](ModelSpec* spec) { spec->feed_forward = ModelSpec::FeedForward::kTwoLayer; });
  add("ReGlu", [](ModelSpec* spec) { spec->activation = Activation::kRelu; });
  add("SwiGlu", [](ModelSpec* spec) { spec->activation = Activation::kSwish; });
  add("OneBlock", [](ModelSpec* spec) { spec->blocks = 1; });
  add("NoNumericFields", [](ModelSpec* spec) { spec->numeric_fields = 0; });
  add("LayerNormBeforeFullTokenizer", [](ModelSpec* spec) {
    spec->tokenizer = TokenizerOptions::Kind::kFull;
    spec->input_norm = ModelSpec::InputNorm::kLayer;
  });
  add("GroupedMlpTokenizer", [](ModelSpec* spec) { spec->tokenizer_hidden = 5; });
  add("GroupedTokenizerWithNorm",
      [](ModelSpec* spec) { spec->input_norm = ModelSpec::InputNorm::kRms; });
  add("SharedTokenizerWithoutPadding", [](ModelSpec* spec) {
    spec->tokenizer = TokenizerOptions::Kind::kShared;
    spec->tokens = 5;
  });
  add("EmptyLastGroup", [](ModelSpec* spec) { spec->tokens = 8; });
  add("DropoutPaper", [](ModelSpec* spec) {
    spec->tokenizer_hidden = 5;
    spec->head = ModelSpec::Head::kFlattenMlp;
    spec->head_hidden = {8};
    spec->dropout = 0.25;
  });
  const auto add_public_code = [&](const std::string& name, ModelSpec::Kind kind, auto change) {
    cases.push_back({name, TokenSpec(kind, ModelSpec::Convention::kPublicCode)});
    change(&cases.back().spec);
  };
  add_public_code("Dropout", ModelSpec::Kind::kRankElastor,
                  [](ModelSpec* spec) { spec->dropout = 0.25; });
  add_public_code("GroupedPublicCode", ModelSpec::Kind::kRankElastor, [](ModelSpec* spec) {
    spec->tokenizer = TokenizerOptions::Kind::kGrouped;
    spec->mixing_block_width = 2;
  });
  add_public_code("TwoLayerRankMixerPublicCode", ModelSpec::Kind::kRankMixer,
                  [](ModelSpec* spec) { spec->feed_forward = ModelSpec::FeedForward::kTwoLayer; });
  cases.push_back({"MlpBatchNormDropout", MlpSpec()});
  cases.back().spec.batch_norm = true;
  cases.back().spec.dropout = 0.25;
  return cases;
}

}  // namespace elastor

#endif  // ELASTOR_TESTS_CORE_MODELS_MODEL_CASES_H_
