// DCNv2 (Wang et al. 2021): explicit crosses of features beside or below a deep network.
//
//   x_0 = E;  x_{l+1} = x_0 * cross_l(x_l) + x_l  for every cross layer l
//   full:      cross_l(x) = W_l x + b_l
//   low rank:  cross_l(x) = sum over experts e of softmax(G x)_e U_le act(C_le act(V_le x)) + b_l
//   stacked:   logits = linear(deep(x_L))
//   parallel:  logits = linear([x_L, deep(x_0)])
#include "core/models/deep_network.h"
#include "core/models/models.h"

namespace elastor {
namespace {

// Shares by `gates`; the experts' maps lie side by side in "name.down", "name.inner" and "name".
Layer LowRankCross(GraphBuilder* graph, const std::string& name, const DcnV2Config& config,
                   int64_t features, const Layer& gates) {
  const int64_t experts = config.experts();
  const int64_t rank = config.rank();
  LinearOp down;
  down.in = features;
  down.out = experts * rank;
  down.bias = false;
  if (config.expert_activation() == DcnV2Config::TANH) down.activation = Activation::kTanh;
  LinearOp inner;
  inner.tokens = experts;
  inner.in = inner.out = rank;
  inner.bias = false;
  inner.activation = down.activation;
  LinearOp up;
  up.in = down.out;
  up.out = features;
  SoftmaxGateOp gate;
  gate.tokens = experts;
  gate.width = rank;
  const Layer down_map = Linear(graph, name + ".down", down);
  const Layer inner_map = Linear(graph, name + ".inner", inner);
  const Layer up_map = Linear(graph, name, up);
  return [=](Value x) {
    const Value scores = gates(x);
    const Value gated[] = {inner_map(down_map(x)), scores};
    return up_map(graph->Apply(gate, gated));
  };
}

}  // namespace

Value DcnV2(GraphBuilder* graph, const DcnV2Config& config) {
  const Value x0 = graph->Embeddings();
  const Shape fields = graph->shape(x0);
  Layer gates;  // of all cross layers
  if (config.rank() > 0) {
    LinearOp gate;
    gate.in = fields.features();
    gate.out = config.experts();
    gate.bias = false;
    gates = Linear(graph, "gates", gate);
  }
  LinearOp full;
  full.in = full.out = fields.features();
  Value x = x0;
  for (int64_t l = 0; l < config.cross_layers(); ++l) {
    const std::string name = IndexedName("cross", l);
    const Layer cross = config.rank() > 0
                            ? LowRankCross(graph, name, config, fields.features(), gates)
                            : Linear(graph, name, full);
    x = graph->Measure(name, graph->Add(Multiply(graph, x0, cross(x)), x), fields);
  }
  if (config.structure() == DcnV2Config::STACKED) {
    return Mlp(graph, "deep", DeepNetwork(config, fields.features(), graph->outputs()))(x);
  }
  return CrossHead(graph, x, Mlp(graph, "deep", DeepNetwork(config, fields.features()))(x0));
}

}  // namespace elastor
