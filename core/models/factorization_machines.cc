// Models of products of two fields' embeddings e_i. FM(E) is the sum of e_i * e_j over i < j, a
// vector of k features; w_i are first-order weights.
//
//   FM (Rendle 2010):           logit = sum_i w_i + sum_d FM(E)_d + b
//   FwFM (Pan et al. 2018):     logit = sum_{i<j} r_ij (e_i . e_j) + b + sum_i e_i . v_i or sum_i
//   w_i DeepFM (Guo et al. 2017):   logit = sum_i w_i + sum_d FM(E)_d + deep(E) NFM (He and Chua
//   2017):     logit = sum_i w_i + deep(FM(E)) IPNN (Qu et al. 2016):      logits = deep([E, e_i .
//   e_j for i < j])
#include "core/models/deep_network.h"
#include "core/models/models.h"

namespace elastor {
namespace {

Value PooledProducts(GraphBuilder* graph, Value e) {
  FactorizationPoolOp op;
  op.tokens = graph->shape(e).tokens;
  op.width = graph->shape(e).width;
  return graph->Apply(op, e);
}

}  // namespace

Value Fm(GraphBuilder* graph, const FmConfig&) {
  const Value products = PooledProducts(graph, graph->Embeddings());
  return LogitSum(graph, Concat(graph, graph->FirstOrder(), products));
}

Value FwFm(GraphBuilder* graph, const FwFmConfig& config) {
  const Value e = graph->Embeddings();
  const bool weights = config.linear() == FwFmConfig::ID_WEIGHTS;
  Value read = DotProducts(graph, e, graph->shape(e));
  if (!weights) read = Concat(graph, read, e);
  LinearOp head;
  head.in = graph->shape(read).features();
  head.out = graph->outputs();
  if (!weights) return Linear(graph, "head", head)(read);
  const Value linear = FirstOrderLogit(graph);
  return graph->Add(linear, Linear(graph, "head", head)(read));
}

Value DeepFm(GraphBuilder* graph, const MlpConfig& config) {
  const Value e = graph->Embeddings();
  const Value first_order = graph->FirstOrder();
  const Value terms = Concat(graph, first_order, PooledProducts(graph, e));
  const Value wide = SumPool(graph, terms, graph->shape(terms));
  const MlpOptions deep = DeepNetwork(config, graph->shape(e).features(), /*outputs=*/1);
  return graph->Add(wide, Mlp(graph, "deep", deep)(e));
}

Value Nfm(GraphBuilder* graph, const MlpConfig& config) {
  const Value products = PooledProducts(graph, graph->Embeddings());
  const Value linear = FirstOrderLogit(graph);
  const MlpOptions deep = DeepNetwork(config, graph->shape(products).features(), /*outputs=*/1);
  return graph->Add(linear, Mlp(graph, "deep", deep)(products));
}

Value Ipnn(GraphBuilder* graph, const MlpConfig& config) {
  const Value e = graph->Embeddings();
  const Value read = Concat(graph, e, DotProducts(graph, e, graph->shape(e)));
  const MlpOptions deep = DeepNetwork(config, graph->shape(read).features(), graph->outputs());
  return Mlp(graph, "deep", deep)(read);
}

}  // namespace elastor
