// AutoInt (Song et al. 2019): layers of self-attention over the fields; AutoInt+ with a deep
// network beside them.
//
//   x_0 = E;  x_{l+1} = interacting layer(x_l)
//   logit = linear([x_L, deep(x_0)]) (+ the sum of the first-order weights)
#include "core/models/attention_layers.h"
#include "core/models/deep_network.h"
#include "core/models/models.h"

namespace elastor {

Value AutoInt(GraphBuilder* graph, const AutoIntConfig& config) {
  const Value x0 = graph->Embeddings();
  InteractingOptions interacting;
  interacting.heads = config.heads();
  interacting.width = config.attention_width();
  interacting.scale = config.scale();
  interacting.residual = config.residual();
  interacting.layer_norm = config.layer_norm();
  interacting.dropout = config.attention_dropout();
  Value x = x0;
  for (int64_t l = 0; l < config.attention_layers(); ++l) {
    const std::string name = IndexedName("attention", l);
    interacting.input = graph->shape(x);
    x = graph->Measure(name, Interacting(graph, name, interacting)(x));
  }
  LinearOp head;
  head.in = graph->shape(x).features();
  head.out = graph->outputs();
  Value wide;
  if (config.use_wide()) wide = FirstOrderLogit(graph);
  const auto logits = [&](Value all) {
    const Value of_all = Linear(graph, "head", head)(all);
    return config.use_wide() ? graph->Add(wide, of_all) : of_all;
  };
  if (config.hidden().empty()) return logits(x);
  const MlpOptions deep = DeepNetwork(config, graph->shape(x0).features());
  const Value both = Concat(graph, x, Mlp(graph, "deep", deep)(x0));
  head.in = graph->shape(both).features();
  return logits(both);
}

}  // namespace elastor
