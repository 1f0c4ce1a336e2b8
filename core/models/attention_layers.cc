#include "core/models/attention_layers.h"

#include <cmath>

namespace elastor {
namespace {

// A linear map that the tokens of `input` share.
LinearOp SharedMap(const Shape& input, int64_t out) {
  LinearOp op;
  op.tokens = input.tokens;
  op.in = input.width;
  op.out = out;
  op.weights = LinearOp::Weights::kShared;
  op.bias = false;
  return op;
}

}  // namespace

Layer Interacting(GraphBuilder* graph, const std::string& name, const InteractingOptions& options) {
  const auto [tokens, in] = options.input;
  const LinearOp map = SharedMap(options.input, options.width);
  const Layer query = Linear(graph, name + ".query", map);
  const Layer key = Linear(graph, name + ".key", map);
  const Layer value = Linear(graph, name + ".value", map);
  AttentionOp op;
  op.attention.queries = op.attention.keys = tokens;
  op.attention.heads = options.heads;
  op.attention.width = op.attention.value_width = options.width / options.heads;
  if (options.scale) op.attention.scale = 1 / std::sqrt(static_cast<double>(op.attention.width));
  Layer residual = [](Value x) { return x; };
  if (options.residual && in != options.width) residual = Linear(graph, name + ".residual", map);
  Layer norm = [](Value x) { return x; };
  if (options.layer_norm) norm = Norm(graph, name + ".norm", LayerNorm(options.width));
  return [=, has_residual = options.residual](Value x) {
    const Value inputs[] = {query(x), key(x), value(x)};
    Value y = graph->Apply(op, inputs);
    if (has_residual) y = graph->Add(residual(x), y);
    return graph->Apply(ReluOp{}, norm(y));
  };
}

}  // namespace elastor
