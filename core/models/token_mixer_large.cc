// TokenMixer-Large (arXiv 2602.06563): RankMixer's mixing there and back again, so that a block's
// residual is a token's own.
//
//   X = [linear_0(E); linear_t(group t of E) for the other tokens]
//   M = mix(X);  H = M + P(RMS(M));  R = mix(H);  X = X + P'(RMS(R))     a block; mix is its own
//   inverse P(x)_t = W_t (swish(G_t x_t) * U_t x_t)                              a token's own
//   weights, no biases X_l += X_{l - r} every r blocks, but not behind the last logits =
//   linear(mean over tokens of X)
#include <vector>

#include "core/models/layers.h"
#include "core/models/models.h"

namespace elastor {
namespace {

// W starts small, so that a block starts near the identity.
constexpr double kDownScale = 0.01;

Layer PerTokenSwiGlu(GraphBuilder* graph, const std::string& name, const Shape& shape,
                     int64_t hidden) {
  const Layer norm = Norm(graph, name + ".norm", RmsNorm(shape.width));
  LinearOp up;
  up.tokens = shape.tokens;
  up.in = shape.width;
  up.out = hidden;
  up.bias = false;
  const Layer value = Linear(graph, name + ".hidden", up);
  LinearOp gate_map = up;
  gate_map.activation = Activation::kSwish;
  const Layer gate = Linear(graph, name + ".gate", gate_map);
  LinearOp down = up;
  down.in = hidden;
  down.out = shape.width;
  Init init = Init::XavierNormal(hidden, shape.width);
  init.stddev *= kDownScale;
  const std::vector<int> weight = {graph->Parameter(
      name + ".output.weight", {shape.tokens, shape.width, hidden}, init, Decay::kDense)};
  return [=](Value x) {
    const Value n = norm(x);
    const Value v = value(n);
    return graph->Apply(down, Multiply(graph, gate(n), v), weight);
  };
}

// The first token reads all of E, each other a group of its features.
Value MakeTokens(GraphBuilder* graph, const Shape& shape) {
  const Value e = graph->Embeddings();
  const int64_t features = graph->shape(e).features();
  LinearOp global;
  global.in = features;
  global.out = shape.width;
  LinearOp grouped;
  grouped.tokens = shape.tokens - 1;
  grouped.in = (features + grouped.tokens - 1) / grouped.tokens;
  grouped.out = shape.width;
  PadOp groups;
  groups.tokens = grouped.tokens;
  groups.width = grouped.in;
  const Value first = Linear(graph, "tokenizer.global", global)(e);
  const Value others = Linear(graph, "tokenizer.groups", grouped)(graph->Apply(groups, e));
  return Concat(graph, first, others);
}

}  // namespace

Value TokenMixerLarge(GraphBuilder* graph, const TokenMixerLargeConfig& config) {
  const Shape shape = {config.tokens(), config.token_width()};
  const int64_t hidden = config.expansion() * shape.width;
  BlockTransposeOp mix;
  mix.tokens = shape.tokens;
  mix.width = shape.width;
  std::vector<Value> blocks = {graph->Measure("tokens", MakeTokens(graph, shape), shape)};
  for (int64_t l = 0; l < config.blocks(); ++l) {
    const std::string name = IndexedName("block", l);
    const Value mixed = graph->Apply(mix, blocks.back());
    const Value h =
        graph->Add(mixed, PerTokenSwiGlu(graph, name + ".mixing", shape, hidden)(mixed));
    graph->Measure(name + ".mixing", h, shape);
    const Value reverted = graph->Apply(mix, h);
    Value x =
        graph->Add(blocks.back(), PerTokenSwiGlu(graph, name + ".ffn", shape, hidden)(reverted));
    const int64_t r = config.residual_every();
    if (r > 0 && (l + 1) % r == 0 && l + 1 < config.blocks()) {
      x = graph->Add(x, blocks[l + 1 - r]);
    }
    blocks.push_back(graph->Measure(name + ".ffn", x, shape));
  }
  MeanPoolOp mean;
  mean.tokens = shape.tokens;
  mean.width = shape.width;
  LinearOp head;
  head.in = shape.width;
  head.out = graph->outputs();
  const Layer logits = Linear(graph, "head", head);
  return logits(graph->Apply(mean, blocks.back()));
}

}  // namespace elastor
