// Logistic regression, and with a deep network beside it Wide & Deep (Cheng et al. 2016). w_i is
// the weight of field i's id, or a numeric field's value times its weight.
//
//   LR:           logit = sum_i w_i + b        its embeddings are the weights: k = 1
//   Wide & Deep:  logit = sum_i w_i + deep(E)
#include "core/models/deep_network.h"
#include "core/models/models.h"

namespace elastor {

Value Lr(GraphBuilder* graph, const LrConfig&) {
  CHECK_EQ(graph->features().embedding_width, 1);
  return LogitSum(graph, graph->Embeddings());
}

Value WideAndDeep(GraphBuilder* graph, const MlpConfig& config) {
  const Value x0 = graph->Embeddings();
  const Value wide = FirstOrderLogit(graph);
  const MlpOptions deep = DeepNetwork(config, graph->shape(x0).features(), /*outputs=*/1);
  return graph->Add(wide, Mlp(graph, "deep", deep)(x0));
}

}  // namespace elastor
