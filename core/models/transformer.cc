// A decoder-only transformer of bytes (Radford et al. 2019): as wide as the embeddings, with a
// learned vector for each position.
//
//   X = E + P;  X = X + attention(norm(X));  X = X + MLP(norm(X));  logits = linear(norm(X))
//
// The MLP has one hidden layer with GELU; norms are layer norms.
#include <cmath>

#include "core/models/layers.h"
#include "core/models/models.h"

namespace elastor {
namespace {

Layer SharedLinear(GraphBuilder* graph, const std::string& name, const Shape& input, int64_t out,
                   Activation activation = Activation::kIdentity, bool bias = true) {
  LinearOp op;
  op.tokens = input.tokens;
  op.in = input.width;
  op.out = out;
  op.weights = LinearOp::Weights::kShared;
  op.activation = activation;
  op.bias = bias;
  return Linear(graph, name, op);
}

Layer CausalAttention(GraphBuilder* graph, const std::string& name, const Shape& shape,
                      int64_t heads) {
  // A key's bias would change no weight.
  const auto map = [&](const char* suffix) {
    return SharedLinear(graph, name + suffix, shape, shape.width, {}, /*bias=*/false);
  };
  const Layer query = map(".query");
  const Layer key = map(".key");
  const Layer value = map(".value");
  const Layer output = SharedLinear(graph, name + ".output", shape, shape.width);
  AttentionOp op;
  op.attention.queries = op.attention.keys = shape.tokens;
  op.attention.heads = heads;
  op.attention.width = op.attention.value_width = shape.width / heads;
  op.attention.causal = true;
  op.attention.scale = 1 / std::sqrt(static_cast<double>(op.attention.width));
  return [=](Value x) {
    const Value q = query(x);
    const Value k = key(x);
    const Value inputs[] = {q, k, value(x)};
    return output(graph->Apply(op, inputs));
  };
}

}  // namespace

Value Transformer(GraphBuilder* graph, const TransformerConfig& config) {
  const Value e = graph->Embeddings();
  const Shape shape = graph->shape(e);
  PositionOp positions;
  positions.tokens = positions.positions = shape.tokens;
  positions.width = shape.width;
  const std::vector<int> vectors = {
      graph->Parameter("positions", {shape.tokens, shape.width},
                       Init{.stddev = graph->features().embedding_stddev}, Decay::kNone)};
  Value x = graph->Apply(positions, e, vectors);
  for (int64_t l = 0; l < config.layers(); ++l) {
    const std::string name = IndexedName("layer", l);
    const Layer attention_norm = Norm(graph, name + ".attention.norm", LayerNorm(shape.width));
    const Layer attention = CausalAttention(graph, name + ".attention", shape, config.heads());
    const Layer mlp_norm = Norm(graph, name + ".mlp.norm", LayerNorm(shape.width));
    const Layer hidden =
        SharedLinear(graph, name + ".mlp.hidden", shape, config.hidden(), Activation::kGelu);
    const Layer output =
        SharedLinear(graph, name + ".mlp.output", {shape.tokens, config.hidden()}, shape.width);
    x = graph->Add(x, graph->Dropout(attention(attention_norm(x)), config.dropout()));
    x = graph->Add(x, graph->Dropout(output(hidden(mlp_norm(x))), config.dropout()));
    graph->Measure(name, x, shape);
  }
  const Layer norm = Norm(graph, "norm", LayerNorm(shape.width));
  return SharedLinear(graph, "head", shape, graph->outputs() / shape.tokens)(norm(x));
}

}  // namespace elastor
