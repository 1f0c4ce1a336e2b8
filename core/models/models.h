#ifndef ELASTOR_CORE_MODELS_MODELS_H_
#define ELASTOR_CORE_MODELS_MODELS_H_

#include <algorithm>
#include <string>
#include <utility>

#include "configs/proto/experiment.pb.h"
#include "core/base/log.h"
#include "core/graph/graph.h"

namespace elastor {

// All models, from the embeddings to the task's logits. REQUIRES: configs are resolved and valid.
Value RankElastor(GraphBuilder* graph, const TokenModelConfig& config);
Value RankMixer(GraphBuilder* graph, const TokenModelConfig& config);
Value Lr(GraphBuilder* graph, const LrConfig& config);
Value Fm(GraphBuilder* graph, const FmConfig& config);
Value FwFm(GraphBuilder* graph, const FwFmConfig& config);
Value WideAndDeep(GraphBuilder* graph, const MlpConfig& config);
Value DeepFm(GraphBuilder* graph, const MlpConfig& config);
Value Nfm(GraphBuilder* graph, const MlpConfig& config);
Value Ipnn(GraphBuilder* graph, const MlpConfig& config);
Value Dcn(GraphBuilder* graph, const DcnConfig& config);
Value DcnV2(GraphBuilder* graph, const DcnV2Config& config);
Value DcnV3(GraphBuilder* graph, const DcnV3Config& config);
Value Dlrm(GraphBuilder* graph, const DlrmConfig& config);
Value Gdcn(GraphBuilder* graph, const GdcnConfig& config);
Value FinalMlp(GraphBuilder* graph, const FinalMlpConfig& config);
Value FinalNet(GraphBuilder* graph, const FinalNetConfig& config);
Value MaskNet(GraphBuilder* graph, const MaskNetConfig& config);
Value TokenMixerLarge(GraphBuilder* graph, const TokenMixerLargeConfig& config);
Value UniMixer(GraphBuilder* graph, const UniMixerConfig& config);
Value Wukong(GraphBuilder* graph, const WukongConfig& config);
Value XDeepFm(GraphBuilder* graph, const XDeepFmConfig& config);
Value MlpModel(GraphBuilder* graph, const MlpConfig& config);
Value OneTrans(GraphBuilder* graph, const OneTransConfig& config);
Value HstuRanker(GraphBuilder* graph, const HstuRankerConfig& config);
Value AutoInt(GraphBuilder* graph, const AutoIntConfig& config);
Value SharedBottom(GraphBuilder* graph, const SharedBottomConfig& config);
Value Ple(GraphBuilder* graph, const PleConfig& config);
Value Esmm(GraphBuilder* graph, const EsmmConfig& config);
Value Mmoe(GraphBuilder* graph, const MmoeConfig& config);
Value MatrixThinker(GraphBuilder* graph, const MatrixThinkerConfig& config);
Value Transformer(GraphBuilder* graph, const TransformerConfig& config);
Value Vit(GraphBuilder* graph, const VitConfig& config);
Value MlpMixer(GraphBuilder* graph, const MlpMixerConfig& config);

inline Activation GateActivation(FeedForwardConfig::Gate gate) {
  if (gate == FeedForwardConfig::RELU) return Activation::kRelu;
  if (gate == FeedForwardConfig::SWISH) return Activation::kSwish;
  return Activation::kGelu;
}

// Replaces every encoded sequence in the graph's embeddings by its encoder's result, as the model
// reads them. With `tokens` it changes nothing: the model takes the positions itself.
void EncodeSequences(GraphBuilder* graph, const SequencesConfig& config);

// Returns whether the model has a first-order weight for every id and numeric field
// (FeatureShape::first_order).
inline bool HasFirstOrder(const ModelConfig& config) {
  return config.has_fm() || config.has_wide_and_deep() || config.has_deep_fm() ||
         config.has_nfm() || config.has_x_deep_fm() || config.auto_int().use_wide() ||
         config.fw_fm().linear() == FwFmConfig::ID_WEIGHTS;
}

// Returns whether the model has one logit, so that it learns one label.
inline bool HasOneLogit(const ModelConfig& config) {
  return HasFirstOrder(config) || config.has_lr() || config.has_final_mlp() ||
         config.has_final_net() || config.has_dcn_v3();
}

// Returns whether the model reads products of two fields' embeddings, so that it needs two fields.
inline bool ReadsPairs(const ModelConfig& config) {
  return config.has_fm() || config.has_fw_fm() || config.has_deep_fm() || config.has_nfm() ||
         config.has_ipnn();
}

// Returns whether a sequence tells HSTU_RANKER with which items something was done, so that it has
// a target.
inline bool IsContent(const HstuRankerConfig& config, const std::string& sequence) {
  return std::ranges::count(config.actions(), sequence) == 0 &&
         std::ranges::count(config.times(), sequence) == 0;
}

// Returns whether the model reads images and nothing else.
inline bool IsOfImages(const ModelConfig& config) {
  return config.has_vit() || config.has_mlp_mixer();
}
// Returns the side of an image patch in pixels; 1 if the model does not cut images into patches.
inline int64_t PatchOf(const ModelConfig& config) {
  if (config.has_vit()) return config.vit().patch();
  return config.has_mlp_mixer() ? config.mlp_mixer().patch() : 1;
}

inline Value BuildModel(GraphBuilder* graph, const ModelConfig& config) {
  switch (config.model_case()) {
    case ModelConfig::kRankElastor:
      return RankElastor(graph, config.rank_elastor());
    case ModelConfig::kRankMixer:
      return RankMixer(graph, config.rank_mixer());
    case ModelConfig::kLr:
      return Lr(graph, config.lr());
    case ModelConfig::kFm:
      return Fm(graph, config.fm());
    case ModelConfig::kFwFm:
      return FwFm(graph, config.fw_fm());
    case ModelConfig::kWideAndDeep:
      return WideAndDeep(graph, config.wide_and_deep());
    case ModelConfig::kDeepFm:
      return DeepFm(graph, config.deep_fm());
    case ModelConfig::kNfm:
      return Nfm(graph, config.nfm());
    case ModelConfig::kIpnn:
      return Ipnn(graph, config.ipnn());
    case ModelConfig::kDcn:
      return Dcn(graph, config.dcn());
    case ModelConfig::kDcnV2:
      return DcnV2(graph, config.dcn_v2());
    case ModelConfig::kDcnV3:
      return DcnV3(graph, config.dcn_v3());
    case ModelConfig::kDlrm:
      return Dlrm(graph, config.dlrm());
    case ModelConfig::kGdcn:
      return Gdcn(graph, config.gdcn());
    case ModelConfig::kFinalMlp:
      return FinalMlp(graph, config.final_mlp());
    case ModelConfig::kFinalNet:
      return FinalNet(graph, config.final_net());
    case ModelConfig::kMaskNet:
      return MaskNet(graph, config.mask_net());
    case ModelConfig::kTokenMixerLarge:
      return TokenMixerLarge(graph, config.token_mixer_large());
    case ModelConfig::kUniMixer:
      return UniMixer(graph, config.uni_mixer());
    case ModelConfig::kOneTrans:
      return OneTrans(graph, config.one_trans());
    case ModelConfig::kHstuRanker:
      return HstuRanker(graph, config.hstu_ranker());
    case ModelConfig::kWukong:
      return Wukong(graph, config.wukong());
    case ModelConfig::kXDeepFm:
      return XDeepFm(graph, config.x_deep_fm());
    case ModelConfig::kMlp:
      return MlpModel(graph, config.mlp());
    case ModelConfig::kAutoInt:
      return AutoInt(graph, config.auto_int());
    case ModelConfig::kSharedBottom:
      return SharedBottom(graph, config.shared_bottom());
    case ModelConfig::kPle:
      return Ple(graph, config.ple());
    case ModelConfig::kEsmm:
      return Esmm(graph, config.esmm());
    case ModelConfig::kMmoe:
      return Mmoe(graph, config.mmoe());
    case ModelConfig::kMatrixThinker:
      return MatrixThinker(graph, config.matrix_thinker());
    case ModelConfig::kTransformer:
      return Transformer(graph, config.transformer());
    case ModelConfig::kVit:
      return Vit(graph, config.vit());
    case ModelConfig::kMlpMixer:
      return MlpMixer(graph, config.mlp_mixer());
    case ModelConfig::MODEL_NOT_SET:
      break;
  }
  LOG(FATAL) << "the experiment is not resolved: it chooses no model";
}

// Returns the graph of the model that `config` chooses, with `outputs` logits, one for each output
// of the task.
inline Graph MakeModel(const ModelConfig& config, const FeatureShape& features,
                       int64_t outputs = 1) {
  GraphBuilder graph(features, outputs);
  EncodeSequences(&graph, config.sequences());
  const Value logits = BuildModel(&graph, config);
  CHECK_EQ(graph.shape(logits).features(), outputs);
  return std::move(graph).Finish(logits);
}

}  // namespace elastor

#endif  // ELASTOR_CORE_MODELS_MODELS_H_
