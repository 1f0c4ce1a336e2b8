#include "core/models/model.h"

#include <gtest/gtest.h>

#include <bit>
#include <limits>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "tests/core/layers/finite_difference.h"
#include "tests/core/models/model_cases.h"
#include "tests/core/kernels/panel_testing.h"

namespace elastor {
namespace {

using Kind = ModelSpec::Kind;
using Convention = ModelSpec::Convention;

constexpr int64_t kRows = 21;

// [kRows][fields], some missing.
std::vector<float> NumericValues(int64_t fields) {
  std::vector<float> values = RandomNumbers<float>(kRows * fields, /*seed=*/12);
  for (size_t i = 0; i < values.size(); i += 5) values[i] = std::numeric_limits<float>::quiet_NaN();
  return values;
}

class ModelTest : public testing::TestWithParam<ModelCase> {};

TEST_P(ModelTest, GradientsOfParametersAndEmbeddings) {
  const ModelSpec& spec = GetParam().spec;
  const std::unique_ptr<Model<double>> model = MakeModel<double>(spec);
  const std::vector<float> numeric = NumericValues(spec.numeric_fields);
  Differentiable function;
  function.parameters = &model->parameters();
  function.workspace = &model->workspace_plan();
  function.inputs = model->inputs();
  function.outputs = 1;
  function.first_input = model->numeric_features();
  function.evaluates_alike = spec.dropout == 0 && !spec.batch_norm;
  function.prepare = [&](const double* values) { model->Prepare(values); };
  function.forward = [&](const Pass<double>& pass, Panels<double> e, Panels<double> logits) {
    model->Forward(pass, numeric.data(), e, logits);
  };
  function.backward = [&](const Pass<double>& pass, Panels<const double> e,
                          Panels<const double> dlogits, Panels<double> de) {
    model->Backward(pass, numeric.data(), e, dlogits, de);
  };
  ExpectGradients(function);
}

// A prediction does not depend on what is predicted with it: every row alone, with other garbage in
// the workspace and in the padding, gives the logit it has in the batch, bit for bit.
TEST_P(ModelTest, OneRowEqualsItsBatchRow) {
  const ModelSpec& spec = GetParam().spec;
  const std::unique_ptr<Model<float>> model = MakeModel<float>(spec);
  std::vector<float> weights(model->parameters().flat_size());
  model->parameters().Initialize(/*seed=*/3, weights.data());
  model->Prepare(weights.data());
  const std::vector<float> numeric = NumericValues(spec.numeric_fields);
  PanelBuffer<float> e(kRows, model->inputs(), /*seed=*/4), logits(kRows, 1, /*seed=*/5);
  Workspace<float> workspace(model->workspace_plan(), kRows);
  Pass<float> pass;
  pass.workspace = &workspace;
  pass.rows = kRows;
  model->Forward(pass, numeric.data(), e.view(), logits.view());
  pass.rows = 1;
  for (int64_t row = 0; row < kRows; ++row) {
    PanelBuffer<float> one(1, model->inputs(), /*seed=*/static_cast<uint32_t>(row));
    PanelBuffer<float> logit(1, 1, /*seed=*/6);
    for (int64_t f = 0; f < model->inputs(); ++f) one.view().At(0, f) = e.view().At(row, f);
    model->Forward(pass, numeric.data() + row * spec.numeric_fields, one.view(), logit.view());
    EXPECT_EQ(std::bit_cast<uint32_t>(logit.view().At(0, 0)),
              std::bit_cast<uint32_t>(logits.view().At(row, 0)))
        << "row " << row;
  }
}

TEST_P(ModelTest, StagesHaveTheirShapes) {
  const ModelSpec& spec = GetParam().spec;
  const std::unique_ptr<Model<float>> model = MakeModel<float>(spec);
  const std::vector<Stage>& stages = model->stages();
  ASSERT_EQ(stages.size(), spec.kind == Kind::kMlp ? 1u : 2u + 2u * spec.blocks);
  EXPECT_EQ(stages[0].name, "embedding");
  EXPECT_EQ(stages[0].tokens, spec.fields());
  EXPECT_EQ(stages[0].width, spec.embedding_width);
  PanelBuffer<float> e(1, model->inputs(), /*seed=*/4);
  Workspace<float> workspace(model->workspace_plan(), 1);
  Pass<float> pass;
  pass.workspace = &workspace;
  pass.rows = 1;
  for (size_t i = 1; i < stages.size(); ++i) {
    EXPECT_EQ(stages[i].tokens, spec.tokens);
    EXPECT_EQ(stages[i].width, spec.token_width);
    EXPECT_EQ(model->StageOutput(pass, e.read(), static_cast<int>(i)).features,
              spec.tokens * spec.token_width);
  }
}

INSTANTIATE_TEST_SUITE_P(All, ModelTest, testing::ValuesIn(ModelCases()),
                         [](const auto& info) { return info.param.name; });

// Statistics are no parameters, and take the place of the hidden layer's bias.
TEST(ModelParametersTest, MlpBatchNorm) {
  ModelSpec spec = MlpSpec();
  const auto plain = MakeModel<float>(spec);
  spec.batch_norm = true;
  const auto model = MakeModel<float>(spec);
  EXPECT_FALSE(plain->whole_leaf());
  EXPECT_TRUE(model->whole_leaf());
  const int64_t hidden = std::accumulate(spec.hidden.begin(), spec.hidden.end(), int64_t{0});
  EXPECT_EQ(model->parameters().element_count(), plain->parameters().element_count() + hidden);
}

// Parameters by the paper's formulas, T = 3, D = 6, r = 2, two blocks, 20 embedding features in
// groups of 7.
TEST(ModelParametersTest, RankElastorPaper) {
  const auto model = MakeModel<float>(TokenSpec(Kind::kRankElastor, Convention::kPaper));
  const int64_t tokenizer = 3 * (7 * 6 + 6);
  const int64_t mixing = 18 * 18 + 18 + 2 * 6;
  const int64_t feed_forward = 3 * (3 * 6 * 12 + 6 * 6);
  const int64_t head = 18 + 1;
  const int64_t numeric = 2 * kNumericFields * 4;
  EXPECT_EQ(model->parameters().element_count(),
            numeric + tokenizer + 2 * (mixing + feed_forward) + head);
  EXPECT_EQ(model->multiply_adds(), 3 * 7 * 6 + 2 * (18 * 18 + feed_forward) + 18);
}

}  // namespace
}  // namespace elastor
