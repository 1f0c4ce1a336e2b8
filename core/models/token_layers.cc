#include "core/models/token_layers.h"

#include "core/models/models.h"

namespace elastor {
namespace {

// Declares the maps "lift" (the up-projections), "down" and "residual" of gated P-FFNs, each with a
// bias where `biases`.
std::vector<int> GatedParameters(GraphBuilder* graph, const std::string& name, int64_t tokens,
                                 int64_t width, int64_t hidden, int64_t up_projections,
                                 bool biases) {
  std::vector<int> parameters;
  const auto declare = [&](const std::string& map, std::vector<int64_t> weight,
                           std::vector<int64_t> bias) {
    const Init init = Init::XavierNormal(width, map == ".residual" ? width : hidden);
    parameters.push_back(graph->Parameter(name + map, std::move(weight), init, Decay::kDense));
    if (!biases) return;
    parameters.push_back(
        graph->Parameter(name + map + "_bias", std::move(bias), Init::Constant(0), Decay::kNone));
  };
  declare(".lift", {tokens, up_projections, hidden, width}, {tokens, up_projections, hidden});
  declare(".down", {tokens, width, hidden}, {tokens, width});
  declare(".residual", {tokens, width, width}, {tokens, width});
  return parameters;
}

}  // namespace

Layer Tokenizer(GraphBuilder* graph, const std::string& name, const TokenModelConfig& config) {
  const TokenizerConfig& tokenizer = config.tokenizer();
  const bool full = tokenizer.kind() == TokenizerConfig::FULL;
  const int64_t inputs = graph->features().inputs();
  Layer norm;
  if (tokenizer.norm() == TokenizerConfig::NORM_RMS) {
    norm = Norm(graph, name + ".norm", RmsNorm(inputs));
  } else if (tokenizer.norm() == TokenizerConfig::NORM_LAYER) {
    norm = Norm(graph, name + ".norm", LayerNorm(inputs));
  }
  MlpOptions projection;
  projection.tokens = full ? 1 : config.tokens();
  projection.inputs = (inputs + projection.tokens - 1) / projection.tokens;
  if (tokenizer.hidden() > 0) projection.hidden = {tokenizer.hidden()};
  projection.outputs = full ? TokenShape(config).features() : config.token_width();
  if (tokenizer.kind() == TokenizerConfig::SHARED) {
    projection.weights = LinearOp::Weights::kShared;
  }
  if (PublicCode(config)) projection.hidden_norm = MlpOptions::HiddenNorm::kRms;
  projection.dropout = config.dropout();
  const Layer project = Mlp(graph, name, projection);
  PadOp groups;
  groups.tokens = projection.tokens;
  groups.width = projection.inputs;
  return [=](Value e) {
    if (norm) e = norm(e);
    return project(full ? e : graph->Apply(groups, e));
  };
}

Layer FeedForward(GraphBuilder* graph, const std::string& name, const TokenModelConfig& config) {
  const int64_t tokens = config.tokens();
  const int64_t width = config.token_width();
  const int64_t hidden = config.feed_forward().expansion() * width;
  const Activation activation = GateActivation(config.feed_forward().activation());
  const auto gated = [&](auto op, int64_t up_projections, bool biases) -> Layer {
    op.tokens = tokens;
    op.width = width;
    op.hidden = hidden;
    op.activation = activation;
    const std::vector<int> parameters =
        GatedParameters(graph, name, tokens, width, hidden, up_projections, biases);
    return [=](Value x) { return graph->Apply(op, x, parameters); };
  };
  switch (config.feed_forward().kind()) {
    case FeedForwardConfig::GATED:
      return gated(GatedFeedForwardOp{}, 2, /*biases=*/false);
    case FeedForwardConfig::GATED_SUM:
      return gated(GatedSumFeedForwardOp{}, 3, /*biases=*/true);
    default:
      return Mlp(graph, name,
                 {.tokens = tokens,
                  .inputs = width,
                  .hidden = {hidden},
                  .outputs = width,
                  .activation = activation});
  }
}

Layer Head(GraphBuilder* graph, const std::string& name, const TokenModelConfig& config) {
  const Shape shape = TokenShape(config);
  MlpOptions options;
  options.inputs = shape.features();
  options.hidden.assign(config.head().hidden().begin(), config.head().hidden().end());
  options.outputs = graph->outputs();
  options.dropout = config.dropout();
  Layer pool = [](Value x) { return x; };
  if (config.head().kind() == HeadConfig::MEAN_POOL) {
    MeanPoolOp mean;
    mean.tokens = shape.tokens;
    mean.width = options.inputs = shape.width;
    pool = [=](Value x) { return graph->Apply(mean, x); };
  } else if (config.head().kind() == HeadConfig::MULTI_PROBE) {
    options.inputs = config.head().probes();
    pool = MultiProbe(graph, name, shape, options.inputs);
  } else if (config.head().kind() == HeadConfig::VECTOR_COLLAPSE) {
    LinearOp collapse;
    collapse.tokens = options.inputs = shape.tokens;
    collapse.in = shape.width;
    collapse.out = 1;
    collapse.bias = false;
    pool = Linear(graph, name + ".collapse", collapse);
  }
  const Layer mlp = Mlp(graph, name, options);
  return [=](Value x) { return mlp(pool(x)); };
}

}  // namespace elastor
