#include "core/layers/mixing.h"

#include <gtest/gtest.h>

#include <vector>

#include "core/kernels/elementwise.h"
#include "tests/core/layers/layer_testing.h"
#include "tests/core/kernels/panel_testing.h"

namespace elastor {
namespace {

constexpr NormShape kNoNorm = {NormKind::kLayer, 0, 0};

// T = 3, D = 6, with every choice of norms that a convention makes, and none.
void ExpectGradientsWithNorms(MixingOptions::Kind kind, int64_t block_width) {
  MixingOptions options;
  options.kind = kind;
  options.block_width = block_width;
  options.tokens = 3;
  options.width = 6;
  const NormShape row = {NormKind::kRms, 18, 1e-12};
  const NormShape token = {NormKind::kRms, 6, 1e-12};
  const NormShape layer = {NormKind::kLayer, 6, 1e-5};
  for (const NormShape& pre : {kNoNorm, row, layer}) {
    for (const NormShape& post : {kNoNorm, token, layer}) {
      SCOPED_TRACE(testing::Message() << "norms of " << pre.width << " and " << post.width);
      options.pre_norm = pre;
      options.post_norm = post;
      ExpectLayerGradients<Mixing<double>>(options);
    }
  }
}

TEST(MixingTest, GradientsOfFullMixing) { ExpectGradientsWithNorms(MixingOptions::Kind::kFull, 1); }

TEST(MixingTest, GradientsOfBlockMixing) {
  for (const int64_t block_width : {2, 3, 9}) {
    SCOPED_TRACE(block_width);
    ExpectGradientsWithNorms(MixingOptions::Kind::kFull, block_width);
  }
}

TEST(MixingTest, GradientsOfBlockTranspose) {
  ExpectGradientsWithNorms(MixingOptions::Kind::kBlockTranspose, 1);
}

// W (x) I_{d*} written out as a full matrix gives the same M.
TEST(MixingTest, BlockFormIsTheKroneckerProduct) {
  constexpr int64_t kFeatures = 6;
  constexpr int64_t kBlock = 2;
  constexpr int64_t kColumns = kFeatures / kBlock;
  const std::vector<double> w = RandomNumbers<double>(kColumns * kColumns, 1);
  const std::vector<double> b = RandomNumbers<double>(kColumns, 2);
  std::vector<double> full_w(kFeatures * kFeatures);
  std::vector<double> full_b(kFeatures);
  for (int64_t i = 0; i < kFeatures; ++i) {
    full_b[i] = b[i / kBlock];
    for (int64_t j = i % kBlock; j < kFeatures; j += kBlock) {
      full_w[i * kFeatures + j] = w[i / kBlock * kColumns + j / kBlock];
    }
  }
  const auto mix = [](int64_t block_width, const std::vector<double>& weight,
                      const std::vector<double>& bias) {
    MixingOptions options;
    options.tokens = 2;
    options.width = 3;
    options.block_width = block_width;
    Layer<Mixing<double>, double> layer(options);
    layer.Set("layer.weight", weight);
    layer.Set("layer.bias", bias);
    layer.Prepare();
    Workspace<double> workspace(layer.workspace(), 1);
    Pass<double> pass;
    pass.workspace = &workspace;
    pass.rows = 1;
    PanelBuffer<double> x(1, kFeatures, 3), m(1, kFeatures, 4);
    layer.module().Forward(pass, x.read(), m.view());
    std::vector<double> row(kFeatures);
    PanelsToRows<double>(m.read(), row.data(), kFeatures);
    return row;
  };
  const std::vector<double> block = mix(kBlock, w, b);
  const std::vector<double> full = mix(1, full_w, full_b);
  for (int64_t f = 0; f < kFeatures; ++f) EXPECT_DOUBLE_EQ(block[f], full[f]);
}

}  // namespace
}  // namespace elastor
