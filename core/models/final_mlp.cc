// FinalMLP (Mao et al. 2023): two deep networks, each behind a gate of the embeddings' features,
// whose results are multiplied head by head.
//
//   gate_s = 2 sigmoid(W_s2 ReLU(W_s1 c_s + b_s1) + b_s2), c_s a learned vector;  s = 1, 2
//   o_s = deep_s(gate_s * vec(E))
//   logit = w_1 . o_1 + b_1 + w_2 . o_2 + b_2 + sum over heads h of o_1h' W_h o_2h
#include <cmath>

#include "core/models/layers.h"
#include "core/models/models.h"

namespace elastor {
namespace {

// The embeddings behind a gate.
Value SelectFeatures(GraphBuilder* graph, const std::string& name, int64_t hidden, Value x0) {
  PositionOp constant;
  constant.width = graph->features().embedding_width;
  const int context =
      graph->Parameter(name + ".context", {constant.width},
                       Init{.stddev = graph->features().embedding_stddev}, Decay::kNone);
  LinearOp up;
  up.in = constant.width;
  up.out = hidden;
  up.activation = Activation::kRelu;
  LinearOp down;
  down.in = hidden;
  down.out = graph->shape(x0).features();
  down.activation = Activation::kSigmoid;
  const Value c = graph->Apply(constant, std::span<const Value>(), {context});
  const Value h = Linear(graph, name + ".hidden", up)(c);
  const Value half = Multiply(graph, x0, Linear(graph, name + ".output", down)(h));
  return graph->Add(half, half);
}

template <typename List>
MlpOptions FinalMlpStream(const FinalMlpConfig& config, int64_t inputs, const List& hidden,
                          double dropout) {
  MlpOptions deep;
  deep.inputs = inputs;
  deep.hidden.assign(hidden.begin(), hidden.end());
  if (config.batch_norm()) deep.hidden_norm = MlpOptions::HiddenNorm::kBatch;
  deep.dropout = dropout;
  return deep;
}

}  // namespace

Value FinalMlp(GraphBuilder* graph, const FinalMlpConfig& config) {
  const Value x0 = graph->Embeddings();
  const int64_t features = graph->shape(x0).features();
  const auto select = [&](const char* name) {
    return config.gate_hidden() > 0 ? SelectFeatures(graph, name, config.gate_hidden(), x0) : x0;
  };
  const Value selected1 = select("gate1");
  const Value selected2 = select("gate2");
  const Value o1 =
      Mlp(graph, "deep1",
          FinalMlpStream(config, features, config.hidden1(), config.dropout1()))(selected1);
  const Value o2 =
      Mlp(graph, "deep2",
          FinalMlpStream(config, features, config.hidden2(), config.dropout2()))(selected2);
  LinearOp map;
  map.tokens = config.heads();
  map.in = graph->shape(o1).features() / map.tokens;
  map.out = graph->shape(o2).features() / map.tokens;
  map.bias = false;
  const double numbers = static_cast<double>(map.tokens * map.in * map.out);
  const int weight = graph->Parameter("fusion.weight", {map.tokens, map.out, map.in},
                                      Init{.stddev = std::sqrt(2 / (1 + numbers))}, Decay::kDense);
  const Value products = Multiply(graph, graph->Apply(map, o1, {weight}), o2);
  const Value bilinear = SumPool(graph, products, {1, graph->shape(o2).features()});
  LinearOp head;
  head.out = 1;
  head.in = graph->shape(o1).features();
  const Value linear1 = graph->Add(bilinear, Linear(graph, "head1", head)(o1));
  head.in = graph->shape(o2).features();
  return graph->Add(linear1, Linear(graph, "head2", head)(o2));
}

}  // namespace elastor
