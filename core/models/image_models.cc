// Models of images cut into patches, E [patches, patch^2], as published but for their sizes:
//
//   X = patches(E), each of D features;  layers;  logits = linear(mean over patches of norm(X))
//
// ViT (Dosovitskiy et al. 2021), with the mean in the place of a class token: X = X + P, learned
// positions, and layers of X = X + attention(norm(X)), X = X + MLP(norm(X)). MLP-Mixer (Tolstikhin
// et al. 2021): layers of X = X + MLP(norm(X)) along the patches, the same for every feature, and X
// = X + MLP(norm(X)) along the features, the same for every patch. Norms are layer norms of a
// patch; the MLPs have one hidden layer, plain or gated.
#include "core/models/attention_layers.h"
#include "core/models/models.h"

namespace elastor {
namespace {

constexpr double kPositionStddev = 0.02;

// make_layer(name, shape): a layer of the model.
template <typename MakeLayer>
Value PatchModel(GraphBuilder* graph, int64_t width, int64_t layers, bool positions,
                 const MakeLayer& make_layer) {
  const Value e = graph->Embeddings();
  const Shape shape = {graph->shape(e).tokens, width};
  Value x = Linear(graph, "patches", SharedMap(graph->shape(e), width))(e);
  if (positions) x = LearnedPositions(graph, shape, kPositionStddev)(x);
  graph->Measure("patches", x, shape);
  for (int64_t l = 0; l < layers; ++l) {
    const std::string name = IndexedName("layer", l);
    x = graph->Measure(name, make_layer(name, shape)(x), shape);
  }
  x = Norm(graph, "norm", LayerNorm(width))(x);
  MeanPoolOp mean;
  mean.tokens = shape.tokens;
  mean.width = width;
  return Linear(graph, "head", SharedMap({1, width}, graph->outputs()))(graph->Apply(mean, x));
}

Layer MixerLayer(GraphBuilder* graph, const std::string& name, const Shape& shape,
                 const MlpMixerConfig& config) {
  const Activation activation = GateActivation(config.activation());
  // A problem for each feature, of the tokens' numbers.
  LinearOp along_tokens = SharedMap({shape.width, shape.tokens}, config.token_hidden());
  along_tokens.weights = LinearOp::Weights::kInterleaved;
  along_tokens.activation = activation;
  LinearOp along_features = SharedMap(shape, config.hidden());
  along_features.activation = activation;
  const Layer token_norm = Norm(graph, name + ".mixing.norm", LayerNorm(shape.width));
  // A bias would move all features of a patch alike, which every norm behind takes away.
  const Layer mixing = GatedMlp(graph, name + ".mixing", along_tokens, config.gated(), shape.tokens,
                                /*output_bias=*/false);
  const Layer feature_norm = Norm(graph, name + ".mlp.norm", LayerNorm(shape.width));
  const Layer mlp = GatedMlp(graph, name + ".mlp", along_features, config.gated(), shape.width);
  return [=, dropout = config.dropout()](Value x) {
    x = graph->Add(x, graph->Dropout(mixing(token_norm(x)), dropout));
    return graph->Add(x, graph->Dropout(mlp(feature_norm(x)), dropout));
  };
}

}  // namespace

Value Vit(GraphBuilder* graph, const VitConfig& config) {
  return PatchModel(graph, config.width(), config.layers(), /*positions=*/true,
                    [&](const std::string& name, const Shape& shape) {
                      return TransformerLayer(graph, name,
                                              {.shape = shape,
                                               .heads = config.heads(),
                                               .hidden = config.hidden(),
                                               .gated = config.gated(),
                                               .activation = GateActivation(config.activation()),
                                               .dropout = config.dropout()});
                    });
}

Value MlpMixer(GraphBuilder* graph, const MlpMixerConfig& config) {
  return PatchModel(graph, config.width(), config.layers(), /*positions=*/false,
                    [&](const std::string& name, const Shape& shape) {
                      return MixerLayer(graph, name, shape, config);
                    });
}

}  // namespace elastor
