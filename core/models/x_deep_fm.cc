// xDeepFM (Lian et al. 2018): crosses of whole fields, a deep network and a linear model, whose
// logits are added.
//
//   x_0 = E;  x_{l+1} = interaction(x_l, x_0), a layer of the compressed interaction network (CIN)
//   logit = sum of the first-order weights + linear([pool(x_1), ..., pool(x_L)]) + deep(E)
#include "core/models/deep_network.h"
#include "core/models/models.h"

namespace elastor {
namespace {

// "name.weight" [maps, p, m], Xavier normal, and "name.bias", zero.
Value Interaction(GraphBuilder* graph, const std::string& name, int64_t maps, Value x, Value x0) {
  CompressedInteractionOp op;
  op.maps = maps;
  op.first = graph->shape(x).tokens;
  if (x.node != x0.node) op.second = graph->shape(x0).tokens;
  op.width = graph->shape(x0).width;
  const Init init = Init::XavierNormal(op.first * op.b_tokens(), maps);
  const std::vector<int> parameters = {
      graph->Parameter(name + ".weight", {maps, op.first, op.b_tokens()}, init, Decay::kDense),
      graph->Parameter(name + ".bias", {maps}, Init::Constant(0), Decay::kNone)};
  if (op.one_input()) return graph->Apply(op, x, parameters);
  const Value both[] = {x, x0};
  return graph->Apply(op, both, parameters);
}

}  // namespace

Value XDeepFm(GraphBuilder* graph, const XDeepFmConfig& config) {
  const Value x0 = graph->Embeddings();
  const Shape fields = graph->shape(x0);
  const Value linear = FirstOrderLogit(graph);
  Value x = x0;
  Value pooled;
  for (int l = 0; l < config.maps_size(); ++l) {
    const std::string name = IndexedName("cin", l);
    x = graph->Measure(name, Interaction(graph, name, config.maps(l), x, x0));
    const Value sums = SumPool(graph, x, graph->shape(x));
    pooled = l == 0 ? sums : Concat(graph, pooled, sums);
  }
  LinearOp output;
  output.in = graph->shape(pooled).features();
  output.out = 1;
  const Value crosses = graph->Add(linear, Linear(graph, "cin.output", output)(pooled));
  const MlpOptions deep = DeepNetwork(config, fields.features(), /*outputs=*/1);
  return graph->Add(crosses, Mlp(graph, "deep", deep)(x0));
}

}  // namespace elastor
