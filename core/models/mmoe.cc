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

Value Mmoe(GraphBuilder* graph, const MmoeConfig& config) {
  const Value e = graph->Embeddings();
  const int64_t tasks = graph->outputs();
  const MlpOptions expert = {
      .inputs = graph->features().inputs(),
      .hidden = {config.expert_hidden().begin(), config.expert_hidden().end()},
      .dropout = config.dropout()};
  const Value experts = SideBySide(graph, "experts", config.experts(), expert)(e);
  const int64_t width = expert.hidden.back();
  graph->Measure("experts", experts, {config.experts(), width});

  LinearOp gate;
  gate.in = expert.inputs;
  gate.out = config.experts();
  gate.bias = false;
  const Layer gates = SideBySide(graph, "gates", tasks, gate);
  const Value both[] = {experts, gates(e)};
  MixtureOp mixture;
  mixture.mixture = {.experts = config.experts(), .width = width, .mixtures = tasks};
  const Value mixed = graph->Measure("mixtures", graph->Apply(mixture, both));

  MlpOptions tower;
  tower.tokens = tasks;
  tower.inputs = width;
  tower.hidden.assign(config.tower_hidden().begin(), config.tower_hidden().end());
  tower.outputs = 1;
  tower.dropout = config.dropout();
  return Mlp(graph, "towers", tower)(mixed);
}

}  // namespace elastor
