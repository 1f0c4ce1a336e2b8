#include "core/models/model.h"

#include <gtest/gtest.h>

#include <bit>
#include <limits>
#include <memory>
#include <numeric>
#include <ostream>
#include <string>
#include <vector>

#include "tests/core/layers/finite_difference.h"
#include "tests/core/ops/panel_testing.h"

namespace elastor {
namespace {

using Kind = ModelSpec::Kind;
using Convention = ModelSpec::Convention;
using FeedForward = ModelSpec::FeedForward;
using Head = ModelSpec::Head;

constexpr int64_t kRows = 21;
constexpr int64_t kNumericFields = 2;

// 2 numeric and 3 categorical fields of 4 features: 20, which 3 tokens do not divide.
ModelSpec TokenSpec(Kind kind, Convention convention) {
  ModelSpec spec;
  spec.kind = kind;
  spec.convention = convention;
  spec.numeric_fields = kNumericFields;
  spec.categorical_fields = 3;
  spec.embedding_width = 4;
  spec.embedding_stddev = 0.5;
  spec.tokens = 3;
  spec.token_width = 6;
  spec.expansion = 2;
  if (convention == Convention::kPublicCode) {
    spec.tokenizer = TokenizerOptions::Kind::kShared;
    spec.tokenizer_hidden = 7;
    spec.input_norm = ModelSpec::InputNorm::kRms;
    spec.feed_forward = FeedForward::kGatedSum;
    spec.head = Head::kFlattenMlp;
    spec.head_hidden = {10};
  }
  return spec;
}

ModelSpec MlpSpec() {
  ModelSpec spec = TokenSpec(Kind::kMlp, Convention::kPaper);
  spec.hidden = {9, 5};
  return spec;
}

struct Case {
  std::string name;
  ModelSpec spec;
};

void PrintTo(const Case& test_case, std::ostream* out) { *out << test_case.name; }

std::vector<Case> Cases() {
  std::vector<Case> cases = {
      {"RankElastorPaper", TokenSpec(Kind::kRankElastor, Convention::kPaper)},
      {"RankElastorPublicCode", TokenSpec(Kind::kRankElastor, Convention::kPublicCode)},
      {"RankMixerPaper", TokenSpec(Kind::kRankMixer, Convention::kPaper)},
      {"RankMixerPublicCode", TokenSpec(Kind::kRankMixer, Convention::kPublicCode)},
      {"Mlp", MlpSpec()},
      {"MlpBatchNorm", MlpSpec()},
  };
  cases[5].spec.batch_norm = true;
  cases[2].spec.feed_forward = FeedForward::kTwoLayer;
  const auto add = [&](const std::string& name, auto change) {
    cases.push_back({name, TokenSpec(Kind::kRankElastor, Convention::kPaper)});
    change(&cases.back().spec);
  };
  add("MeanPool", [](ModelSpec* spec) { spec->head = Head::kMeanPool; });
  add("FlattenMlp", [](ModelSpec* spec) {
    spec->head = Head::kFlattenMlp;
    spec->head_hidden = {8, 5};
  });
  add("BlockMixing", [](ModelSpec* spec) { spec->mixing_block_width = 3; });
  add("TwoLayer", [](ModelSpec* spec) { spec->feed_forward = FeedForward::kTwoLayer; });
  add("ReGlu", [](ModelSpec* spec) { spec->activation = Activation::kRelu; });
  add("SwiGlu", [](ModelSpec* spec) { spec->activation = Activation::kSwish; });
  add("OneBlock", [](ModelSpec* spec) { spec->blocks = 1; });
  add("NoNumericFields", [](ModelSpec* spec) { spec->numeric_fields = 0; });
  add("LayerNormBeforeFullTokenizer", [](ModelSpec* spec) {
    spec->tokenizer = TokenizerOptions::Kind::kFull;
    spec->input_norm = ModelSpec::InputNorm::kLayer;
  });
  add("GroupedMlpTokenizer", [](ModelSpec* spec) { spec->tokenizer_hidden = 5; });
  cases.push_back({"Dropout", TokenSpec(Kind::kRankElastor, Convention::kPublicCode)});
  cases.back().spec.dropout = 0.25;
  return cases;
}

// [kRows][fields], some missing.
std::vector<float> NumericValues(int64_t fields) {
  std::vector<float> values = RandomNumbers<float>(kRows * fields, /*seed=*/12);
  for (size_t i = 0; i < values.size(); i += 5) values[i] = std::numeric_limits<float>::quiet_NaN();
  return values;
}

class ModelTest : public testing::TestWithParam<Case> {};

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

INSTANTIATE_TEST_SUITE_P(All, ModelTest, testing::ValuesIn(Cases()),
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
