#include "core/ntk/row_passes.h"

#include <algorithm>
#include <utility>

namespace elastor {
namespace {

Graph WithoutDropout(const Graph& graph) {
  std::vector<Node> nodes(graph.nodes().begin(), graph.nodes().end());
  for (Node& node : nodes) {
    if (auto* const dropout = std::get_if<DropoutOp>(&node.op)) dropout->rate = 0;
    if (auto* const attention = std::get_if<AttentionOp>(&node.op)) attention->dropout = 0;
  }
  return {graph.features(),
          graph.parameters(),
          std::move(nodes),
          {graph.probes().begin(), graph.probes().end()}};
}

}  // namespace

RowPasses::RowPasses(const Graph& graph, const float* weights, ThreadPool* pool)
    : graph_(WithoutDropout(graph)),
      pool_(pool),
      executor_(graph_),
      weights_(weights, weights + graph.parameters().flat_size()) {
  executor_.Prepare(weights_.data(), pool_);
  for (int t = 0; t < pool_->threads(); ++t) {
    workspaces_.push_back(std::make_unique<Workspace<double>>(executor_.workspace_plan(), kRows));
  }
}

void RowPasses::ForEachPass(
    int64_t rows, const std::function<void(int thread, int64_t first, int64_t count)>& work) {
  pool_->ParallelFor(rows, kRows, [&](int t, int64_t begin, int64_t end) {
    for (int64_t first = begin; first < end; first += kRows) {
      work(t, first, std::min(kRows, end - first));
    }
  });
}

void RowPasses::Run(const NtkRows& rows, int64_t first, int64_t count, const Options& options,
                    int thread) {
  const FeatureShape& features = graph_.features();
  const int64_t table_features = features.table_features();
  const int64_t numeric_features = features.numeric_features();
  Pass<double> pass;
  pass.workspace = workspaces_[thread].get();
  pass.sink = options.sink;
  pass.row_sink = options.row_sink;
  pass.leaves = PassLeaves(count);
  pass.training = true;
  pass.numeric = rows.numeric + first * features.numeric_fields;
  pass.lengths = rows.lengths + first * features.encoded_sequences();
  const Panels<double> e = executor_.Embeddings(pass);
  for (int64_t row = 0; row < count; ++row) {
    const float* const from = rows.table_features + (first + row) * table_features;
    for (int64_t f = 0; f < table_features; ++f) e.At(row, numeric_features + f) = from[f];
  }
  executor_.Forward(pass);
  const Panels<double> dlogits = executor_.LogitGradients(pass);
  for (int64_t row = 0; row < dlogits.panels() * kPanelRows; ++row) {
    const double scale =
        row >= count ? 0 : (options.scales == nullptr ? 1 : options.scales[first + row]);
    for (int64_t o = 0; o < dlogits.features; ++o) {
      dlogits.At(row, o) = o == options.output ? scale : 0;
    }
  }
  executor_.Backward(pass);
  if (options.deltas == nullptr) return;
  const Panels<const double> de = executor_.EmbeddingGradients(pass);
  for (int64_t row = 0; row < count; ++row) {
    for (int64_t f = 0; f < table_features; ++f) {
      options.deltas[(first + row) * table_features + f] = de.At(row, numeric_features + f);
    }
  }
}

std::vector<bool> WithRowGradients(const Graph& graph) {
  std::vector<bool> all(graph.parameters().parameters().size(), true);
  for (const Node& node : graph.nodes()) {
    if (std::visit([](const auto& op) { return op.row_gradients(); }, node.op)) continue;
    for (const int parameter : node.parameters) all[parameter] = false;
  }
  return all;
}

}  // namespace elastor
