// GDCN (Wang et al. 2023): DCNv2's cross layers behind a gate for every feature.
//
//   x_0 = vec(E);  x_{l+1} = x_0 * (W_l x_l + b_l) * sigmoid(G_l x_l) + x_l
//   stacked (GDCN-S):   logits = linear(deep(x_L))
//   parallel (GDCN-P):  logits = linear([x_L, deep(x_0)])
#include "core/models/deep_network.h"
#include "core/models/models.h"

namespace elastor {

Value Gdcn(GraphBuilder* graph, const GdcnConfig& config) {
  const Value x0 = graph->Embeddings();
  const Shape fields = graph->shape(x0);
  LinearOp cross;
  cross.in = cross.out = fields.features();
  LinearOp gate = cross;
  gate.bias = false;
  gate.activation = Activation::kSigmoid;
  Value x = x0;
  for (int64_t l = 0; l < config.cross_layers(); ++l) {
    const std::string name = IndexedName("cross", l);
    const Value crossed = Linear(graph, name, cross)(x);
    const Value gated = Multiply(graph, crossed, Linear(graph, name + ".gate", gate)(x));
    x = graph->Measure(name, graph->Add(Multiply(graph, x0, gated), x), fields);
  }
  if (config.structure() == GdcnConfig::STACKED) {
    return Mlp(graph, "deep", DeepNetwork(config, fields.features(), graph->outputs()))(x);
  }
  return CrossHead(graph, x, Mlp(graph, "deep", DeepNetwork(config, fields.features()))(x0));
}

}  // namespace elastor
