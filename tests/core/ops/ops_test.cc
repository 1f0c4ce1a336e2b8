// Every op on the CPU: gradients against central differences, and results worked out by hand.
#include "core/ops/ops.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/graph/cpu/cpu_executor.h"
#include "core/graph/graph.h"
#include "core/models/attention_layers.h"
#include "core/models/layers.h"
#include "tests/core/graph/finite_difference.h"
#include "tests/core/kernels/panel_testing.h"

namespace elastor {
namespace {

using Numbers = std::vector<double>;
using Weights = LinearOp::Weights;

// A graph from E of one field with `features` features, which are x.
Graph GraphOf(int64_t features, const std::function<Value(GraphBuilder*, Value)>& build) {
  GraphBuilder graph({.categorical_fields = 1, .embedding_width = features});
  const Value outputs = build(&graph, graph.Embeddings());
  return std::move(graph).Finish(outputs);
}

Graph GraphOfLayer(int64_t features,
                   const std::function<Layer(GraphBuilder*, const std::string&)>& make) {
  return GraphOf(features, [&](GraphBuilder* graph, Value x) { return make(graph, "layer")(x); });
}

LinearOp LinearOf(int64_t tokens, int64_t in, int64_t out, Weights weights, Activation activation) {
  LinearOp op;
  op.tokens = tokens;
  op.in = in;
  op.out = out;
  op.weights = weights;
  op.activation = activation;
  return op;
}

Graph LinearGraph(const LinearOp& op) {
  return GraphOfLayer(op.tokens * op.in, [&](GraphBuilder* graph, const std::string& name) {
    return Linear(graph, name, op);
  });
}

// A gated feed-forward op with parameters of the given shapes.
template <typename Op>
Graph GatedGraph(int64_t tokens, int64_t width, int64_t hidden, Activation activation,
                 const std::vector<std::pair<std::string, std::vector<int64_t>>>& parameters) {
  Op op;
  op.tokens = tokens;
  op.width = width;
  op.hidden = hidden;
  op.activation = activation;
  return GraphOf(tokens * width, [&](GraphBuilder* graph, Value x) {
    std::vector<int> declared;
    for (const auto& [name, shape] : parameters) {
      declared.push_back(graph->Parameter("layer." + name, shape, {.stddev = 0.5}, Decay::kDense));
    }
    return graph->Apply(op, x, declared);
  });
}

Graph GatedFeedForwardGraph(int64_t t, int64_t d, int64_t h, Activation activation) {
  return GatedGraph<GatedFeedForwardOp>(
      t, d, h, activation, {{"lift", {t, 2, h, d}}, {"down", {t, d, h}}, {"residual", {t, d, d}}});
}

Graph GatedSumFeedForwardGraph(int64_t t, int64_t d, int64_t h, Activation activation) {
  return GatedGraph<GatedSumFeedForwardOp>(t, d, h, activation,
                                           {{"lift", {t, 3, h, d}},
                                            {"lift_bias", {t, 3, h}},
                                            {"down", {t, d, h}},
                                            {"down_bias", {t, d}},
                                            {"residual", {t, d, d}},
                                            {"residual_bias", {t, d}}});
}

// A pass of a graph over rows, with parameters set by name.
class OpRun {
 public:
  OpRun(const Graph& graph, int64_t rows)
      : graph_(graph),
        executor_(graph),
        workspace_(executor_.workspace_plan(), rows),
        sink_(&graph.parameters()),
        weights_(graph.parameters().flat_size()) {
    pass.workspace = &workspace_;
    pass.sink = &sink_;
    pass.leaves = PassLeaves(rows);
    pass.training = true;
  }

  void Set(const std::string& name, const Numbers& values) {
    const ParameterInfo& p = Find(name);
    ASSERT_EQ(p.size, static_cast<int64_t>(values.size())) << name;
    std::copy(values.begin(), values.end(), weights_.begin() + p.offset);
  }
  // x, outputs and gradients: row after row.
  Numbers Forward(const Numbers& x) {
    executor_.Prepare(weights_.data());
    Fill(executor_.Embeddings(pass), x);
    executor_.Forward(pass);
    return Read(executor_.Logits(pass));
  }
  Numbers Backward(const Numbers& dy, Store store = Store::kOverwrite) {
    sink_.Begin(store);
    Fill(executor_.LogitGradients(pass), dy);
    executor_.Backward(pass);
    sink_.End();
    return Read(executor_.EmbeddingGradients(pass));
  }
  Numbers Gradient(const std::string& name) {
    const ParameterInfo& p = Find(name);
    const auto begin = sink_.gradients().begin() + p.offset;
    return {begin, begin + p.size};
  }

  Pass<double> pass;

 private:
  const ParameterInfo& Find(const std::string& name) const {
    return graph_.parameters()[graph_.parameters().Find(name)];
  }
  static void Fill(Panels<double> view, const Numbers& values) {
    ASSERT_EQ(view.rows * view.features, static_cast<int64_t>(values.size()));
    for (int64_t row = 0; row < view.panels() * kPanelRows; ++row) {
      for (int64_t f = 0; f < view.features; ++f) {
        view.At(row, f) = row < view.rows ? values[row * view.features + f] : 0;
      }
    }
  }
  static Numbers Read(Panels<const double> view) {
    Numbers values;
    for (int64_t row = 0; row < view.rows; ++row) {
      for (int64_t f = 0; f < view.features; ++f) values.push_back(view.At(row, f));
    }
    return values;
  }

  const Graph& graph_;
  CpuExecutor<double> executor_;
  Workspace<double> workspace_;
  FlatSink<double> sink_;
  std::vector<double> weights_;
};

constexpr Activation kActivations[] = {Activation::kIdentity, Activation::kRelu, Activation::kGelu,
                                       Activation::kSwish};

TEST(LinearTest, Gradients) {
  for (const Activation activation : kActivations) {
    for (const Weights weights : {Weights::kOwn, Weights::kShared, Weights::kInterleaved}) {
      SCOPED_TRACE(testing::Message()
                   << static_cast<int>(activation) << ", " << static_cast<int>(weights));
      ExpectGradients(LinearGraph(LinearOf(3, 5, 4, weights, activation)));
    }
  }
  ExpectGradients(LinearGraph(LinearOf(1, 13, 1, Weights::kOwn, Activation::kIdentity)));
  LinearOp no_bias = LinearOf(2, 5, 3, Weights::kOwn, Activation::kIdentity);
  no_bias.bias = false;
  ExpectGradients(LinearGraph(no_bias));
}

// One row, two tokens of two features to one output each.
TEST(LinearTest, OwnWeightsByHand) {
  const Graph graph = LinearGraph(LinearOf(2, 2, 1, Weights::kOwn, Activation::kRelu));
  OpRun run(graph, 1);
  run.Set("layer.weight", {1, -1, 0.5, 2});
  run.Set("layer.bias", {0.5, 0.25});
  // Token 0: 1 - 2 + 0.5 < 0, so the ReLU is shut. Token 1: 1.5 + 8 + 0.25.
  EXPECT_EQ(run.Forward({1, 2, 3, 4}), Numbers({0, 9.75}));
  EXPECT_EQ(run.Backward({10, 100}), Numbers({0, 0, 50, 200}));
  EXPECT_EQ(run.Gradient("layer.weight"), Numbers({0, 0, 300, 400}));
  EXPECT_EQ(run.Gradient("layer.bias"), Numbers({0, 100}));
}

TEST(LinearTest, SharedWeightsByHand) {
  const Graph graph = LinearGraph(LinearOf(2, 2, 1, Weights::kShared, Activation::kRelu));
  OpRun run(graph, 1);
  run.Set("layer.weight", {2, 1});
  run.Set("layer.bias", {-1});
  EXPECT_EQ(run.Forward({1, 2, 3, 4}), Numbers({3, 9}));
  EXPECT_EQ(run.Backward({10, 100}), Numbers({20, 10, 200, 100}));
  EXPECT_EQ(run.Gradient("layer.weight"), Numbers({10 * 1 + 100 * 3, 10 * 2 + 100 * 4}));
  EXPECT_EQ(run.Gradient("layer.bias"), Numbers({110}));
}

// W (x) I_2 written out as a full matrix gives the same y.
TEST(LinearTest, InterleavedWeightsAreTheKroneckerProduct) {
  constexpr int64_t kFeatures = 6, kBlock = 2, kColumns = kFeatures / kBlock;
  const Numbers w = RandomNumbers<double>(kColumns * kColumns, 1);
  const Numbers b = RandomNumbers<double>(kColumns, 2);
  Numbers full_w(kFeatures * kFeatures), full_b(kFeatures);
  for (int64_t i = 0; i < kFeatures; ++i) {
    full_b[i] = b[i / kBlock];
    for (int64_t j = i % kBlock; j < kFeatures; j += kBlock) {
      full_w[i * kFeatures + j] = w[i / kBlock * kColumns + j / kBlock];
    }
  }
  const Graph block = LinearGraph(LinearOf(kBlock, kColumns, kColumns, Weights::kInterleaved, {}));
  const Graph full = LinearGraph(LinearOf(1, kFeatures, kFeatures, Weights::kOwn, {}));
  OpRun block_run(block, 1), full_run(full, 1);
  block_run.Set("layer.weight", w);
  block_run.Set("layer.bias", b);
  full_run.Set("layer.weight", full_w);
  full_run.Set("layer.bias", full_b);
  const Numbers x = RandomNumbers<double>(kFeatures, 3);
  const Numbers found = block_run.Forward(x);
  const Numbers expected = full_run.Forward(x);
  for (int64_t f = 0; f < kFeatures; ++f) EXPECT_DOUBLE_EQ(found[f], expected[f]);
}

TEST(NormTest, Gradients) {
  // With an epsilon that matters too.
  for (const double epsilon : {1e-5, 0.5}) {
    for (const NormKind kind : {NormKind::kLayer, NormKind::kRms}) {
      for (const int64_t width : {12, 6, 3}) {
        SCOPED_TRACE(width);
        ExpectGradients(GraphOfLayer(12, [&](GraphBuilder* graph, const std::string& name) {
          return Norm(graph, name, {kind, width, epsilon});
        }));
      }
    }
  }
}

// Queries, keys and values are maps of x, and so is the length, which is also a part of the output:
// attention gives it no gradient.
Graph AttentionGraph(const AttentionOp& op, bool with_length) {
  constexpr int64_t kFeatures = 12;
  const AttentionShape& a = op.attention;
  return GraphOf(kFeatures, [&](GraphBuilder* graph, Value x) {
    const auto map = [&](const std::string& name, int64_t out) {
      return Linear(graph, name, LinearOf(1, kFeatures, out, Weights::kOwn, {}))(x);
    };
    std::vector<Value> inputs = {map("query", a.queries * a.heads * a.width),
                                 map("key", a.keys * a.heads * a.width),
                                 map("value", a.keys * a.heads * a.value_width)};
    if (with_length) {
      const int weight = graph->Parameter("length.weight", {1, kFeatures}, {.stddev = 3}, {});
      LinearOp length = LinearOf(1, kFeatures, 1, Weights::kOwn, {});
      length.bias = false;
      inputs.push_back(graph->Apply(length, x, {weight}));
    }
    std::vector<int> parameters;
    if (op.position_bias) {
      parameters = {graph->Parameter("bias", {a.differences()}, {.stddev = 0.5}, Decay::kNone)};
    }
    const Value y = graph->Apply(op, inputs, parameters);
    if (!with_length) return y;
    ConcatOp concat;
    concat.first_features = graph->shape(y).features();
    const Value both[] = {y, inputs.back()};
    return graph->Apply(concat, both);
  });
}

TEST(AttentionTest, Gradients) {
  for (const AttentionKind kind : {AttentionKind::kSoftmax, AttentionKind::kSilu}) {
    AttentionOp op;
    op.attention = {.kind = kind,
                    .queries = 4,
                    .keys = 4,
                    .heads = 2,
                    .width = 3,
                    .value_width = 5,
                    .scale = 0.5};
    for (const bool causal : {false, true}) {
      for (const bool length : {false, true}) {
        for (const bool bias : {false, true}) {
          SCOPED_TRACE(testing::Message() << static_cast<int>(kind) << causal << length << bias);
          op.attention.causal = causal;
          op.position_bias = bias;
          ExpectGradients(AttentionGraph(op, length));
        }
      }
    }
    op.attention.queries = 1;
    op.attention.causal = false;
    ExpectGradients(AttentionGraph(op, /*with_length=*/true));
  }
}

// Queries, keys and values are one value: its gradient has three parts.
TEST(AttentionTest, OfOneValue) {
  AttentionOp op;
  op.attention = {.queries = 3, .keys = 3, .heads = 2, .width = 2, .value_width = 2};
  ExpectGradients(GraphOf(12, [&](GraphBuilder* graph, Value x) {
    const Value inputs[] = {x, x, x};
    return graph->Apply(op, inputs);
  }));
}

// Two keys, the first of which has the score ln 3 and the second 0, which is not seen by the second
// row.
TEST(AttentionTest, ByHand) {
  AttentionOp op;
  op.attention = {.queries = 1, .keys = 2, .width = 1, .value_width = 1};
  const Graph graph = GraphOf(6, [&](GraphBuilder* graph, Value x) {
    const auto map = [&](const std::string& name, int64_t out) {
      LinearOp pick = LinearOf(1, 6, out, Weights::kOwn, {});
      pick.bias = false;
      return Linear(graph, name, pick)(x);
    };
    const Value inputs[] = {map("query", 1), map("key", 2), map("value", 2), map("length", 1)};
    return graph->Apply(op, inputs);
  });
  OpRun run(graph, 3);
  run.Set("query.weight", {1, 0, 0, 0, 0, 0});
  run.Set("key.weight", {0, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0});
  run.Set("value.weight", {0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 0});
  run.Set("length.weight", {0, 0, 0, 0, 0, 1});
  const double ln3 = std::log(3.0);
  const Numbers y = run.Forward({ln3, 1, 0, 8, 4, 2, ln3, 1, 0, 8, 4, 1, ln3, 1, 0, 8, 4, 0});
  EXPECT_NEAR(y[0], 0.75 * 8 + 0.25 * 4, 1e-14);
  EXPECT_EQ(y[1], 8);
  EXPECT_EQ(y[2], 0);
}

constexpr HstuOptions kHstu = {.input = {4, 3}, .heads = 2, .width = 3, .value_width = 2};

// x is [4, 3]; the length is the sum of its last position where it has one.
Graph HstuGraph(bool with_length) {
  return GraphOf(kHstu.input.features(), [&](GraphBuilder* graph, Value x) {
    Value length;
    if (with_length) {
      LinearOp sum = LinearOf(1, kHstu.input.features(), 1, Weights::kOwn, {});
      length = Linear(graph, "length", sum)(x);
    }
    const Value y = Hstu(graph, "hstu", kHstu)(x, length);
    if (!with_length) return y;
    ConcatOp concat;
    concat.first_features = kHstu.input.features();
    const Value both[] = {y, length};
    return graph->Apply(concat, both);
  });
}

TEST(HstuTest, Gradients) {
  for (const bool length : {false, true}) ExpectGradients(HstuGraph(length));
}

// tests/golden/hstu.py printed these: sum of y, and of every gradient the sum and that of the
// squares, for numbers that both make by the same formula.
const std::map<std::string, std::pair<double, double>>& HstuGolden() {
  static const auto& golden = *new std::map<std::string, std::pair<double, double>>{
      {"y", {67.0232413045135, 125.45992489401456}},
      {"dx", {1.532636504928704, 32.90287658590476}},
      {"hstu.norm.gain", {0.8556464853617152, 0.9000945135691247}},
      {"hstu.norm.bias", {-1.245734552672089, 0.7347368291668839}},
      {"hstu.query.weight", {-0.043104086111721535, 0.019178603137925833}},
      {"hstu.key.weight", {-0.03472756531703555, 0.016526570088468674}},
      {"hstu.value.weight", {0.025265870806670684, 0.02031777289386925}},
      {"hstu.gate.weight", {-0.09650783410866967, 1.525471986532954}},
      {"hstu.position_bias", {0.15755515332819658, 0.011822285903813077}},
      {"hstu.output_norm.gain", {-0.4703796463819523, 0.44999211785286214}},
      {"hstu.output_norm.bias", {-0.2956480437288393, 0.2959060673038434}},
      {"hstu.output.weight", {6.070151893948344, 8.572916359868042}},
      {"hstu.output.bias", {1.5326365049287047, 0.8992592692429302}}};
  return golden;
}

TEST(HstuTest, EqualsPyTorch) {
  constexpr double kTolerance = 1e-9;
  const Graph graph = HstuGraph(/*with_length=*/true);
  constexpr int64_t kRows = 5;
  OpRun run(graph, kRows);
  int64_t place = 0;
  const auto numbers = [&](int64_t count) {
    Numbers values;
    for (int64_t i = 0; i < count; ++i)
      values.push_back(std::sin(0.7 * static_cast<double>(++place)));
    return values;
  };
  for (const ParameterInfo& p : graph.parameters().parameters()) {
    if (p.name != "length.weight" && p.name != "length.bias" && p.size > 0) {
      run.Set(p.name, numbers(p.size));
    }
  }
  const int64_t features = kHstu.input.features();
  run.Set("length.weight", Numbers(features, 0));
  run.Set("length.bias", {3});
  const Numbers x = numbers(kRows * features);
  Numbers dy;
  for (const double value : numbers(kRows * (features + 1))) dy.push_back(value);
  const auto expect = [&](const char* what, const Numbers& values) {
    double sum = 0;
    double squares = 0;
    for (const double value : values) {
      sum += value;
      squares += value * value;
    }
    const auto& [golden_sum, golden_squares] = HstuGolden().at(what);
    EXPECT_NEAR(sum, golden_sum, kTolerance * std::max(1.0, std::fabs(golden_sum))) << what;
    EXPECT_NEAR(squares, golden_squares, kTolerance * golden_squares) << what;
  };
  expect("y", run.Forward(x));
  expect("dx", run.Backward(dy));
  for (const ParameterInfo& p : graph.parameters().parameters()) {
    if (p.size > 0 && !p.name.starts_with("length")) expect(p.name.c_str(), run.Gradient(p.name));
  }
}

constexpr int64_t kNormFeatures = 3;
Graph BatchNormGraph() {
  return GraphOfLayer(kNormFeatures, [](GraphBuilder* graph, const std::string& name) {
    return BatchNorm(graph, name, kNormFeatures);
  });
}

TEST(BatchNormTest, Gradients) { ExpectGradients(BatchNormGraph(), {.evaluates_alike = false}); }

TEST(BatchNormTest, EvaluationUsesRunningValues) {
  constexpr double kTolerance = 1e-14;
  const Graph graph = BatchNormGraph();
  OpRun run(graph, 2);
  run.Set("layer.gain", {1, 2, -1});
  run.Set("layer.bias", {0, 0.5, 3});
  run.Set("layer.running_mean", {0.5, -1, 2});
  run.Set("layer.running_variance", {4, 0.25, 1});
  run.pass.training = false;
  const Numbers x = RandomNumbers<double>(2 * kNormFeatures, 1);
  const Numbers y = run.Forward(x);
  for (int64_t at = 0; at < 6; at += kNormFeatures) {
    EXPECT_NEAR(y[at], (x[at] - 0.5) / std::sqrt(4 + 1e-5), kTolerance);
    EXPECT_NEAR(y[at + 1], (x[at + 1] + 1) / std::sqrt(0.25 + 1e-5) * 2 + 0.5, kTolerance);
    EXPECT_NEAR(y[at + 2], -(x[at + 2] - 2) / std::sqrt(1 + 1e-5) + 3, kTolerance);
  }
}

// Mean and unbiased variance, times the leaf's share of the batch.
TEST(BatchNormTest, DeliversStatistics) {
  const Graph graph = BatchNormGraph();
  OpRun run(graph, 3);
  const Numbers x = {0.3, 0, 0.1, -0.2, 1, 0.4, 0.5, 4, 0.9};
  const Numbers dy = RandomNumbers<double>(9, 3);
  constexpr double kMean = 5.0 / 3;
  constexpr double kVariance =
      (kMean * kMean + (1 - kMean) * (1 - kMean) + (4 - kMean) * (4 - kMean)) / 2;
  run.pass.leaf_share = 0.25;
  run.Forward(x);
  run.Backward(dy);
  EXPECT_NEAR(run.Gradient("layer.running_mean")[1], kMean / 4, 1e-15);
  EXPECT_NEAR(run.Gradient("layer.running_variance")[1], kVariance / 4, 1e-15);
  run.pass.leaf_share = 0.75;
  run.Forward(x);
  run.Backward(dy, Store::kAdd);
  EXPECT_NEAR(run.Gradient("layer.running_mean")[1], kMean, 1e-15);
  EXPECT_NEAR(run.Gradient("layer.running_variance")[1], kVariance, 1e-15);
}

TEST(BatchNormTest, OneRowHasNoVariance) {
  const Graph graph = BatchNormGraph();
  OpRun run(graph, 1);
  run.Forward({0.25, 2, 3});
  run.Backward({1, 1, 1});
  EXPECT_EQ(run.Gradient("layer.running_mean")[0], 0.25);
  EXPECT_EQ(run.Gradient("layer.running_variance")[0], 0);
}

TEST(GatedFeedForwardTest, Gradients) {
  for (const Activation activation : kActivations) {
    SCOPED_TRACE(static_cast<int>(activation));
    ExpectGradients(GatedFeedForwardGraph(3, 5, 7, activation));
    ExpectGradients(GatedSumFeedForwardGraph(3, 5, 7, activation));
  }
}

// One row of one token, D = 2, H = 1, ReGLU, with M = (3, 1):
//   p = 1*3 + (-1)*1 = 2, q = 2*3 + 0.5*1 = 6.5, h = 13,
//   Z = W3 h + Wr M = (1, -2) 13 + (1 0; 4 1) (3, 1) = (16, -13).
TEST(GatedFeedForwardTest, ByHand) {
  const Graph graph = GatedFeedForwardGraph(1, 2, 1, Activation::kRelu);
  OpRun run(graph, 1);
  run.Set("layer.lift", {1, -1, 2, 0.5});
  run.Set("layer.down", {1, -2});
  run.Set("layer.residual", {1, 0, 4, 1});
  EXPECT_EQ(run.Forward({3, 1}), Numbers({16, -13}));
  // dh = 10 - 2 = 8; dp = dh q = 52, dq = dh p = 16; dM = dp W1 + dq W2 + Wr^T dz.
  EXPECT_EQ(run.Backward({10, 1}), Numbers({52 * 1 + 16 * 2 + 10 + 4, 52 * -1 + 16 * 0.5 + 1}));
  EXPECT_EQ(run.Gradient("layer.lift"), Numbers({52 * 3, 52, 16 * 3, 16}));
  EXPECT_EQ(run.Gradient("layer.down"), Numbers({130, 13}));
  EXPECT_EQ(run.Gradient("layer.residual"), Numbers({30, 10, 3, 1}));
}

// Behind a linear map, so that the op may work in place.
TEST(ElementwiseTest, GradientsOfOpsWithoutParameters) {
  const auto behind_a_map = [](const std::function<Value(GraphBuilder*, Value)>& build) {
    return GraphOf(12, [&](GraphBuilder* graph, Value x) {
      const Layer map = Linear(graph, "map", LinearOf(1, 12, 12, Weights::kOwn, {}));
      return build(graph, map(x));
    });
  };
  ExpectGradients(
      behind_a_map([](GraphBuilder* graph, Value x) { return graph->Apply(ReluOp{}, x); }));
  BlockTransposeOp transpose;
  transpose.tokens = 2;
  transpose.width = 6;
  ExpectGradients(
      behind_a_map([&](GraphBuilder* graph, Value x) { return graph->Apply(transpose, x); }));
  MeanPoolOp pool;
  pool.tokens = 3;
  pool.width = 4;
  ExpectGradients(
      behind_a_map([&](GraphBuilder* graph, Value x) { return graph->Apply(pool, x); }));
  for (const int64_t width : {4, 5}) {
    PadOp pad;
    pad.tokens = 3;
    pad.width = width;
    ExpectGradients(
        behind_a_map([&](GraphBuilder* graph, Value x) { return graph->Apply(pad, x); }));
    ExpectGradients(
        GraphOf(12, [&](GraphBuilder* graph, Value x) { return graph->Apply(pad, x); }));
  }
  ExpectGradients(behind_a_map([](GraphBuilder* graph, Value x) { return graph->Dropout(x, 0.3); }),
                  {.evaluates_alike = false});
}

TEST(ElementwiseTest, GradientsOfOpsWithTwoInputs) {
  const auto of_two_maps = [](const Op& op) {
    return GraphOf(12, [&](GraphBuilder* graph, Value x) {
      const Value both[] = {Linear(graph, "a", LinearOf(1, 12, 12, Weights::kOwn, {}))(x),
                            Linear(graph, "b", LinearOf(1, 12, 12, Weights::kOwn, {}))(x)};
      return graph->Apply(op, both);
    });
  };
  ExpectGradients(of_two_maps(AddOp{}));
  ExpectGradients(of_two_maps(MultiplyOp{}));
  ConcatOp concat;
  concat.first_features = 12;
  ExpectGradients(of_two_maps(concat));
  // A square: both inputs are one value.
  ExpectGradients(GraphOf(12, [](GraphBuilder* graph, Value x) {
    const Value both[] = {x, x};
    return graph->Apply(MultiplyOp{}, both);
  }));
}

// Seven features in three groups of three: the last one is (x6, 0, 0).
TEST(PadTest, ByHand) {
  const Graph graph = GraphOf(7, [](GraphBuilder* graph, Value x) {
    PadOp pad;
    pad.tokens = 3;
    pad.width = 3;
    const Layer map = Linear(graph, "layer", LinearOf(3, 3, 1, Weights::kShared, {}));
    return map(graph->Apply(pad, x));
  });
  OpRun run(graph, 1);
  run.Set("layer.weight", {1, 10, 100});
  run.Set("layer.bias", {0.5});
  EXPECT_EQ(run.Forward({1, 2, 3, 4, 5, 6, 7}), Numbers({321.5, 654.5, 7.5}));
}

TEST(MlpTest, Gradients) {
  using HiddenNorm = MlpOptions::HiddenNorm;
  const auto graph = [](const MlpOptions& options) {
    return GraphOfLayer(
        options.tokens * options.inputs,
        [&](GraphBuilder* graph, const std::string& name) { return Mlp(graph, name, options); });
  };
  ExpectGradients(graph({.inputs = 11, .hidden = {8, 5}, .outputs = 2}));
  ExpectGradients(graph({.inputs = 11, .hidden = {}, .outputs = 2}));
  for (const Weights weights : {Weights::kOwn, Weights::kShared}) {
    ExpectGradients(graph({.tokens = 3,
                           .inputs = 4,
                           .hidden = {6, 7},
                           .outputs = 5,
                           .weights = weights,
                           .activation = Activation::kGelu}));
    ExpectGradients(graph({.tokens = 3,
                           .inputs = 4,
                           .hidden = {6, 7},
                           .outputs = 5,
                           .weights = weights,
                           .hidden_norm = HiddenNorm::kRms}));
  }
  // The mask is a function of step and row, so the dropped-out network has a gradient like any
  // other.
  for (const HiddenNorm norm : {HiddenNorm::kNone, HiddenNorm::kRms, HiddenNorm::kBatch}) {
    ExpectGradients(
        graph({.inputs = 6, .hidden = {16, 12}, .outputs = 2, .hidden_norm = norm, .dropout = 0.3}),
        {.evaluates_alike = false});
  }
}

}  // namespace
}  // namespace elastor
