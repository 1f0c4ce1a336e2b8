#ifndef ELASTOR_CORE_MODELS_MODELS_H_
#define ELASTOR_CORE_MODELS_MODELS_H_

#include <utility>

#include "configs/proto/experiment.pb.h"
#include "core/graph/graph.h"
#include "glog/logging.h"

namespace elastor {

// Every model there is: from the embeddings to the logit. Configs are resolved and valid.
Value RankElastor(GraphBuilder* graph, const TokenModelConfig& config);
Value RankMixer(GraphBuilder* graph, const TokenModelConfig& config);
Value DcnV2(GraphBuilder* graph, const DcnV2Config& config);
Value MlpModel(GraphBuilder* graph, const MlpConfig& config);
Value AutoInt(GraphBuilder* graph, const AutoIntConfig& config);

inline Value BuildModel(GraphBuilder* graph, const ModelConfig& config) {
  switch (config.model_case()) {
    case ModelConfig::kRankElastor:
      return RankElastor(graph, config.rank_elastor());
    case ModelConfig::kRankMixer:
      return RankMixer(graph, config.rank_mixer());
    case ModelConfig::kDcnV2:
      return DcnV2(graph, config.dcn_v2());
    case ModelConfig::kMlp:
      return MlpModel(graph, config.mlp());
    case ModelConfig::kAutoInt:
      return AutoInt(graph, config.auto_int());
    case ModelConfig::MODEL_NOT_SET:
      break;
  }
  LOG(FATAL) << "the experiment is not resolved: it chooses no model";
}

// The graph of the model that `config` chooses.
inline Graph MakeModel(const ModelConfig& config, const FeatureShape& features) {
  GraphBuilder graph(features);
  const Value logit = BuildModel(&graph, config);
  return std::move(graph).Finish(logit);
}

}  // namespace elastor

#endif  // ELASTOR_CORE_MODELS_MODELS_H_
