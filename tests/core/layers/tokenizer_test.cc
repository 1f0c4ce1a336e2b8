#include "core/layers/tokenizer.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/core/layers/layer_testing.h"
#include "tests/core/kernels/panel_testing.h"

namespace elastor {
namespace {

using Kind = TokenizerOptions::Kind;

// Twelve features are three groups of four; thirteen and fourteen are three of five, padded.
TEST(TokenizerTest, Gradients) {
  for (const Kind kind : {Kind::kGrouped, Kind::kShared, Kind::kFull}) {
    for (const int64_t inputs : {12, 13, 14}) {
      for (const bool with_norm : {false, true}) {
        for (const int64_t hidden : {0, 6}) {
          SCOPED_TRACE(testing::Message() << "kind " << static_cast<int>(kind) << ", inputs "
                                          << inputs << ", hidden " << hidden);
          TokenizerOptions options;
          options.kind = kind;
          options.inputs = inputs;
          options.tokens = 3;
          options.width = 4;
          options.hidden = hidden;
          options.hidden_norm = with_norm;
          if (with_norm) options.norm = {NormKind::kRms, inputs, 1e-12};
          ExpectLayerGradients<Tokenizer<double>>(options);
        }
      }
    }
  }
}

TEST(TokenizerTest, GradientsWithLayerNorm) {
  TokenizerOptions options;
  options.inputs = 13;
  options.tokens = 3;
  options.width = 4;
  options.norm = {NormKind::kLayer, 13, 1e-5};
  ExpectLayerGradients<Tokenizer<double>>(options);
}

// Seven features in three groups of three: the last one is (x6, 0, 0).
TEST(TokenizerTest, ByHand) {
  TokenizerOptions options;
  options.kind = Kind::kShared;
  options.inputs = 7;
  options.tokens = 3;
  options.width = 1;
  Layer<Tokenizer<double>, double> layer(options);
  layer.Set("layer.output.weight", {1, 10, 100});
  layer.Set("layer.output.bias", {0.5});
  layer.Prepare();
  Workspace<double> workspace(layer.workspace(), 1);
  Pass<double> pass;
  pass.workspace = &workspace;
  pass.rows = 1;
  PanelBuffer<double> x(1, 7, 1), y(1, 3, 2);
  for (int64_t f = 0; f < 7; ++f) x.view().At(0, f) = static_cast<double>(f + 1);
  layer.module().Forward(pass, x.read(), y.view());
  EXPECT_EQ(y.view().At(0, 0), 321.5);
  EXPECT_EQ(y.view().At(0, 1), 654.5);
  EXPECT_EQ(y.view().At(0, 2), 7.5);
}

}  // namespace
}  // namespace elastor
