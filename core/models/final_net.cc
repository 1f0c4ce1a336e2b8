// FinalNet (Zhu et al. 2023): two networks of factorized interaction layers, the first behind a
// gate of the fields, that learn the label together and each the prediction of both.
//
//   layer(x) = dropout(ReLU(BN([u, v * u]))), [u, v] = W x + b, halves of equal width
//   G = A E + c 1', A of n x n;  z_1 = net_1([E, E * G]), z_2 = net_2(E)
//   logit = (z_1 + z_2) / 2;  z_1 and z_2 are students of its prediction (core/task/task.h)
#include "core/models/layers.h"
#include "core/models/models.h"

namespace elastor {
namespace {

template <typename List>
Value InteractionNetwork(GraphBuilder* graph, const std::string& name, const FinalNetConfig& config,
                         const List& hidden, double dropout, Value x) {
  LinearOp map;
  SliceOp half;
  for (int i = 0; i < hidden.size(); ++i) {
    const std::string layer = IndexedName(name + ".hidden", i);
    map.in = graph->shape(x).features();
    map.out = half.width = hidden[i];
    half.slice = {1, map.out / 2};
    const Value h = Linear(graph, layer, map)(x);
    half.first_column = 0;
    const Value u = graph->Apply(half, h);
    half.first_column = map.out / 2;
    const Value v = graph->Apply(half, h);
    x = Concat(graph, u, Multiply(graph, v, u));
    if (config.batch_norm()) x = BatchNorm(graph, layer + ".norm", map.out)(x);
    x = graph->Dropout(graph->Apply(ReluOp{}, x), dropout);
  }
  map.in = graph->shape(x).features();
  map.out = 1;
  return Linear(graph, name + ".output", map)(x);
}

// [E, E * G].
Value WithGate(GraphBuilder* graph, Value e) {
  const Shape fields = graph->shape(e);
  LinearOp gate;
  gate.tokens = fields.width;
  gate.in = gate.out = fields.tokens;
  gate.weights = LinearOp::Weights::kInterleaved;
  const std::vector<int> parameters = {
      graph->Parameter("gate.weight", {gate.out, gate.in}, Init::Constant(0), Decay::kDense),
      graph->Parameter("gate.bias", {gate.out}, Init::Constant(1), Decay::kNone)};
  return Concat(graph, e, Multiply(graph, e, graph->Apply(gate, e, parameters)));
}

}  // namespace

Value FinalNet(GraphBuilder* graph, const FinalNetConfig& config) {
  const Value e = graph->Embeddings();
  const Value gated = config.field_gate() ? WithGate(graph, e) : e;
  const Value z1 =
      InteractionNetwork(graph, "net1", config, config.hidden1(), config.dropout1(), gated);
  const Value z2 =
      InteractionNetwork(graph, "net2", config, config.hidden2(), config.dropout2(), e);
  return graph->Apply(MeanLogitOp{}, Concat(graph, z1, z2));
}

}  // namespace elastor
