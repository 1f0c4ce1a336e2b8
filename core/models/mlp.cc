// The baseline DNN: flattened embeddings, hidden layers (linear, optional batch norm, ReLU,
// dropout), the logits.
#include "core/models/layers.h"
#include "core/models/models.h"

namespace elastor {

Value MlpModel(GraphBuilder* graph, const MlpConfig& config) {
  MlpOptions options;
  options.inputs = graph->features().inputs();
  options.hidden.assign(config.hidden().begin(), config.hidden().end());
  options.outputs = graph->outputs();
  if (config.batch_norm()) options.hidden_norm = MlpOptions::HiddenNorm::kBatch;
  options.dropout = config.dropout();
  return Mlp(graph, "mlp", options)(graph->Embeddings());
}

}  // namespace elastor
