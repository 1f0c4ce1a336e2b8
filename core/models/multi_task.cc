// Models of several labels, each with a tower of its own behind shared parts.
//
//   shared bottom (Caruana 1997):  u = bottom(E);  logit_s = tower_s(u)
//   PLE (Tang et al. 2020):        layers of experts, some for one label and some shared; below
//   ESMM (Ma et al. 2018):         a = tower_1(E), b = tower_2(E);  p(click) = sigmoid(a),
//                                  p(conversion) = sigmoid(a) sigmoid(b)
//
// PLE's streams x_s, for every label s, and x_0, the shared one, start at E. A layer makes
//   x_s = sum_i softmax(W_s x_s + c_s)_i f_i over the experts f of s (reading x_s) and the shared
//         ones (reading x_0), and x_0 likewise of all experts, but in the last layer
// and logit_s = tower_s(x_s).
#include <vector>

#include "core/models/layers.h"
#include "core/models/models.h"

namespace elastor {
namespace {

// sum_i softmax(gate(x))_i f_i over experts side by side.
Value Gated(GraphBuilder* graph, const std::string& name, Value x, Value experts, int64_t count) {
  LinearOp gate;
  gate.in = graph->shape(x).features();
  gate.out = count;
  MixtureOp mixture;
  mixture.mixture = {
      .experts = count, .width = graph->shape(experts).features() / count, .mixtures = 1};
  const Value both[] = {experts, Linear(graph, name, gate)(x)};
  return graph->Apply(mixture, both);
}

// A layer of PLE on streams: those of the labels and, behind them, the shared one.
std::vector<Value> PleLayer(GraphBuilder* graph, const std::string& name, const PleConfig& config,
                            bool last, const std::vector<Value>& streams) {
  const size_t tasks = streams.size() - 1;
  const auto stream_name = [&](size_t s) {
    return s < tasks ? IndexedName(name + ".task", static_cast<int64_t>(s)) : name + ".shared";
  };
  const auto count = [&](size_t s) {
    return int64_t{s < tasks ? config.experts() : config.shared_experts()};
  };
  std::vector<Value> experts;
  for (size_t s = 0; s <= tasks; ++s) {
    const MlpOptions expert = {
        .inputs = graph->shape(streams[s]).features(),
        .hidden = {config.expert_hidden().begin(), config.expert_hidden().end()},
        .dropout = config.dropout()};
    experts.push_back(SideBySide(graph, stream_name(s) + ".experts", count(s), expert)(streams[s]));
  }
  std::vector<Value> next;
  Value all;
  for (size_t s = 0; s < tasks; ++s) {
    next.push_back(Gated(graph, stream_name(s) + ".gate", streams[s],
                         Concat(graph, experts[s], experts[tasks]), count(s) + count(tasks)));
    if (!last) all = s == 0 ? experts[s] : Concat(graph, all, experts[s]);
  }
  if (last) return next;
  next.push_back(Gated(graph, stream_name(tasks) + ".gate", streams[tasks],
                       Concat(graph, all, experts[tasks]),
                       static_cast<int64_t>(tasks) * config.experts() + config.shared_experts()));
  return next;
}

}  // namespace

Value SharedBottom(GraphBuilder* graph, const SharedBottomConfig& config) {
  const MlpOptions bottom = {
      .inputs = graph->features().inputs(),
      .hidden = {config.bottom_hidden().begin(), config.bottom_hidden().end()},
      .dropout = config.dropout()};
  const MlpOptions tower = {.inputs = bottom.hidden.back(),
                            .hidden = {config.tower_hidden().begin(), config.tower_hidden().end()},
                            .outputs = 1,
                            .dropout = config.dropout()};
  const Value u = Mlp(graph, "bottom", bottom)(graph->Embeddings());
  return SideBySide(graph, "towers", graph->outputs(), tower)(u);
}

Value Ple(GraphBuilder* graph, const PleConfig& config) {
  const int64_t tasks = graph->outputs();
  std::vector<Value> streams(tasks + 1, graph->Embeddings());
  for (int64_t l = 0; l < config.layers(); ++l) {
    const bool last = l + 1 == config.layers();
    streams = PleLayer(graph, IndexedName("layer", l), config, last, streams);
  }
  Value x = streams[0];
  for (int64_t s = 1; s < tasks; ++s) x = Concat(graph, x, streams[s]);
  const Shape mixtures = {tasks, *config.expert_hidden().rbegin()};
  graph->Measure("mixtures", x, mixtures);
  const MlpOptions tower = {.tokens = tasks,
                            .inputs = mixtures.width,
                            .hidden = {config.tower_hidden().begin(), config.tower_hidden().end()},
                            .outputs = 1,
                            .dropout = config.dropout()};
  return Mlp(graph, "towers", tower)(x);
}

Value Esmm(GraphBuilder* graph, const EsmmConfig& config) {
  CHECK_EQ(graph->outputs(), 2);
  const MlpOptions tower = {.inputs = graph->features().inputs(),
                            .hidden = {config.tower_hidden().begin(), config.tower_hidden().end()},
                            .outputs = 1,
                            .dropout = config.dropout()};
  const Value logits = SideBySide(graph, "towers", 2, tower)(graph->Embeddings());
  return graph->Apply(JointLogitOp{}, logits);
}

}  // namespace elastor
