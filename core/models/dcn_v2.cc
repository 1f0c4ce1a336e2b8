// DCNv2 (Wang et al. 2021): explicit crosses of features beside or below a deep network.
//
//   x_0 = E;  x_{l+1} = x_0 * (W_l x_l + b_l) + x_l  for every cross layer l
//   stacked:   logits = linear(deep(x_L))
//   parallel:  logits = linear([x_L, deep(x_0)])
#include "core/models/layers.h"
#include "core/models/models.h"

namespace elastor {

Value DcnV2(GraphBuilder* graph, const DcnV2Config& config) {
  const Value x0 = graph->Embeddings();
  const Shape fields = graph->shape(x0);
  LinearOp cross;
  cross.in = cross.out = fields.features();
  Value x = x0;
  for (int64_t l = 0; l < config.cross_layers(); ++l) {
    const std::string name = IndexedName("cross", l);
    const Value factors[] = {x0, Linear(graph, name, cross)(x)};
    x = graph->Measure(name, graph->Add(graph->Apply(MultiplyOp{}, factors), x), fields);
  }
  MlpOptions deep;
  deep.inputs = fields.features();
  deep.hidden.assign(config.hidden().begin(), config.hidden().end());
  if (config.batch_norm()) deep.hidden_norm = MlpOptions::HiddenNorm::kBatch;
  deep.dropout = config.dropout();
  if (config.structure() == DcnV2Config::STACKED) {
    deep.outputs = graph->outputs();
    return Mlp(graph, "deep", deep)(x);
  }
  const Value both[] = {x, Mlp(graph, "deep", deep)(x0)};
  ConcatOp concat;
  concat.first_features = fields.features();
  LinearOp head;
  head.in = fields.features() + deep.hidden.back();
  head.out = graph->outputs();
  return Linear(graph, "head", head)(graph->Apply(concat, both));
}

}  // namespace elastor
