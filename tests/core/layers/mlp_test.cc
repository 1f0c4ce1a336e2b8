#include "core/layers/mlp.h"

#include <gtest/gtest.h>

#include "tests/core/layers/layer_testing.h"

namespace elastor {
namespace {

TEST(MlpTest, Gradients) {
  ExpectLayerGradients<Mlp<double>>(MlpOptions{.inputs = 11, .hidden = {8, 5}, .outputs = 2});
}

TEST(MlpTest, GradientsWithoutHiddenLayers) {
  ExpectLayerGradients<Mlp<double>>(MlpOptions{.inputs = 11, .hidden = {}, .outputs = 2});
}

TEST(MlpTest, GradientsPerToken) {
  for (const Sharing sharing : {Sharing::kOwnWeights, Sharing::kSharedWeights}) {
    ExpectLayerGradients<Mlp<double>>(MlpOptions{.tokens = 3,
                                                 .inputs = 4,
                                                 .hidden = {6},
                                                 .outputs = 5,
                                                 .sharing = sharing,
                                                 .activation = Activation::kGelu});
  }
}

TEST(MlpTest, GradientsWithHiddenNorm) {
  for (const Sharing sharing : {Sharing::kOwnWeights, Sharing::kSharedWeights}) {
    ExpectLayerGradients<Mlp<double>>(MlpOptions{.tokens = 3,
                                                 .inputs = 4,
                                                 .hidden = {6, 7},
                                                 .outputs = 5,
                                                 .sharing = sharing,
                                                 .hidden_norm = HiddenNorm::kRms});
  }
}

TEST(MlpTest, GradientsWithBatchNorm) {
  Layer<Mlp<double>, double> layer(
      MlpOptions{.inputs = 11, .hidden = {8, 5}, .outputs = 2, .hidden_norm = HiddenNorm::kBatch});
  Differentiable function = FromModule(&layer.module(), layer.parameters(), layer.workspace());
  function.evaluates_alike = false;
  ExpectGradients(function);
}

// The mask is a function of step and row, so the dropped-out network has a gradient like any other.
TEST(MlpTest, GradientsWithDropout) {
  MlpOptions options;
  options.inputs = 6;
  options.hidden = {16, 12};
  options.outputs = 2;
  options.dropout = 0.3;
  for (const HiddenNorm norm : {HiddenNorm::kNone, HiddenNorm::kRms, HiddenNorm::kBatch}) {
    options.hidden_norm = norm;
    Layer<Mlp<double>, double> layer(options);
    Differentiable function = FromModule(&layer.module(), layer.parameters(), layer.workspace());
    function.evaluates_alike = false;
    ExpectGradients(function);
  }
}

}  // namespace
}  // namespace elastor
