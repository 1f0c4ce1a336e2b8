// Wukong (Zhang et al. 2024): layers of a factorization machine block (FMB) and a linear
// compression block (LCB) side by side, the one for products of embeddings, the other for what the
// layers below have found.
//
//   X_0 = E;  X_{l+1} = LN([FMB(X_l); LCB(X_l)] + residual(X_l));  logit = MLP(X_L)
//   FMB(X) = MLP(LN(X (X^T Y))), Y [tokens, rank] learned;  LCB(X) = W X
#include "core/models/layers.h"
#include "core/models/models.h"

namespace elastor {
namespace {

// W X for tokens X, W [out, tokens].
Value MapTokens(GraphBuilder* graph, const std::string& name, Value x, Shape shape, int64_t out) {
  LinearOp op;
  op.tokens = shape.width;
  op.in = shape.tokens;
  op.out = out;
  op.weights = LinearOp::Weights::kInterleaved;
  op.bias = false;
  return Linear(graph, name, op)(x);
}

Value FactorizationMachine(GraphBuilder* graph, const std::string& name, const WukongConfig& config,
                           Value x, Shape shape) {
  PairwiseDotOp products;
  products.first = shape.tokens;
  products.second = config.rank();
  products.width = shape.width;
  const Value both[] = {x, MapTokens(graph, name + ".projection", x, shape, products.second)};
  MlpOptions mlp;
  mlp.inputs = products.first * products.second;
  mlp.hidden.assign(config.interaction_hidden().begin(), config.interaction_hidden().end());
  mlp.outputs = config.interaction_tokens() * shape.width;
  const Layer norm = Norm(graph, name + ".norm", LayerNorm(mlp.inputs));
  return Mlp(graph, name, mlp)(norm(graph->Apply(products, both)));
}

}  // namespace

Value Wukong(GraphBuilder* graph, const WukongConfig& config) {
  Value x = graph->Embeddings();
  Shape shape = graph->shape(x);
  for (int64_t l = 0; l < config.layers(); ++l) {
    const std::string name = IndexedName("layer", l);
    const Value products = FactorizationMachine(graph, name + ".fm", config, x, shape);
    const Value compressed =
        MapTokens(graph, name + ".compress", x, shape, config.compressed_tokens());
    const Shape next = {config.interaction_tokens() + config.compressed_tokens(), shape.width};
    const Value residual = next.tokens == shape.tokens
                               ? x
                               : MapTokens(graph, name + ".residual", x, shape, next.tokens);
    const Value sum = graph->Add(residual, Concat(graph, products, compressed));
    x = graph->Dropout(Norm(graph, name + ".norm", LayerNorm(shape.width))(sum), config.dropout());
    graph->Measure(name, x, next);
    shape = next;
  }
  MlpOptions head;
  head.inputs = shape.features();
  head.hidden.assign(config.hidden().begin(), config.hidden().end());
  head.outputs = graph->outputs();
  head.dropout = config.dropout();
  return Mlp(graph, "head", head)(x);
}

}  // namespace elastor
