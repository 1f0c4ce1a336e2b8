#include "core/layers/batch_norm_layer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/core/layers/layer_testing.h"
#include "tests/core/kernels/panel_testing.h"

namespace elastor {
namespace {

constexpr int64_t kFeatures = 3;

TEST(BatchNormLayerTest, Gradients) {
  Layer<BatchNormLayer<double>, double> layer(kFeatures);
  Differentiable function = FromModule(&layer.module(), layer.parameters(), layer.workspace());
  function.evaluates_alike = false;
  ExpectGradients(function);
}

struct BatchNormPass {
  explicit BatchNormPass(int64_t rows)
      : layer(kFeatures),
        workspace(layer.workspace(), rows),
        sink(&layer.parameters()),
        x(rows, kFeatures, 1),
        y(rows, kFeatures, 2) {
    layer.Set("layer.gain", {1, 2, -1});
    layer.Set("layer.bias", {0, 0.5, 3});
    layer.Set("layer.running_mean", {0.5, -1, 2});
    layer.Set("layer.running_variance", {4, 0.25, 1});
    layer.Prepare();
    pass.workspace = &workspace;
    pass.sink = &sink;
    pass.rows = rows;
  }
  void Train(double leaf_share, Store store) {
    pass.training = true;
    pass.leaf_share = leaf_share;
    PanelBuffer<double> dy(pass.rows, kFeatures, 3);
    dy.ZeroPadding();
    layer.module().Forward(pass, x.read(), y.view());
    sink.Begin(store);
    layer.module().Backward(pass, x.read(), dy.read(), dy.view());
    sink.End();
  }

  Layer<BatchNormLayer<double>, double> layer;
  Workspace<double> workspace;
  FlatSink<double> sink;
  PanelBuffer<double> x, y;
  Pass<double> pass;
};

TEST(BatchNormLayerTest, EvaluationUsesRunningValues) {
  constexpr double kTolerance = 1e-14;
  BatchNormPass run(2);
  run.layer.module().Forward(run.pass, run.x.read(), run.y.view());
  for (int64_t row = 0; row < 2; ++row) {
    const auto x = [&](int64_t f) { return run.x.view().At(row, f); };
    const auto y = [&](int64_t f) { return run.y.view().At(row, f); };
    EXPECT_NEAR(y(0), (x(0) - 0.5) / std::sqrt(4 + 1e-5), kTolerance);
    EXPECT_NEAR(y(1), (x(1) + 1) / std::sqrt(0.25 + 1e-5) * 2 + 0.5, kTolerance);
    EXPECT_NEAR(y(2), -(x(2) - 2) / std::sqrt(1 + 1e-5) + 3, kTolerance);
  }
}

// Mean and unbiased variance, times the leaf's share of the batch.
TEST(BatchNormLayerTest, DeliversStatistics) {
  BatchNormPass run(3);
  for (int64_t row = 0; row < 3; ++row) run.x.view().At(row, 1) = static_cast<double>(row * row);
  run.Train(/*leaf_share=*/0.25, Store::kOverwrite);
  constexpr double kMean = 5.0 / 3;
  constexpr double kVariance =
      (kMean * kMean + (1 - kMean) * (1 - kMean) + (4 - kMean) * (4 - kMean)) / 2;
  EXPECT_NEAR(run.layer.Gradient(&run.sink, "layer.running_mean")[1], kMean / 4, 1e-15);
  EXPECT_NEAR(run.layer.Gradient(&run.sink, "layer.running_variance")[1], kVariance / 4, 1e-15);
  run.Train(/*leaf_share=*/0.75, Store::kAdd);
  EXPECT_NEAR(run.layer.Gradient(&run.sink, "layer.running_mean")[1], kMean, 1e-15);
  EXPECT_NEAR(run.layer.Gradient(&run.sink, "layer.running_variance")[1], kVariance, 1e-15);
}

TEST(BatchNormLayerTest, OneRowHasNoVariance) {
  BatchNormPass run(1);
  run.Train(/*leaf_share=*/1, Store::kOverwrite);
  EXPECT_EQ(run.layer.Gradient(&run.sink, "layer.running_mean")[0], run.x.view().At(0, 0));
  EXPECT_EQ(run.layer.Gradient(&run.sink, "layer.running_variance")[0], 0);
}

}  // namespace
}  // namespace elastor
