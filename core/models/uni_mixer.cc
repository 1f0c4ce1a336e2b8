// UniMixer (arXiv 2604.00590): matrices with sums of 1, made by Sinkhorn's normalisation, mix M =
// TD / c blocks of c features of the tokens, and two streams carry the tokens past the blocks.
//
//   X = Y = linear_t(group t of E)
//   Z = X + RMS(Y)                                               what a block reads
//   mix(Z) = W_G H;  h_i = z_i W_i                               z_i: block i of vec(Z)
//   O = P(RMS(Z + mix(Z)));  X = RMS(X + O);  Y = Y + O          a block
//   P(x)_t = W_t (swish(G_t x_t + g_t) * (U_t x_t + u_t)) + w_t  a token's own weights
//   logits = linear(mean over tokens of X + RMS(Y))
#include <cmath>
#include <string>
#include <vector>

#include "core/models/layers.h"
#include "core/models/models.h"

namespace elastor {
namespace {

// The parameters are "name.logits", or their factors.
Layer SinkhornMix(GraphBuilder* graph, const std::string& name, const SinkhornMixOp& op,
                  double stddev) {
  const std::vector<std::vector<int64_t>> shapes = op.parameter_shapes();
  std::vector<int> parameters;
  if (op.rank == 0) {
    parameters = {
        graph->Parameter(name + ".logits", shapes[0], Init{.stddev = stddev}, Decay::kNone)};
  } else {
    // So that sums of `rank` products have this deviation.
    const Init init = {.stddev = std::sqrt(stddev / std::sqrt(static_cast<double>(op.rank)))};
    for (const int i : {0, 1}) {
      parameters.push_back(graph->Parameter(name + (i == 0 ? ".logits_left" : ".logits_right"),
                                            shapes[i], init, Decay::kNone));
    }
  }
  return [=](Value x) { return graph->Apply(op, x, parameters); };
}

Layer Mixing(GraphBuilder* graph, const std::string& name, const Shape& shape,
             const UniMixerConfig& config) {
  SinkhornMixOp op;
  op.width = config.block_width();
  op.blocks = shape.features() / op.width;
  op.tau = config.tau();
  op.iterations = config.sinkhorn_iterations();
  op.rank = config.basis();
  const double stddev = config.initial_spread() * op.tau;
  const Layer within = SinkhornMix(graph, name + ".within", op, stddev);
  op.mixes = SinkhornMixOp::Mixes::kBetween;
  op.rank = config.rank();
  const Layer between = SinkhornMix(graph, name + ".between", op, stddev);
  const Layer norm = Norm(graph, name + ".norm", RmsNorm(shape.width));
  return [=](Value z) { return norm(graph->Add(z, between(within(z)))); };
}

Value MakeGroupTokens(GraphBuilder* graph, const Shape& shape) {
  PadOp groups;
  groups.tokens = shape.tokens;
  groups.width = (graph->features().inputs() + shape.tokens - 1) / shape.tokens;
  LinearOp map;
  map.tokens = shape.tokens;
  map.in = groups.width;
  map.out = shape.width;
  const Layer project = Linear(graph, "tokenizer", map);
  return project(graph->Apply(groups, graph->Embeddings()));
}

}  // namespace

Value UniMixer(GraphBuilder* graph, const UniMixerConfig& config) {
  const Shape shape = {config.tokens(), config.token_width()};
  LinearOp hidden;
  hidden.tokens = shape.tokens;
  hidden.in = shape.width;
  hidden.out = config.expansion() * shape.width;
  hidden.activation = Activation::kSwish;
  Value x = graph->Measure("tokens", MakeGroupTokens(graph, shape), shape);
  Value y = x;
  Value z = graph->Add(x, Norm(graph, "norm", RmsNorm(shape.width))(y));
  for (int64_t l = 0; l < config.blocks(); ++l) {
    const std::string name = IndexedName("block", l);
    const Value m =
        graph->Measure(name + ".mixing", Mixing(graph, name + ".mixing", shape, config)(z), shape);
    const Value o = GatedMlp(graph, name + ".ffn", hidden, /*gated=*/true, shape.width)(m);
    x = Norm(graph, name + ".x_norm", RmsNorm(shape.width))(graph->Add(x, o));
    y = graph->Add(y, o);
    z = graph->Add(x, Norm(graph, name + ".y_norm", RmsNorm(shape.width))(y));
    graph->Measure(name + ".ffn", z, shape);
  }
  MeanPoolOp mean;
  mean.tokens = shape.tokens;
  mean.width = shape.width;
  LinearOp head;
  head.in = shape.width;
  head.out = graph->outputs();
  return Linear(graph, "head", head)(graph->Apply(mean, z));
}

}  // namespace elastor
