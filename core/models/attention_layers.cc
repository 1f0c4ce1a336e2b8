#include "core/models/attention_layers.h"

#include <cmath>

namespace elastor {
namespace {

Layer SoftmaxAttention(GraphBuilder* graph, const std::string& name,
                       const TransformerOptions& options) {
  const Shape& shape = options.shape;
  const LinearOp map = SharedMap(shape, shape.width, /*bias=*/false);
  const Layer query = Linear(graph, name + ".query", map);
  const Layer key = Linear(graph, name + ".key", map);
  const Layer value = Linear(graph, name + ".value", map);
  const Layer output = Linear(graph, name + ".output", SharedMap(shape, shape.width));
  AttentionOp op;
  op.attention.queries = op.attention.keys = shape.tokens;
  op.attention.heads = options.heads;
  op.attention.width = op.attention.value_width = shape.width / options.heads;
  op.attention.causal = options.causal;
  op.attention.scale = 1 / std::sqrt(static_cast<double>(op.attention.width));
  return [=](Value x) {
    const Value q = query(x);
    const Value k = key(x);
    const Value inputs[] = {q, k, value(x)};
    return output(graph->Apply(op, inputs));
  };
}

}  // namespace

Layer Interacting(GraphBuilder* graph, const std::string& name, const InteractingOptions& options) {
  const auto [tokens, in] = options.input;
  const LinearOp map = SharedMap(options.input, options.width, /*bias=*/false);
  const Layer query = Linear(graph, name + ".query", map);
  const Layer key = Linear(graph, name + ".key", map);
  const Layer value = Linear(graph, name + ".value", map);
  AttentionOp op;
  op.attention.queries = op.attention.keys = tokens;
  op.attention.heads = options.heads;
  op.attention.width = op.attention.value_width = options.width / options.heads;
  op.dropout = options.dropout;
  op.dropout_layer = graph->NextAttentionDropout();
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

Layer Hstu(GraphBuilder* graph, const std::string& name, const HstuOptions& options) {
  const auto [tokens, in] = options.input;
  AttentionOp op;
  op.attention.kind = AttentionKind::kSilu;
  op.attention.queries = op.attention.keys = tokens;
  op.attention.heads = options.heads;
  op.attention.width = options.width;
  op.attention.value_width = options.value_width;
  op.attention.causal = true;
  op.position_bias = true;
  op.sequence = options.sequence;
  op.sequences = options.sequences;
  const int64_t value_features = options.heads * options.value_width;
  const Layer norm = Norm(graph, name + ".norm", LayerNorm(in));
  const auto map = [&](const char* suffix, int64_t width) {
    LinearOp linear = SharedMap(options.input, options.heads * width, /*bias=*/false);
    linear.activation = Activation::kSwish;
    return Linear(graph, name + suffix, linear);
  };
  const Layer query = map(".query", options.width);
  const Layer key = map(".key", options.width);
  const Layer value = map(".value", options.value_width);
  const Layer gate = map(".gate", options.value_width);
  const std::vector<int> position_bias = {graph->Parameter(
      name + ".position_bias", {op.attention.differences()}, Init{.stddev = 0.02}, Decay::kNone)};
  const Layer output_norm = Norm(graph, name + ".output_norm", LayerNorm(value_features));
  const Layer output = Linear(graph, name + ".output", SharedMap({tokens, value_features}, in));
  return [=](Value x) {
    const Value normal = norm(x);
    const Value inputs[] = {query(normal), key(normal), value(normal)};
    const Value attended = output_norm(graph->Apply(op, inputs, position_bias));
    const Value gated[] = {attended, gate(normal)};
    return graph->Add(output(graph->Apply(MultiplyOp{}, gated)), x);
  };
}

Layer Bst(GraphBuilder* graph, const std::string& name, const BstOptions& options) {
  const auto [tokens, width] = options.input;
  const LinearOp map = SharedMap(options.input, width);
  const Layer query = Linear(graph, name + ".query", map);
  const Layer key = Linear(graph, name + ".key", SharedMap(options.input, width, /*bias=*/false));
  const Layer value = Linear(graph, name + ".value", map);
  const Layer output = Linear(graph, name + ".output", map);
  const Layer attention_norm = Norm(graph, name + ".attention.norm", LayerNorm(width));
  LinearOp hidden = map;
  hidden.activation = Activation::kLeakyRelu;
  const Layer mlp = GatedMlp(graph, name + ".mlp", hidden, /*gated=*/false, width);
  const Layer mlp_norm = Norm(graph, name + ".mlp.norm", LayerNorm(width));
  AttentionOp op;
  op.attention.queries = op.attention.keys = tokens;
  op.attention.heads = options.heads;
  op.attention.width = op.attention.value_width = width / options.heads;
  op.attention.scale = 1 / std::sqrt(static_cast<double>(op.attention.width));
  op.sequence = options.sequence;
  op.sequences = options.sequences;
  return [=, dropout = options.dropout](Value x) {
    const Value q = query(x);
    const Value k = key(x);
    const Value inputs[] = {q, k, value(x)};
    const Value attended = output(graph->Apply(op, inputs));
    const Value s = attention_norm(graph->Add(x, graph->Dropout(attended, dropout)));
    return mlp_norm(graph->Add(s, graph->Dropout(mlp(s), dropout)));
  };
}

Layer TransformerLayer(GraphBuilder* graph, const std::string& name,
                       const TransformerOptions& options) {
  const int64_t width = options.shape.width;
  const Layer attention_norm = Norm(graph, name + ".attention.norm", LayerNorm(width));
  const Layer attention = SoftmaxAttention(graph, name + ".attention", options);
  const Layer mlp_norm = Norm(graph, name + ".mlp.norm", LayerNorm(width));
  LinearOp hidden = SharedMap(options.shape, options.hidden);
  hidden.activation = options.activation;
  const Layer mlp = GatedMlp(graph, name + ".mlp", hidden, options.gated, width);
  return [=, dropout = options.dropout](Value x) {
    x = graph->Add(x, graph->Dropout(attention(attention_norm(x)), dropout));
    return graph->Add(x, graph->Dropout(mlp(mlp_norm(x)), dropout));
  };
}

}  // namespace elastor
