#include "core/models/models.h"

#include <utility>

namespace elastor {

Graph MakeModel(const ModelConfig& config, const FeatureShape& features) {
  GraphBuilder graph(features);
  const Value logit = [&] {
    switch (config.model_case()) {
      case ModelConfig::kRankElastor:
        return RankElastor(&graph, config.rank_elastor());
      case ModelConfig::kRankMixer:
        return RankMixer(&graph, config.rank_mixer());
      case ModelConfig::kMlp:
        return MlpModel(&graph, config.mlp());
      case ModelConfig::MODEL_NOT_SET:
        break;
    }
    LOG(FATAL) << "the experiment is not resolved: it chooses no model";
  }();
  return std::move(graph).Finish(logit);
}

}  // namespace elastor
