#include "core/models/layers.h"

#include <utility>

namespace elastor {

Value SumPool(GraphBuilder* graph, Value x, Shape shape) {
  SumPoolOp op;
  op.tokens = shape.tokens;
  op.width = shape.width;
  return graph->Apply(op, x);
}

Value FirstOrderLogit(GraphBuilder* graph) {
  return SumPool(graph, graph->FirstOrder(), {1, graph->features().fields()});
}

Value Concat(GraphBuilder* graph, Value a, Value b) {
  ConcatOp op;
  op.first_features = graph->shape(a).features();
  const Value both[] = {a, b};
  return graph->Apply(op, both);
}

Value CutTokens(GraphBuilder* graph, Value x, int64_t tokens, int64_t first, int64_t count) {
  if (count == tokens) return x;
  SliceOp op;
  op.tokens = tokens;
  op.width = graph->shape(x).features() / tokens;
  op.first_token = first;
  op.slice = {count, op.width};
  return graph->Apply(op, x);
}

Value FieldsOf(GraphBuilder* graph, const std::vector<bool>& read) {
  const auto fields = static_cast<int64_t>(read.size());
  const Value e = graph->Embeddings();
  Value found;
  for (int64_t begin = 0, end; begin < fields; begin = end) {
    for (end = begin + 1; end < fields && read[end] == read[begin];) ++end;
    if (!read[begin]) continue;
    const Value run = CutTokens(graph, e, fields, begin, end - begin);
    found = found.node < 0 ? run : Concat(graph, found, run);
  }
  return found;
}

Value Multiply(GraphBuilder* graph, Value a, Value b) {
  const Value factors[] = {a, b};
  return graph->Apply(MultiplyOp{}, factors);
}

Value CrossHead(GraphBuilder* graph, Value crosses, Value deep) {
  const Value both = Concat(graph, crosses, deep);
  LinearOp head;
  head.in = graph->shape(both).features();
  head.out = graph->outputs();
  return Linear(graph, "head", head)(both);
}

Value LogitSum(GraphBuilder* graph, Value x) {
  const int bias = graph->Parameter("bias", {1}, Init::Constant(0), Decay::kNone);
  return graph->Apply(LogitSumOp{}, x, {bias});
}

LinearOp SharedMap(const Shape& input, int64_t out, bool bias) {
  LinearOp op;
  op.tokens = input.tokens;
  op.in = input.width;
  op.out = out;
  op.weights = LinearOp::Weights::kShared;
  op.bias = bias;
  return op;
}

Layer Linear(GraphBuilder* graph, const std::string& name, const LinearOp& op) {
  using Dimensions = std::vector<int64_t>;
  const int64_t maps = op.maps();
  std::vector<int> parameters = {graph->Parameter(
      name + ".weight", maps > 1 ? Dimensions{maps, op.out, op.in} : Dimensions{op.out, op.in},
      Init::XavierNormal(op.in, op.out), Decay::kDense)};
  if (op.bias) {
    parameters.push_back(graph->Parameter(name + ".bias",
                                          maps > 1 ? Dimensions{maps, op.out} : Dimensions{op.out},
                                          Init::Constant(0), Decay::kNone));
  }
  return [=](Value x) { return graph->Apply(op, x, parameters); };
}

Layer Norm(GraphBuilder* graph, const std::string& name, const NormShape& norm) {
  NormOp op;
  op.norm = norm;
  std::vector<int> parameters = {
      graph->Parameter(name + ".gain", {norm.width}, Init::Constant(1), Decay::kNone)};
  if (norm.kind == NormKind::kLayer) {
    parameters.push_back(
        graph->Parameter(name + ".bias", {norm.width}, Init::Constant(0), Decay::kNone));
  }
  return [=](Value x) { return graph->Apply(op, x, parameters); };
}

Layer BatchNorm(GraphBuilder* graph, const std::string& name, int64_t features) {
  const std::vector<int> parameters = {
      graph->Parameter(name + ".gain", {features}, Init::Constant(1), Decay::kNone),
      graph->Parameter(name + ".bias", {features}, Init::Constant(0), Decay::kNone),
      graph->Statistic(name + ".running_mean", {features}, 0),
      graph->Statistic(name + ".running_variance", {features}, 1)};
  return [=](Value x) { return graph->Apply(BatchNormOp{}, x, parameters); };
}

Layer LearnedPositions(GraphBuilder* graph, const Shape& shape, double stddev,
                       const std::string& name) {
  PositionOp positions;
  positions.tokens = positions.positions = shape.tokens;
  positions.width = shape.width;
  const std::vector<int> vectors = {
      graph->Parameter(name, {shape.tokens, shape.width}, Init{.stddev = stddev}, Decay::kNone)};
  return [=](Value x) { return graph->Apply(positions, x, vectors); };
}

Layer MultiProbe(GraphBuilder* graph, const std::string& name, const Shape& matrix, int64_t probes,
                 int64_t matrices) {
  LinearOp right;
  right.tokens = matrices * matrix.tokens;
  right.in = matrix.width;
  right.out = probes;
  right.weights = LinearOp::Weights::kShared;
  right.bias = false;
  const Layer project = Linear(graph, name + ".right", right);
  WeightedPoolOp left;
  left.groups = matrices;
  left.tokens = matrix.tokens;
  left.width = probes;
  const std::vector<int> parameters = {
      graph->Parameter(name + ".left.weight", {probes, matrix.tokens},
                       Init::XavierNormal(matrix.tokens, 1), Decay::kDense)};
  return [=](Value x) { return graph->Apply(left, project(x), parameters); };
}

Layer Mlp(GraphBuilder* graph, const std::string& name, const MlpOptions& options) {
  using HiddenNorm = MlpOptions::HiddenNorm;
  const bool with_norm = options.hidden_norm != HiddenNorm::kNone;
  CHECK(!with_norm || options.activation == Activation::kRelu);
  LinearOp op;
  op.tokens = options.tokens;
  op.in = options.inputs;
  op.weights = options.weights;
  std::vector<Layer> hidden;
  for (size_t i = 0; i < options.hidden.size(); ++i) {
    const std::string layer = IndexedName(name + ".hidden", static_cast<int64_t>(i));
    op.out = options.hidden[i];
    op.bias = options.hidden_norm != HiddenNorm::kBatch;
    op.activation = with_norm ? Activation::kIdentity : options.activation;
    const Layer linear = Linear(graph, layer, op);
    op.in = op.out;
    if (!with_norm) {
      hidden.push_back(linear);
      continue;
    }
    const Layer norm = options.hidden_norm == HiddenNorm::kRms
                           ? Norm(graph, layer + ".norm", RmsNorm(op.out))
                           : BatchNorm(graph, layer + ".norm", op.out);
    hidden.push_back([=](Value x) { return graph->Apply(ReluOp{}, norm(linear(x))); });
  }
  op.out = options.outputs;
  op.bias = true;
  op.activation = Activation::kIdentity;
  Layer output = [](Value x) { return x; };
  if (options.outputs > 0) output = Linear(graph, name + ".output", op);
  return [=, dropout = options.dropout](Value x) {
    for (const Layer& layer : hidden) x = graph->Dropout(layer(x), dropout);
    return output(x);
  };
}

Value DotProducts(GraphBuilder* graph, Value x, Shape shape) {
  PairwiseDotOp products;
  products.first = products.second = shape.tokens;
  products.width = shape.width;
  const Value both[] = {x, x};
  UpperTriangleOp triangle;
  triangle.size = products.first;
  return graph->Apply(triangle, graph->Apply(products, both));
}

Layer SideBySide(GraphBuilder* graph, const std::string& name, int64_t count, const LinearOp& op) {
  CHECK_EQ(op.tokens, 1);
  LinearOp all = op;
  all.out = count * op.out;
  std::vector<int> parameters = {graph->Parameter(
      name + ".weight", {count, op.out, op.in}, Init::XavierNormal(op.in, op.out), Decay::kDense)};
  if (op.bias) {
    parameters.push_back(
        graph->Parameter(name + ".bias", {count, op.out}, Init::Constant(0), Decay::kNone));
  }
  return [=](Value x) { return graph->Apply(all, x, parameters); };
}

Layer SideBySide(GraphBuilder* graph, const std::string& name, int64_t count,
                 const MlpOptions& options) {
  const bool hidden = !options.hidden.empty();
  LinearOp first;
  first.in = options.inputs;
  first.out = hidden ? options.hidden[0] : options.outputs;
  if (hidden) first.activation = options.activation;
  const Layer maps = SideBySide(graph, name + (hidden ? ".hidden0" : ".output"), count, first);
  if (!hidden) return maps;
  LinearOp op;
  op.tokens = count;
  op.activation = options.activation;
  op.in = first.out;
  std::vector<Layer> layers = {maps};
  for (size_t i = 1; i < options.hidden.size(); ++i) {
    op.out = options.hidden[i];
    layers.push_back(Linear(graph, IndexedName(name + ".hidden", static_cast<int64_t>(i)), op));
    op.in = op.out;
  }
  op.out = options.outputs;
  op.activation = Activation::kIdentity;
  Layer output = [](Value x) { return x; };
  if (options.outputs > 0) output = Linear(graph, name + ".output", op);
  return [=, dropout = options.dropout](Value x) {
    for (const Layer& layer : layers) x = graph->Dropout(layer(x), dropout);
    return output(x);
  };
}

Layer GatedMlp(GraphBuilder* graph, const std::string& name, const LinearOp& hidden, bool gated,
               int64_t outputs, bool output_bias) {
  LinearOp map = hidden;
  if (gated) map.activation = Activation::kIdentity;
  const Layer up = Linear(graph, name + ".hidden", map);
  const Layer gate = gated ? Linear(graph, name + ".gate", hidden) : nullptr;
  LinearOp last = hidden;
  last.in = hidden.out;
  last.out = outputs;
  last.activation = Activation::kIdentity;
  last.bias = output_bias;
  const Layer output = Linear(graph, name + ".output", last);
  return [=](Value x) {
    const Value y = up(x);
    if (!gate) return output(y);
    return output(Multiply(graph, gate(x), y));
  };
}

}  // namespace elastor
