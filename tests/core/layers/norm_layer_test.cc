#include "core/layers/norm_layer.h"

#include <gtest/gtest.h>

#include <memory>

#include "core/layers/residual.h"
#include "core/layers/token_linear.h"
#include "tests/core/layers/layer_testing.h"

namespace elastor {
namespace {

TEST(NormLayerTest, Gradients) {
  for (const NormKind kind : {NormKind::kLayer, NormKind::kRms}) {
    for (const int64_t width : {12, 6, 3}) {
      SCOPED_TRACE(width);
      ExpectLayerGradients<NormLayer<double>>(12, NormShape{kind, width, 1e-5});
    }
  }
}

// An epsilon that matters.
TEST(NormLayerTest, GradientsWithALargeEpsilon) {
  ExpectLayerGradients<NormLayer<double>>(8, NormShape{NormKind::kLayer, 4, 0.5});
  ExpectLayerGradients<NormLayer<double>>(8, NormShape{NormKind::kRms, 4, 0.5});
}

TEST(ResidualTest, Gradients) {
  ParameterLayout parameters;
  WorkspacePlan workspace;
  ModelBuilder builder{&parameters, &workspace};
  Residual<double> residual(
      &builder, "residual", NormShape{NormKind::kRms, 5, 1e-12},
      std::make_unique<TokenLinear<double>>(&builder, "inner", 3, 5, 5, Activation::kGelu,
                                            Sharing::kOwnWeights));
  parameters.Finish();
  ExpectGradients(FromModule(&residual, parameters, workspace));
}

}  // namespace
}  // namespace elastor
