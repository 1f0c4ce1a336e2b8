// The ONNX file of every model, read back. That it computes what ours does:
// tests/system/score_test.sh.
#include "trainer/score/onnx_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "third_party/onnx.pb.h"
#include "trainer/data/dataset.h"
#include "trainer/experiment/config.h"
#include "trainer/experiment/config_defaults.h"
#include "trainer/experiment/make_options.h"

namespace elastor {
namespace {

using testing::HasSubstr;

// Two numeric fields, an item and its history.
DatasetInfo Data() {
  DatasetInfo data;
  data.numeric = {{"a"}, {"b"}};
  data.categorical.resize(3);
  data.categorical[0] = {.name = "item", .ids = 50};
  data.categorical[1] = {.name = "seen",
                         .ids = 50,
                         .multi_hot = true,
                         .mean_pooling = true,
                         .shares = 0,
                         .encoding = "vocabulary",
                         .keeps = "last 5"};
  data.categorical[2] = {.name = "page", .ids = 7};
  return data;
}

Graph GraphOf(const std::string& model) {
  Experiment experiment =
      ParseExperiment("model { " + model + " } embedding { width: 4 }", "test").value();
  ResolveDefaults(&experiment);
  return MakeGraph(experiment, Data());
}

StatusOr<std::string> Export(const Graph& graph) {
  const std::vector<float> weights(graph.parameters().flat_size(), 0.5f);
  return OnnxModel(graph, /*outputs=*/1, weights.data(), "test");
}

std::vector<std::string> Shape(const onnx::ValueInfoProto& value) {
  std::vector<std::string> shape = {value.name()};
  for (const auto& dimension : value.type().tensor_type().shape().dim()) {
    shape.push_back(dimension.has_dim_param() ? dimension.dim_param()
                                              : std::to_string(dimension.dim_value()));
  }
  return shape;
}

class OnnxGraphTest : public testing::TestWithParam<const char*> {};

TEST_P(OnnxGraphTest, IsWholeAndInOrder) {
  const Graph graph = GraphOf(GetParam());
  const StatusOr<std::string> bytes = Export(graph);
  ASSERT_TRUE(bytes.ok()) << bytes.status().message();
  onnx::ModelProto model;
  ASSERT_TRUE(model.ParseFromString(*bytes));
  ASSERT_EQ(model.opset_import_size(), 1);
  EXPECT_EQ(model.opset_import(0).version(), kOnnxOpset);
  const onnx::GraphProto& found = model.graph();
  std::set<std::string> known = {"numeric", "embeddings"};
  const bool reads_lengths = graph.features().encoded_sequences() > 0;
  ASSERT_EQ(found.input_size(), reads_lengths ? 3 : 2);
  if (reads_lengths) {
    known.insert("lengths");
    EXPECT_EQ(Shape(found.input(2)), (std::vector<std::string>{"lengths", "N", "1"}));
    EXPECT_EQ(found.input(2).type().tensor_type().elem_type(), onnx::TensorProto::INT64);
  }
  EXPECT_EQ(Shape(found.input(0)), (std::vector<std::string>{"numeric", "N", "2"}));
  EXPECT_EQ(Shape(found.input(1)),
            (std::vector<std::string>{"embeddings", "N",
                                      std::to_string(graph.features().table_features())}));
  ASSERT_EQ(found.output_size(), 2);
  EXPECT_EQ(Shape(found.output(0)), (std::vector<std::string>{"logits", "N", "1"}));
  EXPECT_EQ(Shape(found.output(1)), (std::vector<std::string>{"probabilities", "N", "1"}));

  int64_t numbers = 0;
  for (const onnx::TensorProto& tensor : found.initializer()) {
    const bool is_float = tensor.data_type() == onnx::TensorProto::FLOAT;
    int64_t elements = 1;
    for (const int64_t dimension : tensor.dims()) elements *= dimension;
    EXPECT_EQ(static_cast<int64_t>(tensor.raw_data().size()), elements * (is_float ? 4 : 8));
    if (is_float) numbers += elements;
    EXPECT_TRUE(known.insert(tensor.name()).second) << tensor.name();
  }
  EXPECT_GE(numbers, graph.parameters().element_count());  // no parameter is left out
  for (const onnx::NodeProto& node : found.node()) {
    for (const std::string& input : node.input()) {
      EXPECT_TRUE(known.contains(input)) << node.op_type() << " reads " << input;
    }
    for (const std::string& output : node.output()) {
      EXPECT_TRUE(known.insert(output).second) << output;
    }
  }
  EXPECT_TRUE(known.contains("logits") && known.contains("probabilities"));
}

INSTANTIATE_TEST_SUITE_P(
    Models, OnnxGraphTest,
    testing::Values("rank_elastor { tokens: 4 token_width: 8 }",
                    "rank_elastor { tokens: 4 token_width: 8 feed_forward { kind: GATED_SUM } }",
                    "rank_mixer { tokens: 4 token_width: 8 }", "mlp { hidden: 8 batch_norm: true }",
                    "dcn_v2 { }", "x_deep_fm { }", "auto_int { }", "wukong { }", "mmoe { }",
                    "fm { }", "fw_fm { }", "fw_fm { linear: ID_WEIGHTS }", "deep_fm { }",
                    "wide_and_deep { }", "nfm { }", "ipnn { }", "dcn { }", "dlrm { }",
                    "dlrm { interaction: CROSS }", "gdcn { }", "final_mlp { }", "mask_net { }",
                    "mask_net { structure: PARALLEL embedding_norm: true }", "shared_bottom { }",
                    "ple { layers: 2 }", "final_net { }", "dcn_v3 { }",
                    "token_mixer_large { tokens: 4 token_width: 8 }",
                    "mlp { } sequences { fields: 'seen' mean { } }",
                    "mlp { } sequences { fields: 'seen' din { hidden: 4 softmax: true } }",
                    "mlp { } sequences { fields: 'seen' hstu { layers: 2 } }",
                    "mlp { } sequences { fields: 'seen' bst { } }",
                    "one_trans { tokens: 4 token_width: 8 }",
                    "one_trans { blocks: 3 } sequences { fields: 'seen' tokens { } }",
                    "hstu_ranker { } sequences { fields: 'seen' tokens { } }",
                    "uni_mixer { tokens: 4 token_width: 6 block_width: 3 }",
                    "uni_mixer { tokens: 4 token_width: 6 block_width: 3 rank: 2 basis: 2 }"));

TEST(OnnxRefusalTest, NamesTheOpInOneLine) {
  GraphBuilder builder({.numeric_fields = 6, .embedding_width = 1, .image = {2, 3, 1}});
  const Value pixels = builder.Embeddings();
  const StatusOr<std::string> bytes = Export(std::move(builder).Finish(pixels));
  ASSERT_FALSE(bytes.ok());
  EXPECT_EQ(bytes.status().code(), StatusCode::kUser);
  EXPECT_THAT(bytes.status().message(), HasSubstr(PatchInputOp::kName));
}

}  // namespace
}  // namespace elastor
