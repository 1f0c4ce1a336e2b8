#include "core/layers/feed_forward.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/core/layers/layer_testing.h"
#include "tests/core/kernels/panel_testing.h"

namespace elastor {
namespace {

// Gates: ReGLU, GEGLU, SwiGLU, and none.
constexpr Activation kActivations[] = {Activation::kRelu, Activation::kGelu, Activation::kSwish,
                                       Activation::kIdentity};

TEST(GatedFeedForwardTest, Gradients) {
  for (const Activation activation : kActivations) {
    SCOPED_TRACE(static_cast<int>(activation));
    ExpectLayerGradients<GatedFeedForward<double>>(3, 5, 7, activation);
  }
}

TEST(GatedSumFeedForwardTest, Gradients) {
  for (const Activation activation : kActivations) {
    SCOPED_TRACE(static_cast<int>(activation));
    ExpectLayerGradients<GatedSumFeedForward<double>>(3, 5, 7, activation);
  }
}

// One row of one token, D = 2, H = 1, ReGLU, with M = (3, 1):
//   p = 1*3 + (-1)*1 = 2, q = 2*3 + 0.5*1 = 6.5, h = 13,
//   Z = W3 h + Wr M = (1, -2) 13 + (1 0; 4 1) (3, 1) = (16, -13).
TEST(GatedFeedForwardTest, ByHand) {
  Layer<GatedFeedForward<double>, double> layer(1, 2, 1, Activation::kRelu);
  layer.Set("layer.lift", {1, -1, 2, 0.5});
  layer.Set("layer.down", {1, -2});
  layer.Set("layer.residual", {1, 0, 4, 1});
  layer.Prepare();
  Workspace<double> workspace(layer.workspace(), 1);
  FlatSink<double> sink(&layer.parameters());
  sink.Begin(Store::kOverwrite);
  Pass<double> pass;
  pass.workspace = &workspace;
  pass.sink = &sink;
  pass.rows = 1;
  pass.training = true;
  PanelBuffer<double> m(1, 2, 1), z(1, 2, 2), dz(1, 2, 3), dm(1, 2, 4);
  dz.ZeroPadding();
  m.view().At(0, 0) = 3;
  m.view().At(0, 1) = 1;
  dz.view().At(0, 0) = 10;
  dz.view().At(0, 1) = 1;

  layer.module().Forward(pass, m.read(), z.view());
  EXPECT_EQ(z.view().At(0, 0), 16);
  EXPECT_EQ(z.view().At(0, 1), -13);

  // dh = 10 - 2 = 8; dp = dh q = 52, dq = dh p = 16.
  layer.module().Backward(pass, m.read(), dz.read(), dm.view());
  sink.End();
  using Numbers = std::vector<double>;
  EXPECT_EQ(layer.Gradient(&sink, "layer.lift"), Numbers({52 * 3, 52, 16 * 3, 16}));
  EXPECT_EQ(layer.Gradient(&sink, "layer.down"), Numbers({130, 13}));
  EXPECT_EQ(layer.Gradient(&sink, "layer.residual"), Numbers({30, 10, 3, 1}));
  // dM = dp W1 + dq W2 + Wr^T dz.
  EXPECT_EQ(dm.view().At(0, 0), 52 * 1 + 16 * 2 + 10 + 4);
  EXPECT_EQ(dm.view().At(0, 1), 52 * -1 + 16 * 0.5 + 1);
}

}  // namespace
}  // namespace elastor
