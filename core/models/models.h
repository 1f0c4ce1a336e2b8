#ifndef ELASTOR_CORE_MODELS_MODELS_H_
#define ELASTOR_CORE_MODELS_MODELS_H_

#include "configs/proto/experiment.pb.h"
#include "core/graph/graph.h"

namespace elastor {

// Every model there is: from the embeddings to the logit. configs are resolved and valid.
Value RankElastor(GraphBuilder* graph, const TokenModelConfig& config);
Value RankMixer(GraphBuilder* graph, const TokenModelConfig& config);
Value MlpModel(GraphBuilder* graph, const MlpConfig& config);

// The graph of the model that `config` chooses.
Graph MakeModel(const ModelConfig& config, const FeatureShape& features);

}  // namespace elastor

#endif  // ELASTOR_CORE_MODELS_MODELS_H_
