// The baseline DNN: flattened embeddings, hidden layers (linear, optional batch norm, ReLU,
// dropout), the logits.
#include "core/models/deep_network.h"
#include "core/models/models.h"

namespace elastor {

Value MlpModel(GraphBuilder* graph, const MlpConfig& config) {
  const MlpOptions options = DeepNetwork(config, graph->features().inputs(), graph->outputs());
  return Mlp(graph, "mlp", options)(graph->Embeddings());
}

}  // namespace elastor
