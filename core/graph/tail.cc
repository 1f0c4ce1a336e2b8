#include "core/graph/tail.h"

#include <map>
#include <utility>
#include <variant>
#include <vector>

#include "core/base/log.h"

namespace elastor {
namespace {

bool IsLinear(const Op& op) {
  if (const auto* const linear = std::get_if<LinearOp>(&op)) {
    return linear->activation == Activation::kIdentity;
  }
  return std::holds_alternative<BlockTransposeOp>(op) || std::holds_alternative<MeanPoolOp>(op) ||
         std::holds_alternative<WeightedPoolOp>(op);
}

}  // namespace

Graph Tail(const Graph& graph, const Probe& probe) {
  GraphBuilder tail({.categorical_fields = probe.matrices * probe.shape.tokens,
                     .embedding_width = probe.shape.width},
                    graph.outputs());
  std::vector<Value> values(graph.size());
  values[probe.node] = tail.Embeddings();
  std::map<int, int> parameters;  // of the graph, to those of the tail
  for (int n = probe.node + 1; n < graph.size(); ++n) {
    const Node& node = graph[n];
    std::vector<Value> inputs;
    for (const int input : node.inputs) {
      CHECK_GE(values[input].node, 0) << "node " << n << " reads node " << input;
      inputs.push_back(values[input]);
    }
    std::vector<int> own;
    for (const int parameter : node.parameters) {
      const ParameterInfo& info = graph.parameters()[parameter];
      CHECK(!info.statistic) << info.name;
      const auto [known, is_new] = parameters.try_emplace(parameter);
      if (is_new) known->second = tail.Parameter(info.name, info.shape, info.init, info.decay);
      own.push_back(known->second);
    }
    values[n] = tail.Apply(node.op, inputs, std::move(own));
  }
  return std::move(tail).Finish(values.back());
}

std::optional<Probe> LinearInput(const Graph& graph) {
  Probe input = graph.probes().back();
  const auto follows = [&](int node) { return graph[node].inputs == std::vector<int>{node - 1}; };
  int next = input.node + 1;
  for (; next < graph.size() && std::holds_alternative<NormOp>(graph[next].op); ++next) {
    if (!follows(next)) return std::nullopt;
    input.node = next;
  }
  if (next == graph.size()) return std::nullopt;
  for (; next < graph.size(); ++next) {
    if (!follows(next) || !IsLinear(graph[next].op)) return std::nullopt;
  }
  return input;
}

}  // namespace elastor
