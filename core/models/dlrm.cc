// DLRM (Naumov et al. 2019): a bottom network reads the numeric fields, its result interacts with
// the embeddings of the others, and a top network reads the interactions.
//
//   b = bottom([e_1 ... e_d]), k features, for d numeric fields;  X = [b; e_{d+1}; ...; e_n]
//   dot products:  logits = top([b, x_i . x_j for i < j])
//   crosses (MLPerf's; Wang et al. 2021):  z_0 = vec(X),  z_{l+1} = z_0 * cross_l(z_l) + z_l,
//     logits = top(z_L)
//   full:      cross_l(z) = W_l z + c_l
//   low rank:  cross_l(z) = W_l V_l z + c_l
// Without numeric fields there is no b, and X is E.
#include "core/models/deep_network.h"
#include "core/models/models.h"

namespace elastor {
namespace {

// [b; the fields behind the numeric ones].
Value BottomAndFields(GraphBuilder* graph, const DlrmConfig& config, Value e, Value* bottom) {
  const Shape all = graph->shape(e);
  const int64_t numeric = graph->features().numeric_fields;
  SliceOp slice;
  slice.tokens = all.tokens;
  slice.width = all.width;
  slice.slice = {numeric, all.width};
  MlpOptions options;
  options.inputs = numeric * all.width;
  options.hidden.assign(config.bottom_hidden().begin(), config.bottom_hidden().end());
  options.hidden.push_back(all.width);
  options.dropout = config.dropout();
  if (config.batch_norm()) options.hidden_norm = MlpOptions::HiddenNorm::kBatch;
  *bottom = Mlp(graph, "bottom", options)(graph->Apply(slice, e));
  if (numeric == all.tokens) return *bottom;
  slice.first_token = numeric;
  slice.slice.tokens = all.tokens - numeric;
  return Concat(graph, *bottom, graph->Apply(slice, e));
}

Layer Cross(GraphBuilder* graph, const std::string& name, int64_t features, int64_t rank) {
  LinearOp map;
  map.in = map.out = features;
  if (rank == 0) return Linear(graph, name, map);
  map.out = rank;
  map.bias = false;
  const Layer down = Linear(graph, name + ".down", map);
  map.in = rank;
  map.out = features;
  map.bias = true;
  const Layer up = Linear(graph, name, map);
  return [=](Value z) { return up(down(z)); };
}

}  // namespace

Value Dlrm(GraphBuilder* graph, const DlrmConfig& config) {
  const Value e = graph->Embeddings();
  const int64_t numeric = graph->features().numeric_fields;
  Value bottom;
  const Value x = numeric > 0 ? BottomAndFields(graph, config, e, &bottom) : e;
  const int64_t width = graph->shape(e).width;
  const Shape vectors = {graph->shape(x).features() / width, width};
  graph->Measure("interacting", x, vectors);
  Value read = x;
  if (config.interaction() == DlrmConfig::CROSS) {
    for (int64_t l = 0; l < config.cross_layers(); ++l) {
      const std::string name = IndexedName("cross", l);
      const Layer cross = Cross(graph, name, vectors.features(), config.rank());
      read = graph->Measure(name, graph->Add(Multiply(graph, x, cross(read)), read), vectors);
    }
  } else {
    read = DotProducts(graph, x, vectors);
    if (numeric > 0) read = Concat(graph, bottom, read);
  }
  return Mlp(graph, "top",
             DeepNetwork(config, graph->shape(read).features(), graph->outputs()))(read);
}

}  // namespace elastor
