// DCNv3 or FCN (Li et al. 2024): two networks of crosses, whose layers learn a half of their
// factors and mask it for the other half. Each is a branch that learns the label, too
// (core/task/task.h).
//
//   x_0 = [first halves of all embeddings, second halves]
//   M_l = [c, c * ReLU(LN(c))] + b_l, c = W_l x_l
//   exponential: x_{l+1} = dropout(x_l * M_l + x_l);  linear: x_{l+1} = dropout(x_0 * M_l + x_l)
//   z_E, z_L = linear maps of the last layers;  logit = (z_E + z_L) / 2
#include "core/models/layers.h"
#include "core/models/models.h"

namespace elastor {
namespace {

enum class Order { kExponential, kLinear };

Value CrossNetwork(GraphBuilder* graph, const std::string& name, Order order, int64_t layers,
                   double dropout, Value x0, const Shape& halves) {
  LinearOp map;
  map.in = halves.features();
  map.out = map.in / 2;
  map.bias = false;
  PositionOp bias;
  bias.width = map.in;
  Value x = x0;
  for (int64_t l = 0; l < layers; ++l) {
    const std::string layer = IndexedName(name + ".cross", l);
    const Value c = Linear(graph, layer, map)(x);
    const Value mask = graph->Apply(ReluOp{}, Norm(graph, layer + ".norm", LayerNorm(map.out))(c));
    const Value factors = Concat(graph, c, Multiply(graph, c, mask));
    const int vector =
        graph->Parameter(layer + ".bias", {bias.width}, Init::Uniform(), Decay::kNone);
    const Value crossed = Multiply(graph, order == Order::kExponential ? x : x0,
                                   graph->Apply(bias, factors, {vector}));
    x = graph->Dropout(graph->Measure(layer, graph->Add(crossed, x), halves), dropout);
  }
  LinearOp output;
  output.in = map.in;
  output.out = 1;
  return Linear(graph, name + ".output", output)(x);
}

}  // namespace

Value DcnV3(GraphBuilder* graph, const DcnV3Config& config) {
  const Value e = graph->Embeddings();
  const Shape fields = graph->shape(e);
  SliceOp half;
  half.tokens = fields.tokens;
  half.width = fields.width;
  half.slice = {fields.tokens, fields.width / 2};
  const Value first = graph->Apply(half, e);
  half.first_column = half.slice.width;
  const Value x0 = Concat(graph, first, graph->Apply(half, e));
  const Shape halves = {2 * fields.tokens, half.slice.width};
  const Value exponential =
      CrossNetwork(graph, "exponential", Order::kExponential, config.exponential_layers(),
                   config.exponential_dropout(), x0, halves);
  const Value linear = CrossNetwork(graph, "linear", Order::kLinear, config.linear_layers(),
                                    config.linear_dropout(), x0, halves);
  return graph->Apply(MeanLogitOp{}, Concat(graph, exponential, linear));
}

}  // namespace elastor
