// DCN (Wang et al. 2017), the first version, whose cross layers have a vector where DCNv2's have a
// matrix.
//
//   x_0 = vec(E);  x_{l+1} = x_0 (w_l . x_l) + b_l + x_l;  logits = linear([x_L, deep(x_0)])
#include "core/models/deep_network.h"
#include "core/models/models.h"

namespace elastor {

Value Dcn(GraphBuilder* graph, const DcnConfig& config) {
  const Value x0 = graph->Embeddings();
  const Shape fields = graph->shape(x0);
  LinearOp weight;
  weight.in = fields.features();
  weight.out = 1;
  weight.bias = false;
  MatrixProductOp scale;  // [1, 1] times [1, N]
  scale.product = {.count = 1, .rows = 1, .columns = fields.features(), .terms = 1};
  PositionOp bias;
  bias.width = fields.features();
  Value x = x0;
  for (int64_t l = 0; l < config.cross_layers(); ++l) {
    const std::string name = IndexedName("cross", l);
    const Value factors[] = {Linear(graph, name, weight)(x), x0};
    const Value scaled = graph->Apply(scale, factors);
    const int vector =
        graph->Parameter(name + ".bias", {bias.width}, Init::Constant(0), Decay::kNone);
    x = graph->Add(graph->Apply(bias, scaled, {vector}), x);
    graph->Measure(name, x, fields);
  }
  const MlpOptions deep = DeepNetwork(config, fields.features());
  return CrossHead(graph, x, Mlp(graph, "deep", deep)(x0));
}

}  // namespace elastor
