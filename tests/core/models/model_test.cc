#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "core/graph/cpu/cpu_executor.h"
#include "core/models/models.h"
#include "tests/core/graph/finite_difference.h"
#include "tests/core/kernels/panel_testing.h"
#include "tests/core/models/model_cases.h"

namespace elastor {
namespace {

constexpr int64_t kRows = 21;

class ModelTest : public testing::TestWithParam<ModelCase> {
 protected:
  const Graph graph_ = GetParam().graph();
};

TEST_P(ModelTest, GradientsOfParametersAndEmbeddings) {
  const bool alike = !HasDropout(graph_) && !graph_.needs_whole_leaf();
  ExpectGradients(graph_, {.evaluates_alike = alike});
}

// Runs all rows, then each row alone with other garbage in the workspace and in the padding.
// A prediction does not depend on what is predicted with it: the logits are equal, bit for bit.
TEST_P(ModelTest, OneRowEqualsItsBatchRow) {
  CpuExecutor<float> executor(graph_);
  std::vector<float> weights(graph_.parameters().flat_size());
  graph_.parameters().Initialize(/*seed=*/3, weights.data());
  executor.Prepare(weights.data());
  const FeatureShape& features = graph_.features();
  std::vector<float> numeric = RandomNumbers<float>(kRows * features.numeric_fields, /*seed=*/12);
  for (size_t i = 0; i < numeric.size(); i += 5) {
    numeric[i] = std::numeric_limits<float>::quiet_NaN();
  }
  const std::vector<int32_t> lengths = SequenceLengths(features, kRows);
  PanelBuffer<float> e(kRows, features.embedding_features(), /*seed=*/4);
  Workspace<float> workspace(executor.workspace_plan(), kRows);
  const auto logits = [&](int64_t first_row, int64_t rows) {
    Pass<float> pass;
    pass.workspace = &workspace;
    pass.leaves = PassLeaves(rows);
    pass.numeric = numeric.data() + first_row * features.numeric_fields;
    pass.lengths = lengths.data() + first_row * features.encoded_sequences();
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t f = 0; f < features.embedding_features(); ++f) {
        executor.Embeddings(pass).At(row, f) = e.view().At(first_row + row, f);
      }
    }
    executor.Forward(pass);
    std::vector<std::vector<uint32_t>> bits(rows);
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t i = 0; i < graph_.outputs(); ++i) {
        bits[row].push_back(std::bit_cast<uint32_t>(executor.Logits(pass).At(row, i)));
      }
    }
    return bits;
  };
  const std::vector<std::vector<uint32_t>> all = logits(0, kRows);
  for (int64_t row = 0; row < kRows; ++row) EXPECT_EQ(logits(row, 1)[0], all[row]) << row;
}

TEST_P(ModelTest, ProbesHaveTheirShapes) {
  const ModelConfig& config = GetParam().config;
  ASSERT_EQ(graph_.probes()[0].name, "embedding");
  EXPECT_EQ(graph_.probes()[0].shape,
            graph_.features().image.height > 0
                ? graph_[0].shape
                : (Shape{graph_.features().fields(), graph_.features().embedding_width}));
  if (!config.has_rank_elastor() && !config.has_rank_mixer()) return;
  const TokenModelConfig& tokens =
      config.has_rank_mixer() ? config.rank_mixer() : config.rank_elastor();
  ASSERT_EQ(static_cast<int>(graph_.probes().size()),
            2 + 2 * tokens.blocks() * tokens.iterations());
  for (size_t i = 1; i < graph_.probes().size(); ++i) {
    EXPECT_EQ(graph_.probes()[i].shape, (Shape{tokens.tokens(), tokens.token_width()}));
  }
}

INSTANTIATE_TEST_SUITE_P(All, ModelTest, testing::ValuesIn(ModelCases()),
                         [](const auto& info) { return info.param.name; });

// A position's outputs, which are of the byte behind it, do not know that byte or a later one: they
// keep every bit when those change, and not when one before them does.
TEST(LanguageModelTest, PositionsDoNotSeeWhatTheyPredict) {
  int models = 0;
  for (const ModelCase& test_case : ModelCases()) {
    if (!test_case.config.has_matrix_thinker() && !test_case.config.has_transformer()) continue;
    ++models;
    SCOPED_TRACE(test_case.name);
    const Graph graph = test_case.graph();
    const int64_t positions = graph.features().fields();
    const int64_t width = graph.features().embedding_width;
    const int64_t classes = graph.outputs() / positions;
    CpuExecutor<float> executor(graph);
    std::vector<float> weights(graph.parameters().flat_size());
    graph.parameters().Initialize(/*seed=*/3, weights.data());
    executor.Prepare(weights.data());
    PanelBuffer<float> e(1, positions * width, /*seed=*/4);
    Workspace<float> workspace(executor.workspace_plan(), 1);
    // Of a text whose byte at `changed` is another one.
    const auto outputs = [&](int64_t changed) {
      Pass<float> pass;
      pass.workspace = &workspace;
      pass.leaves = PassLeaves(1);
      for (int64_t f = 0; f < positions * width; ++f) {
        // Not by as much in every feature, which layer norm would not show.
        const int64_t change = f / width == changed ? f % 3 : 0;
        executor.Embeddings(pass).At(0, f) = e.view().At(0, f) + static_cast<float>(change);
      }
      executor.Forward(pass);
      std::vector<std::vector<uint32_t>> bits(positions);
      for (int64_t i = 0; i < graph.outputs(); ++i) {
        bits[i / classes].push_back(std::bit_cast<uint32_t>(executor.Logits(pass).At(0, i)));
      }
      return bits;
    };
    const auto as_it_is = outputs(-1);
    for (int64_t changed = 0; changed < positions; ++changed) {
      const auto found = outputs(changed);
      for (int64_t i = 0; i < positions; ++i) {
        EXPECT_EQ(found[i] == as_it_is[i], i < changed) << i << ' ' << changed;
      }
    }
  }
  EXPECT_EQ(models, 5);
}

// Statistics are no parameters, and take the place of the hidden layer's bias.
TEST(ModelParametersTest, MlpBatchNorm) {
  const Graph plain = MakeTestModel(kCaseFeatures, "mlp { hidden: [9, 5] }").graph();
  const Graph graph =
      MakeTestModel(kCaseFeatures, "mlp { hidden: [9, 5] batch_norm: true }").graph();
  EXPECT_FALSE(plain.needs_whole_leaf());
  EXPECT_STREQ(graph.whole_leaf_op(), "batch norm");
  EXPECT_EQ(graph.parameters().element_count(), plain.parameters().element_count() + 9 + 5);
}

// Dense parameters of BARS's logs for Criteo_x1 (39 fields of width 10), whose biases before batch
// norm, one for each of 1,200 hidden features, are not there.
TEST(ModelParametersTest, PublishedCounts) {
  constexpr FeatureShape kCriteo = {.categorical_fields = 39, .embedding_width = 10};
  constexpr struct {
    const char* model;
    int64_t parameters;
  } kPublished[] = {{"fm { }", 1},
                    {"fw_fm { linear: ID_WEIGHTS }", 742},
                    {"wide_and_deep { batch_norm: true }", 480001 - 1200},
                    {"deep_fm { batch_norm: true }", 480001 - 1200},
                    {"dcn { }", 480331},
                    {"ipnn { batch_norm: true }", 776401 - 1200},
                    {"nfm { }", 325601},
                    {"mask_net { }", 667469},
                    {"final_net { }", 795162}};
  for (const auto& [model, parameters] : kPublished) {
    TestModel made = MakeTestModel(kCriteo, model);
    if (made.config.has_final_net()) made.outputs = 3;
    EXPECT_EQ(made.graph().parameters().element_count(), parameters) << model;
  }
  // The authors' log for Criteo_x4, less its tables of 910,747 rows.
  TestModel dcn_v3 = MakeTestModel({.categorical_fields = 39, .embedding_width = 16},
                                   "dcn_v3 { exponential_layers: 3 }");
  dcn_v3.outputs = 3;
  EXPECT_EQ(dcn_v3.graph().parameters().element_count(), 15944754 - 16 * 910747);
}

// Parts of the ranker of DLRMv4 with its settings have the shapes of the public code's modules.
TEST(ModelParametersTest, HstuRankerHasThePublicShapes) {
  TestModel made = MakeTestModel(
      {.categorical_fields = 5, .embedding_width = 512},
      "hstu_ranker { actions: 'done' times: 'ago' token_width: 512 layers: 5 attention_width: 128 "
      "linear_width: 128 content_hidden: 256 item_hidden: 512 head_hidden: 512 } "
      "sequences { tokens { } }");
  made.features.sequences = {{"items", 2, 0, 9}, {"done", 3, 0, 9}, {"ago", 4, 0, 9}};
  const Graph graph = made.graph();
  const auto count = [&](const std::string& prefix) {
    int64_t elements = 0;
    for (const ParameterInfo& p : graph.parameters().parameters()) {
      if (p.name.starts_with(prefix)) elements += p.size;
    }
    return elements;
  };
  constexpr int64_t d = 512, mlp = 256;
  for (const std::string layer : {"layer0.", "layer4."}) {
    EXPECT_EQ(count(layer), d * 2048 + 2048 + 2 * d + 3 * 512 * d + 2 * 512) << layer;
  }
  for (const std::string part : {"content.items.h", "action.done.h"}) {
    EXPECT_EQ(count(part), d * mlp + mlp + 2 * mlp) << part;
  }
  EXPECT_EQ(count("content."), d * mlp + mlp + 2 * mlp + mlp * d + d + 2 * d);
  EXPECT_EQ(count("item."), 2 * (d * 512 + 512 + 2 * 512));
  EXPECT_EQ(count("output."), d * d + d + 2 * d);
  EXPECT_EQ(count("head."), d * 512 + 512 + 2 * 512 + 512 + 1);
  EXPECT_EQ(count("context.weight") + count("context.bias"), d * d + d);
}

// Three experts of 20 -> 6 -> 5, two gates and two towers of 5 -> 4 -> 1.
TEST(ModelParametersTest, Mmoe) {
  TestModel model =
      MakeTestModel(kCaseFeatures, "mmoe { experts: 3 expert_hidden: [6, 5] tower_hidden: 4 }");
  model.outputs = 2;
  const Graph graph = model.graph();
  const int64_t numeric = 2 * 2 * 4;
  EXPECT_EQ(graph.parameters().element_count(),
            numeric + 3 * (20 * 6 + 6 + 6 * 5 + 5) + 2 * 20 * 3 + 2 * (5 * 4 + 4 + 4 + 1));
  EXPECT_EQ(graph.multiply_adds(), 3 * (20 * 6 + 6 * 5) + 2 * 20 * 3 + 2 * 3 * 5 + 2 * (5 * 4 + 4));
  ASSERT_EQ(graph.probes().size(), 3u);
  EXPECT_EQ(graph.probes()[1].shape, (Shape{3, 5}));
  EXPECT_EQ(graph.probes()[2].shape, (Shape{2, 5}));
}

// The counts that the author of the note on output heads gives for his models of bytes and of
// 50,257 tokens, without the latter's vocabulary; the ids' embeddings are not the graph's.
TEST(ModelParametersTest, MatrixThinkerOfTheNote) {
  const auto count = [](int64_t d, int64_t positions, const std::string& sizes) {
    TestModel model = MakeTestModel({.categorical_fields = positions, .embedding_width = 2 * d},
                                    "matrix_thinker { down_projection: true " + sizes + " }");
    constexpr int64_t kBytes = 256;
    model.outputs = kBytes * positions;
    return model.graph().parameters().element_count() + kBytes * 2 * d;
  };
  EXPECT_EQ(count(16, 4096, "layers: 12 iterations: 1 probes: 16"), 218276);
  EXPECT_EQ(count(32, 2048, "layers: 8 iterations: 1 probes: 32"),
            5155960 - (50257 - 256) * (2 * 32 + 32));
}

// Parameters by the paper's formulas, T = 3, D = 6, r = 2, two blocks, 20 embedding features in
// groups of 7.
TEST(ModelParametersTest, RankElastorPaper) {
  const Graph graph =
      MakeTestModel(kCaseFeatures,
                    "rank_elastor { tokens: 3 token_width: 6 feed_forward { expansion: 2 } }")
          .graph();
  const int64_t tokenizer = 3 * (7 * 6 + 6);
  const int64_t mixing = 18 * 18 + 18 + 2 * 6;
  const int64_t feed_forward = 3 * (3 * 6 * 12 + 6 * 6);
  const int64_t head = 18 + 1;
  const int64_t numeric = 2 * 2 * 4;
  EXPECT_EQ(graph.parameters().element_count(),
            numeric + tokenizer + 2 * (mixing + feed_forward) + head);
  EXPECT_EQ(graph.multiply_adds(), 3 * 7 * 6 + 2 * (18 * 18 + feed_forward) + 18);
}

// Table 3: RankElastor without full mixing is RankMixer with the gated P-FFN, if the tokens are
// mixed by block transpose; mixed by nothing, it has the same weights.
TEST(ModelParametersTest, RankElastorWithoutFullMixing) {
  const std::string fields = " { tokens: 3 token_width: 6 feed_forward { kind: GATED } ";
  const auto logits = [&](const std::string& text) {
    const Graph graph = MakeTestModel(kCaseFeatures, text).graph();
    CpuExecutor<float> executor(graph);
    std::vector<float> weights(graph.parameters().flat_size());
    graph.parameters().Initialize(/*seed=*/3, weights.data());
    executor.Prepare(weights.data());
    Workspace<float> workspace(executor.workspace_plan(), kRows);
    const std::vector<float> numeric(kRows * kCaseFeatures.numeric_fields, 0.5f);
    Pass<float> pass;
    pass.workspace = &workspace;
    pass.leaves = PassLeaves(kRows);
    pass.numeric = numeric.data();
    PanelBuffer<float> e(kRows, graph.features().inputs(), /*seed=*/4);
    for (int64_t row = 0; row < kRows; ++row) {
      for (int64_t f = 0; f < graph.features().inputs(); ++f) {
        executor.Embeddings(pass).At(row, f) = e.view().At(row, f);
      }
    }
    executor.Forward(pass);
    std::vector<float> values;
    for (int64_t row = 0; row < kRows; ++row) values.push_back(executor.Logits(pass).At(row, 0));
    return values;
  };
  const std::vector<float> mixer = logits("rank_mixer" + fields + "}");
  EXPECT_EQ(logits("rank_elastor" + fields + "mixing { kind: BLOCK_TRANSPOSE } }"), mixer);
  EXPECT_NE(logits("rank_elastor" + fields + "mixing { kind: IDENTITY } }"), mixer);
}

}  // namespace
}  // namespace elastor
