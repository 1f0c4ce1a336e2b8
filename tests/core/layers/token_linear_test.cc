#include "core/layers/token_linear.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/core/layers/layer_testing.h"
#include "tests/core/kernels/panel_testing.h"

namespace elastor {
namespace {

constexpr Activation kActivations[] = {Activation::kIdentity, Activation::kRelu, Activation::kGelu,
                                       Activation::kSwish};

TEST(TokenLinearTest, GradientsOfOwnWeights) {
  for (const Activation activation : kActivations) {
    SCOPED_TRACE(static_cast<int>(activation));
    ExpectLayerGradients<TokenLinear<double>>(3, 5, 4, activation, Sharing::kOwnWeights);
  }
}

TEST(TokenLinearTest, GradientsOfSharedWeights) {
  for (const Activation activation : kActivations) {
    SCOPED_TRACE(static_cast<int>(activation));
    ExpectLayerGradients<TokenLinear<double>>(3, 5, 4, activation, Sharing::kSharedWeights);
  }
}

TEST(TokenLinearTest, GradientsOfThePlainLayer) {
  ExpectLayerGradients<TokenLinear<double>>(1, 13, 1, Activation::kIdentity, Sharing::kOwnWeights);
  ExpectLayerGradients<TokenLinear<double>>(1, 5, 9, Activation::kRelu, Sharing::kSharedWeights);
}

// One row, two tokens of two features to one output each: worked out by hand.
struct ByHand {
  explicit ByHand(Sharing sharing) : layer(2, 2, 1, Activation::kRelu, sharing) {}

  void Run() {
    layer.Prepare();
    Workspace<double> workspace(layer.workspace(), 1);
    FlatSink<double> sink(&layer.parameters());
    sink.Begin(Store::kOverwrite);
    Pass<double> pass;
    pass.workspace = &workspace;
    pass.sink = &sink;
    pass.rows = 1;
    pass.training = true;
    PanelBuffer<double> x(1, 4, 1), y(1, 2, 2), dy(1, 2, 3), dx(1, 4, 4);
    dy.ZeroPadding();
    for (int64_t f = 0; f < 4; ++f) x.view().At(0, f) = static_cast<double>(f + 1);  // 1 2 | 3 4
    dy.view().At(0, 0) = 10;
    dy.view().At(0, 1) = 100;
    layer.module().Forward(pass, x.read(), y.view());
    layer.module().Backward(pass, x.read(), dy.read(), dx.view());
    sink.End();
    for (int64_t f = 0; f < 2; ++f) outputs.push_back(y.view().At(0, f));
    for (int64_t f = 0; f < 4; ++f) dinputs.push_back(dx.view().At(0, f));
    dweight = layer.Gradient(&sink, "layer.weight");
    dbias = layer.Gradient(&sink, "layer.bias");
  }

  Layer<TokenLinear<double>, double> layer;
  std::vector<double> outputs, dinputs, dweight, dbias;
};

using Numbers = std::vector<double>;

TEST(TokenLinearTest, OwnWeightsByHand) {
  ByHand run(Sharing::kOwnWeights);
  run.layer.Set("layer.weight", {1, -1, 0.5, 2});
  run.layer.Set("layer.bias", {0.5, 0.25});
  run.Run();
  // Token 0: 1 - 2 + 0.5 < 0, so the ReLU is shut. Token 1: 1.5 + 8 + 0.25.
  EXPECT_EQ(run.outputs, Numbers({0, 9.75}));
  EXPECT_EQ(run.dweight, Numbers({0, 0, 300, 400}));
  EXPECT_EQ(run.dbias, Numbers({0, 100}));
  EXPECT_EQ(run.dinputs, Numbers({0, 0, 50, 200}));
}

TEST(TokenLinearTest, SharedWeightsByHand) {
  ByHand run(Sharing::kSharedWeights);
  run.layer.Set("layer.weight", {2, 1});
  run.layer.Set("layer.bias", {-1});
  run.Run();
  EXPECT_EQ(run.outputs, Numbers({3, 9}));
  EXPECT_EQ(run.dweight, Numbers({10 * 1 + 100 * 3, 10 * 2 + 100 * 4}));
  EXPECT_EQ(run.dbias, Numbers({110}));
  EXPECT_EQ(run.dinputs, Numbers({20, 10, 200, 100}));
}

// The gradient of E is not always wanted.
TEST(TokenLinearTest, EmptyInputGradient) {
  Layer<TokenLinear<double>, double> layer(2, 3, 4, Activation::kGelu, Sharing::kOwnWeights);
  layer.Prepare();
  Workspace<double> workspace(layer.workspace(), 3);
  FlatSink<double> sink(&layer.parameters());
  sink.Begin(Store::kOverwrite);
  Pass<double> pass;
  pass.workspace = &workspace;
  pass.sink = &sink;
  pass.rows = 3;
  pass.training = true;
  PanelBuffer<double> x(3, 6, 1), y(3, 8, 2), dy(3, 8, 3);
  dy.ZeroPadding();
  layer.module().Forward(pass, x.read(), y.view());
  layer.module().Backward(pass, x.read(), dy.read(), {});
  sink.End();
}

}  // namespace
}  // namespace elastor
