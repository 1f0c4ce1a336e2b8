#include "core/graph/rewrites.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

namespace elastor {
namespace {

bool ReadOnce(const Graph& graph, int node) { return graph.uses(node) == 1 && !graph.probed(node); }

// Whether node `from`, were it computed as part of node `to`, would still give its gradients in
// their turn: nothing between the two reads `value` or uses one of from's parameters.
bool KeepsItsTurn(const Graph& graph, int from, int to, int value) {
  for (int i = from + 1; i < to; ++i) {
    if (std::ranges::find(graph[i].inputs, value) != graph[i].inputs.end()) return false;
    for (const int parameter : graph[from].parameters) {
      if (std::ranges::find(graph[i].parameters, parameter) != graph[i].parameters.end()) {
        return false;
      }
    }
  }
  return true;
}

// What takes the place of a node, and the input of the node that it takes in.
struct Fusion {
  Node node;
  int absorbed;
};

// Replaces every node for which `fuse` (node number -> optional<Fusion>) has something better.
template <typename Fuse>
Graph Rewrite(const Graph& graph, const Fuse& fuse) {
  std::vector<std::optional<Fusion>> fusions(graph.size());
  std::vector<bool> absorbed(graph.size());
  for (int i = 0; i < graph.size(); ++i) {
    fusions[i] = fuse(i);
    if (fusions[i]) absorbed[fusions[i]->absorbed] = true;
  }
  std::vector<int> number(graph.size(), -1);  // in the new graph
  std::vector<Node> nodes;
  for (int i = 0; i < graph.size(); ++i) {
    if (absorbed[i]) continue;
    Node node = fusions[i] ? fusions[i]->node : graph[i];
    for (int& input : node.inputs) input = number[input];
    number[i] = static_cast<int>(nodes.size());
    nodes.push_back(std::move(node));
  }
  std::vector<Probe> probes(graph.probes().begin(), graph.probes().end());
  for (Probe& probe : probes) probe.node = number[probe.node];
  return Graph(graph.features(), graph.parameters(), std::move(nodes), std::move(probes));
}

// Returns the fusion for node i if it is an Add that qualifies.
std::optional<Fusion> ResidualIntoLinear(const Graph& graph, int i) {
  if (!std::holds_alternative<AddOp>(graph[i].op)) return {};
  const int x = graph[i].inputs[0];
  const int linear = graph[i].inputs[1];
  const Node& product = graph[linear];
  if (!std::holds_alternative<LinearOp>(product.op) || product.inputs.size() > 1 ||
      product.segment != graph[i].segment || !ReadOnce(graph, linear) ||
      !KeepsItsTurn(graph, linear, i, product.inputs[0])) {
    return {};
  }
  return Fusion{
      {product.op, {product.inputs[0], x}, product.parameters, graph[i].shape, graph[i].segment},
      linear};
}

}  // namespace

Graph FuseResidualIntoLinear(const Graph& graph) {
  return Rewrite(graph, [&](int i) { return ResidualIntoLinear(graph, i); });
}

Graph FuseResidualIntoLogits(const Graph& graph) {
  return Rewrite(graph, [&](int i) {
    return i + 1 == graph.size() ? ResidualIntoLinear(graph, i) : std::nullopt;
  });
}

Graph FuseResidualIntoNorm(const Graph& graph) {
  return Rewrite(graph, [&](int i) -> std::optional<Fusion> {
    if (!std::holds_alternative<NormOp>(graph[i].op) || graph[i].inputs.size() > 1) return {};
    const int sum = graph[i].inputs[0];
    if (!std::holds_alternative<AddOp>(graph[sum].op) || !ReadOnce(graph, sum)) return {};
    const int x = graph[sum].inputs[0];
    const int y = graph[sum].inputs[1];
    if (!ReadOnce(graph, y) || !KeepsItsTurn(graph, sum, i, x)) return {};
    if (graph[sum].segment != graph[i].segment) return {};
    return Fusion{{graph[i].op, {y, x}, graph[i].parameters, graph[i].shape, graph[i].segment},
                  sum};
  });
}

}  // namespace elastor
