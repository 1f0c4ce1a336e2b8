#ifndef ELASTOR_TESTS_CORE_MODELS_MODEL_CASES_H_
#define ELASTOR_TESTS_CORE_MODELS_MODEL_CASES_H_

#include <ostream>
#include <string>
#include <vector>

#include "tests/core/models/test_model.h"

namespace elastor {

// Small models of every kind, for tests on any device.

// 2 numeric and 3 categorical fields of 4 features: 20, which 3 tokens do not divide.
inline constexpr FeatureShape kCaseFeatures = {
    .numeric_fields = 2, .categorical_fields = 3, .embedding_width = 4, .embedding_stddev = 0.5};

struct ModelCase : TestModel {
  std::string name;
};
inline void PrintTo(const ModelCase& test_case, std::ostream* out) { *out << test_case.name; }

inline std::vector<ModelCase> ModelCases() {
  std::vector<ModelCase> cases;
  const auto add = [&](const std::string& name, const std::string& text) {
    cases.push_back({MakeTestModel(kCaseFeatures, text), name});
  };
  // `more` overrides what comes before it.
  const auto paper = [&](const std::string& name, const std::string& more) {
    add(name,
        "rank_elastor { tokens: 3 token_width: 6 feed_forward { expansion: 2 } " + more + " }");
  };
  const std::string public_code =
      " { convention: PUBLIC_CODE tokens: 3 token_width: 6 tokenizer { kind: SHARED hidden: 7 } "
      "feed_forward { kind: GATED_SUM expansion: 2 } head { hidden: 10 } ";
  paper("RankElastorPaper", "");
  add("RankElastorPublicCode", "rank_elastor" + public_code + "}");
  add("RankMixerPaper", "rank_mixer { tokens: 3 token_width: 6 feed_forward { expansion: 2 } }");
  add("RankMixerPublicCode", "rank_mixer" + public_code + "}");
  add("Mlp", "mlp { hidden: [9, 5] }");
  add("MlpBatchNorm", "mlp { hidden: [9, 5] batch_norm: true }");
  paper("MeanPool", "head { kind: MEAN_POOL }");
  paper("FlattenMlp", "head { kind: FLATTEN_MLP hidden: [8, 5] }");
  paper("MultiProbe", "head { kind: MULTI_PROBE probes: 5 }");
  paper("VectorCollapse", "head { kind: VECTOR_COLLAPSE }");
  add("RefinedMultiProbe",
      "rank_mixer { tokens: 3 token_width: 6 iterations: 3 head { kind: MULTI_PROBE probes: 4 } }");
  add("RefinedPublicCode",
      "rank_elastor" + public_code + "blocks: 1 iterations: 2 dropout: 0.25 }");
  add("RefinedRecomputed",
      "rank_elastor" + public_code + "iterations: 2 recompute: true dropout: 0.25 }");
  paper("BlockMixing", "mixing { block_width: 3 }");
  paper("IdentityMixing", "mixing { kind: IDENTITY }");
  paper("TransposeMixing", "mixing { kind: BLOCK_TRANSPOSE }");
  paper("TwoLayer", "feed_forward { kind: TWO_LAYER }");
  paper("TwoLayerRelu", "feed_forward { kind: TWO_LAYER activation: RELU }");
  paper("ReGlu", "feed_forward { activation: RELU }");
  paper("SwiGlu", "feed_forward { activation: SWISH }");
  paper("OneBlock", "blocks: 1");
  paper("NoNumericFields", "");
  cases.back().features.numeric_fields = 0;
  paper("LayerNormBeforeFullTokenizer", "tokenizer { kind: FULL norm: NORM_LAYER }");
  paper("GroupedMlpTokenizer", "tokenizer { hidden: 5 }");
  paper("GroupedTokenizerWithNorm", "tokenizer { norm: NORM_RMS }");
  paper("SharedTokenizerWithoutPadding", "tokens: 5 tokenizer { kind: SHARED }");
  paper("EmptyLastGroup", "tokens: 8");
  paper("DropoutPaper",
        "tokenizer { hidden: 5 } head { kind: FLATTEN_MLP hidden: 8 } dropout: 0.25");
  add("Dropout", "rank_elastor" + public_code + "dropout: 0.25 }");
  add("GroupedPublicCode",
      "rank_elastor" + public_code + "tokenizer { kind: GROUPED } mixing { block_width: 2 } }");
  add("IdentityMixingPublicCode", "rank_elastor" + public_code + "mixing { kind: IDENTITY } }");
  add("TransposeMixingPublicCode",
      "rank_elastor" + public_code + "mixing { kind: BLOCK_TRANSPOSE } }");
  add("TwoLayerRankMixerPublicCode",
      "rank_mixer" + public_code + "feed_forward { kind: TWO_LAYER } }");
  add("MlpBatchNormDropout", "mlp { hidden: [9, 5] batch_norm: true dropout: 0.25 }");
  add("DcnV2Stacked", "dcn_v2 { cross_layers: 2 hidden: [9, 5] }");
  add("DlrmDot", "dlrm { bottom_hidden: 6 hidden: [9, 5] dropout: 0.25 }");
  add("DlrmLowRankCross",
      "dlrm { interaction: CROSS cross_layers: 2 rank: 3 bottom_hidden: 6 hidden: 5 }");
  add("DlrmFullCrossNoNumericFields",
      "dlrm { interaction: CROSS cross_layers: 1 rank: 0 hidden: 5 }");
  cases.back().features.numeric_fields = 0;
  add("DlrmDotNoNumericFields", "dlrm { hidden: 5 batch_norm: true }");
  cases.back().features.numeric_fields = 0;
  add("DcnV2Parallel", "dcn_v2 { structure: PARALLEL hidden: [9, 5] dropout: 0.25 }");
  add("AutoInt", "auto_int { attention_layers: 2 attention_width: 6 heads: 2 scale: true }");
  add("AutoIntPlus",
      "auto_int { attention_layers: 2 attention_width: 8 heads: 1 layer_norm: true hidden: [9, 5] "
      "dropout: 0.25 }");
  add("AutoIntPlusBatchNorm",
      "auto_int { attention_layers: 1 attention_width: 4 residual: false hidden: 9 batch_norm: "
      "true }");
  add("Mmoe", "mmoe { experts: 3 expert_hidden: [6, 5] tower_hidden: 4 }");
  cases.back().outputs = 2;
  add("MmoeOneLabel", "mmoe { experts: 2 expert_hidden: 7 tower_hidden: [4, 3] dropout: 0.25 }");
  paper("RankElastorTwoLabels", "head { kind: FLATTEN_MLP hidden: 8 }");
  cases.back().outputs = 2;
  add("DcnV2ThreeLabels", "dcn_v2 { structure: PARALLEL hidden: 9 }");
  cases.back().outputs = 3;
  // The second field is a sequence that is compared with the first; so is the third.
  add("DinMlp", "mlp { hidden: [9, 5] } sequences { din { hidden: 6 } }");
  cases.back().features.sequences = {{"first", 1, 0, 5}, {"second", 2, 0, 3}};
  add("DinSoftmaxRankMixer",
      "rank_mixer { tokens: 3 token_width: 6 feed_forward { expansion: 2 } } "
      "sequences { din { hidden: [6, 4] activation: SWISH softmax: true } }");
  cases.back().features.sequences = {{"history", 1, 2, 6}};
  add("HstuMlp",
      "mlp { hidden: [9, 5] } "
      "sequences { hstu { layers: 2 heads: 2 attention_width: 3 linear_width: 5 } }");
  cases.back().features.sequences = {{"first", 1, 0, 5}, {"second", 2, 0, 3}};
  add("HstuAutoIntWide",
      "auto_int { attention_layers: 1 attention_width: 6 use_wide: true attention_dropout: 0.25 } "
      "sequences { hstu { layers: 1 heads: 1 attention_width: 4 linear_width: 3 } }");
  cases.back().features.sequences = {{"history", 1, 2, 6}};
  add("AutoIntPlusWideDropout",
      "auto_int { attention_layers: 2 attention_width: 8 heads: 2 scale: true hidden: 9 "
      "dropout: 0.25 use_wide: true attention_dropout: 0.5 }");
  add("DcnV2BatchNorm", "dcn_v2 { structure: PARALLEL hidden: [9, 5] batch_norm: true }");
  add("DcnV2LowRank", "dcn_v2 { cross_layers: 2 rank: 3 experts: 3 hidden: 9 }");
  add("DcnV2LowRankIdentity",
      "dcn_v2 { structure: PARALLEL cross_layers: 1 rank: 2 experts: 2 expert_activation: IDENTITY "
      "hidden: 9 }");
  add("Wukong",
      "wukong { layers: 2 interaction_tokens: 2 compressed_tokens: 3 rank: 3 "
      "interaction_hidden: [9, 7] hidden: 8 }");
  add("WukongOfOtherTokens",
      "wukong { layers: 2 interaction_tokens: 3 compressed_tokens: 4 rank: 2 "
      "interaction_hidden: 9 hidden: [8, 6] dropout: 0.25 }");
  add("XDeepFm", "x_deep_fm { maps: [5, 3] hidden: [9, 5] }");
  add("XDeepFmOneLayerBatchNormDropout",
      "x_deep_fm { maps: 18 hidden: 9 batch_norm: true dropout: 0.25 }");
  add("Lr", "lr { }");
  cases.back().features.embedding_width = 1;
  add("Fm", "fm { }");
  add("FwFm", "fw_fm { }");
  add("FwFmIdWeights", "fw_fm { linear: ID_WEIGHTS }");
  add("WideAndDeep", "wide_and_deep { hidden: 5 dropout: 0.25 }");
  add("DeepFm", "deep_fm { hidden: 5 }");
  add("Nfm", "nfm { hidden: 5 batch_norm: true }");
  add("Ipnn", "ipnn { hidden: 5 }");
  add("DcnTwoLabels", "dcn { cross_layers: 2 hidden: 5 dropout: 0.25 }");
  cases.back().outputs = 2;
  add("DcnV3", "dcn_v3 { exponential_layers: 2 linear_layers: 2 linear_dropout: 0.25 }");
  cases.back().outputs = 3;
  add("GdcnStacked", "gdcn { cross_layers: 2 hidden: 5 dropout: 0.25 }");
  add("GdcnParallelTwoLabels", "gdcn { structure: PARALLEL cross_layers: 1 hidden: 5 }");
  cases.back().outputs = 2;
  add("FinalMlp", "final_mlp { hidden1: 6 hidden2: [5, 4] gate_hidden: 3 heads: 2 }");
  add("FinalNet", "final_net { hidden1: 6 hidden2: [4, 2] dropout2: 0.25 batch_norm: false }");
  cases.back().outputs = 3;
  add("MaskNetSerial", "mask_net { blocks: 5 }");
  add("MaskNetParallelTwoLabels",
      "mask_net { structure: PARALLEL blocks: [3, 4] embedding_norm: true hidden: 5 dropout: 0.25 "
      "}");
  cases.back().outputs = 2;
  add("TokenMixerLarge",
      "token_mixer_large { tokens: 3 token_width: 6 blocks: 3 expansion: 1 residual_every: 1 }");
  add("UniMixer",
      "uni_mixer { tokens: 3 token_width: 4 blocks: 1 block_width: 3 expansion: 1 tau: 0.5 }");
  add("UniMixerLite",
      "uni_mixer { tokens: 3 token_width: 4 blocks: 1 block_width: 2 expansion: 2 rank: 2 basis: 3 "
      "}");
  add("OneTrans",
      "one_trans { tokens: 3 token_width: 6 heads: 2 expansion: 1 tokenizer_hidden: 5 }");
  // Of 5 tokens of histories 5, 4 and none ask.
  add("OneTransHistories",
      "one_trans { tokens: 2 token_width: 6 blocks: 3 heads: 1 expansion: 1 tokenizer_hidden: 5 "
      "history_hidden: 3 pyramid_multiple: 2 } sequences { tokens { } }");
  cases.back().features.sequences = {{"first", 1, 0, 3}, {"second", 2, 0, 2}};
  // Items, their categories, actions and times, of which the fields hold two. The others are a
  // numeric field of the request and a contextual one.
  const std::string ranker =
      "hstu_ranker { actions: 'done' times: 'ago' token_width: 9 heads: 2 attention_width: 3 "
      "linear_width: 5 content_hidden: 7 item_hidden: 6 head_hidden: 5 ";
  add("HstuRanker", ranker + "layers: 2 } sequences { tokens { } }");
  cases.back().features.sequences = {
      {"items", 1, 0, 4}, {"done", 2, 0, 4}, {"ago", 1, 0, 4}, {"kinds", 2, 0, 4}};
  cases.back().features.request_fields = {1};
  add("HstuRankerNoContextDropout",
      ranker + "layers: 1 input_dropout: 0.25 dropout: 0.25 } sequences { tokens { } }");
  cases.back().features.numeric_fields = 0;
  cases.back().features.sequences = {{"done", 1, 0, 3}, {"items", 2, 0, 3}};
  cases.back().outputs = 2;
  const auto labels = [&](const std::string& name, const std::string& text) {
    add(name, text);
    cases.back().outputs = 2;
  };
  labels("SharedBottom", "shared_bottom { bottom_hidden: 6 tower_hidden: [4, 3] dropout: 0.25 }");
  labels("Ple", "ple { layers: 2 experts: 2 expert_hidden: [5, 4] tower_hidden: 3 }");
  add("PleOneLabel", "ple { shared_experts: 2 expert_hidden: 4 tower_hidden: 3 dropout: 0.25 }");
  labels("Esmm", "esmm { tower_hidden: 5 }");
  add("BstMlp", "mlp { hidden: 5 } sequences { bst { dropout: 0.25 } }");
  cases.back().features.sequences = {{"first", 1, 0, 5}, {"second", 2, 0, 3}};
  // Six positions of bytes with 8 features, or matrices of 4 x 4, and 3 classes.
  const auto bytes = [&](const std::string& name, const std::string& text) {
    add(name, text);
    cases.back().features = {
        .categorical_fields = 6, .embedding_width = 8, .embedding_stddev = 0.5};
    cases.back().outputs = 6 * 3;
  };
  bytes("MatrixThinker", "matrix_thinker { layers: 2 iterations: 2 heads: 2 probes: 3 }");
  bytes("MatrixThinkerCollapseDropout",
        "matrix_thinker { layers: 1 iterations: 2 heads: 1 head: VECTOR_COLLAPSE recompute: true "
        "dropout: 0.25 }");
  bytes("MatrixThinkerMatrixProduct",
        "matrix_thinker { layers: 1 iterations: 1 heads: 4 attention: MATRIX_PRODUCT "
        "down_projection: true head: "
        "VECTOR_COLLAPSE }");
  bytes("Transformer", "transformer { layers: 2 heads: 2 hidden: 9 dropout: 0.25 }");
  bytes("TransformerReGlu",
        "transformer { layers: 1 heads: 2 hidden: 5 gated: true activation: RELU }");
  // Images of 4 x 6 pixels in patches of 2 x 2, and 3 classes.
  const auto images = [&](const std::string& name, const std::string& text) {
    add(name, text);
    cases.back().features = {.numeric_fields = 24, .embedding_width = 1, .image = {4, 6, 2}};
    cases.back().outputs = 3;
  };
  images("Vit", "vit { width: 6 layers: 2 heads: 2 hidden: 9 dropout: 0.25 }");
  images("VitGated", "vit { width: 6 layers: 1 heads: 3 hidden: 5 gated: true }");
  images("MlpMixer", "mlp_mixer { width: 5 layers: 2 token_hidden: 7 hidden: 9 dropout: 0.25 }");
  images("MlpMixerReGlu",
         "mlp_mixer { width: 5 layers: 1 token_hidden: 4 hidden: 5 gated: true activation: RELU }");
  images("MlpOfPixels", "mlp { hidden: [9, 5] }");
  cases.back().features.image.patch = 1;
  return cases;
}

}  // namespace elastor

#endif  // ELASTOR_TESTS_CORE_MODELS_MODEL_CASES_H_
