// Multi-gate mixture of experts (Ma et al. 2018, section 4.2): experts that all tasks share, and
// for each task a gate that weighs them and a tower that reads the weighted sum.
//
//   f_i = mlp_i(E)                          for every expert i
//   m_t = sum_i softmax(W_t E)_i f_i        for every task t
//   logit_t = tower_t(m_t)
//
// Experts, and tasks behind the gates, are tokens, each with weights of its own.
#include "core/models/layers.h"
#include "core/models/models.h"

namespace elastor {
namespace {

// `count` linear maps of the same input, [count, out, in], as one.
Layer SideBySide(GraphBuilder* graph, const std::string& name, int64_t count, int64_t out,
                 Activation activation, bool bias) {
  LinearOp op;
  op.in = graph->features().inputs();
  op.out = count * out;
  op.activation = activation;
  op.bias = bias;
  std::vector<int> parameters = {graph->Parameter(name + ".weight", {count, out, op.in},
                                                  Init::XavierNormal(op.in, out), Decay::kDense)};
  if (bias) {
    parameters.push_back(
        graph->Parameter(name + ".bias", {count, out}, Init::Constant(0), Decay::kNone));
  }
  return [=](Value x) { return graph->Apply(op, x, parameters); };
}

}  // namespace

Value Mmoe(GraphBuilder* graph, const MmoeConfig& config) {
  const Value e = graph->Embeddings();
  const int64_t tasks = graph->outputs();
  const std::vector<int64_t> widths(config.expert_hidden().begin(), config.expert_hidden().end());

  Value experts = SideBySide(graph, "experts.hidden0", config.experts(), widths[0],
                             Activation::kRelu, /*bias=*/true)(e);
  experts = graph->Dropout(experts, config.dropout());
  LinearOp layer;
  layer.tokens = config.experts();
  layer.activation = Activation::kRelu;
  for (size_t i = 1; i < widths.size(); ++i) {
    layer.in = widths[i - 1];
    layer.out = widths[i];
    const std::string name = IndexedName("experts.hidden", static_cast<int64_t>(i));
    experts = graph->Dropout(Linear(graph, name, layer)(experts), config.dropout());
  }
  graph->Measure("experts", experts, {config.experts(), widths.back()});

  const Layer gates = SideBySide(graph, "gates", tasks, config.experts(), Activation::kIdentity,
                                 /*bias=*/false);
  const Value both[] = {experts, gates(e)};
  MixtureOp mixture;
  mixture.mixture = {.experts = config.experts(), .width = widths.back(), .mixtures = tasks};
  const Value mixed = graph->Measure("mixtures", graph->Apply(mixture, both));

  MlpOptions tower;
  tower.tokens = tasks;
  tower.inputs = widths.back();
  tower.hidden.assign(config.tower_hidden().begin(), config.tower_hidden().end());
  tower.outputs = 1;
  tower.dropout = config.dropout();
  return Mlp(graph, "towers", tower)(mixed);
}

}  // namespace elastor
