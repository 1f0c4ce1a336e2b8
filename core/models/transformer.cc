// A decoder-only transformer of bytes (Radford et al. 2019): as wide as the embeddings, with a
// learned vector for each position.
//
//   X = E + P;  X = X + attention(norm(X));  X = X + MLP(norm(X));  logits = linear(norm(X))
//
// The MLP has one hidden layer, plain or gated; norms are layer norms.
#include "core/models/attention_layers.h"
#include "core/models/models.h"

namespace elastor {

Value Transformer(GraphBuilder* graph, const TransformerConfig& config) {
  const Value e = graph->Embeddings();
  const Shape shape = graph->shape(e);
  Value x = LearnedPositions(graph, shape, graph->features().embedding_stddev)(e);
  for (int64_t l = 0; l < config.layers(); ++l) {
    const std::string name = IndexedName("layer", l);
    x = TransformerLayer(graph, name,
                         {.shape = shape,
                          .heads = config.heads(),
                          .causal = true,
                          .hidden = config.hidden(),
                          .gated = config.gated(),
                          .activation = GateActivation(config.activation()),
                          .dropout = config.dropout()})(x);
    graph->Measure(name, x, shape);
  }
  const Layer norm = Norm(graph, "norm", LayerNorm(shape.width));
  return Linear(graph, "head", SharedMap(shape, graph->outputs() / shape.tokens))(norm(x));
}

}  // namespace elastor
