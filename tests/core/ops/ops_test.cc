// Every op on the CPU: gradients against central differences, and results worked out by hand.
#include "core/ops/ops.h"

#include <gtest/gtest.h>

#include <Eigen/Core>
#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/base/floating_point.h"
#include "core/graph/cpu/cpu_executor.h"
#include "core/graph/graph.h"
#include "core/models/attention_layers.h"
#include "core/models/layers.h"
#include "tests/core/graph/finite_difference.h"
#include "tests/core/kernels/panel_testing.h"
#include "tests/core/spectrum/decompositions.h"

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
template <typename T>
class OpRunOf {
 public:
  OpRunOf(const Graph& graph, int64_t rows)
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

  Pass<T> pass;

 private:
  const ParameterInfo& Find(const std::string& name) const {
    return graph_.parameters()[graph_.parameters().Find(name)];
  }
  static void Fill(Panels<T> view, const Numbers& values) {
    ASSERT_EQ(view.rows * view.features, static_cast<int64_t>(values.size()));
    for (int64_t row = 0; row < view.panels() * kPanelRows; ++row) {
      for (int64_t f = 0; f < view.features; ++f) {
        view.At(row, f) = row < view.rows ? static_cast<T>(values[row * view.features + f]) : 0;
      }
    }
  }
  static Numbers Read(Panels<const T> view) {
    Numbers values;
    for (int64_t row = 0; row < view.rows; ++row) {
      for (int64_t f = 0; f < view.features; ++f) values.push_back(view.At(row, f));
    }
    return values;
  }

  const Graph& graph_;
  CpuExecutor<T> executor_;
  Workspace<T> workspace_;
  FlatSink<T> sink_;
  std::vector<T> weights_;
};
using OpRun = OpRunOf<double>;

constexpr Activation kActivations[] = {Activation::kIdentity, Activation::kRelu, Activation::kGelu,
                                       Activation::kSwish, Activation::kTanh};

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

// Queries, keys and values are maps of x. With lengths there are positions beside x that nothing
// else reads.
Graph AttentionGraph(AttentionOp op, bool with_lengths) {
  constexpr int64_t kFeatures = 12;
  const AttentionShape& a = op.attention;
  FeatureShape features = {.categorical_fields = 1, .embedding_width = kFeatures};
  if (with_lengths) {
    features.sequences = {{"history", 0, 0, a.keys - 1}};
    op.sequence = 0;
  }
  GraphBuilder graph(features);
  if (with_lengths) {
    SliceOp field;
    field.tokens = a.keys;
    field.width = kFeatures;
    field.slice = {1, kFeatures};
    graph.SetRows(graph.Apply(field, graph.Rows()));
  }
  const Value x = graph.Rows();
  const auto map = [&](const std::string& name, int64_t out) {
    return Linear(&graph, name, LinearOf(1, kFeatures, out, Weights::kOwn, {}))(x);
  };
  const Value inputs[] = {map("query", a.queries * a.heads * a.width),
                          map("key", a.keys * a.heads * a.width),
                          map("value", a.keys * a.heads * a.value_width)};
  std::vector<int> parameters;
  if (op.position_bias) {
    parameters = {graph.Parameter("bias", {a.differences()}, {.stddev = 0.5}, Decay::kNone)};
  }
  const Value y = graph.Apply(op, inputs, parameters);
  return std::move(graph).Finish(y);
}

TEST(AttentionTest, Gradients) {
  for (const AttentionKind kind : {AttentionKind::kSoftmax, AttentionKind::kSilu}) {
    AttentionOp op;
    op.attention = {.kind = kind,
                    .queries = 5,
                    .keys = 5,
                    .heads = 2,
                    .width = 3,
                    .value_width = 5,
                    .scale = 0.5};
    for (const bool causal : {false, true}) {
      for (const bool lengths : {false, true}) {
        for (const bool bias : {false, true}) {
          for (const double dropout : {0.0, 0.3}) {
            SCOPED_TRACE(testing::Message()
                         << static_cast<int>(kind) << causal << lengths << bias << ' ' << dropout);
            op.attention.causal = causal;
            op.position_bias = bias;
            op.dropout = dropout;
            ExpectGradients(AttentionGraph(op, lengths), {.evaluates_alike = dropout == 0});
          }
        }
      }
    }
    op.dropout = 0;
    op.attention.queries = 2;
    for (const bool last : {false, true}) {
      op.attention.last_keys = last;
      ExpectGradients(AttentionGraph(op, /*with_lengths=*/true));
    }
    op.attention.queries = 1;
    op.attention.causal = op.attention.last_keys = false;
    ExpectGradients(AttentionGraph(op, /*with_lengths=*/true));
  }
}

// The mask goes by a row's number in the epoch and the step, and there is none in evaluation.
TEST(AttentionTest, DropoutIsOfTheRow) {
  AttentionOp op;
  op.attention = {.queries = 5, .keys = 5, .width = 2, .value_width = 2};
  op.dropout = 0.4;
  op.dropout_layer = 3;
  const Graph dropped = AttentionGraph(op, /*with_lengths=*/false);
  op.dropout = 0;
  const Graph whole = AttentionGraph(op, /*with_lengths=*/false);
  const auto outputs = [](const Graph& graph, int64_t first_row, int64_t rows, uint32_t step,
                          bool training) {
    OpRun run(graph, rows);
    for (const ParameterInfo& p : graph.parameters().parameters()) {
      run.Set(p.name, RandomNumbers<double>(p.size, /*seed=*/p.size));
    }
    run.pass.first_row = first_row;
    run.pass.step = step;
    run.pass.training = training;
    return run.Forward(Numbers(rows * 12, 0.5));
  };
  const Numbers all = outputs(dropped, 7, 20, 4, true);
  const int64_t features = dropped.outputs();
  for (const int64_t row : {0, 3, 19}) {
    EXPECT_EQ(outputs(dropped, 7 + row, 1, 4, true),
              Numbers(all.begin() + row * features, all.begin() + (row + 1) * features));
  }
  EXPECT_NE(outputs(dropped, 7, 20, 5, true), all);
  EXPECT_EQ(outputs(dropped, 7, 20, 4, false), outputs(whole, 7, 20, 4, false));
  EXPECT_NE(outputs(whole, 7, 20, 4, true), all);
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
  op.sequence = 1;
  op.sequences = 2;
  const Graph graph = GraphOf(5, [&](GraphBuilder* graph, Value x) {
    const auto map = [&](const std::string& name, int64_t out) {
      LinearOp pick = LinearOf(1, 5, out, Weights::kOwn, {});
      pick.bias = false;
      return Linear(graph, name, pick)(x);
    };
    const Value inputs[] = {map("query", 1), map("key", 2), map("value", 2)};
    return graph->Apply(op, inputs);
  });
  OpRun run(graph, 2);
  run.Set("query.weight", {1, 0, 0, 0, 0});
  run.Set("key.weight", {0, 1, 0, 0, 0, 0, 0, 1, 0, 0});
  run.Set("value.weight", {0, 0, 0, 1, 0, 0, 0, 0, 0, 1});
  const int32_t lengths[] = {0, 1, 1, 0};
  run.pass.lengths = lengths;
  const double ln3 = std::log(3.0);
  const Numbers y = run.Forward({ln3, 1, 0, 8, 4, ln3, 1, 0, 8, 4});
  EXPECT_NEAR(y[0], 0.75 * 8 + 0.25 * 4, 1e-14);
  EXPECT_EQ(y[1], 8);
}

// E has two fields, the second of them a history of at most `positions` ids whose target is the
// first; x are their tokens, `inner` makes others of these, and the target's takes the history's
// place.
Graph TargetTokenGraph(int64_t positions, int64_t width,
                       const std::function<Value(GraphBuilder*, Value)>& inner) {
  FeatureShape features = {.categorical_fields = 2, .embedding_width = width};
  features.sequences = {{"history", 1, 0, positions}};
  GraphBuilder graph(features);
  const Value e = graph.Rows();
  AppendTargetOp append;
  append.fields = 2;
  append.positions = positions;
  append.width = width;
  const Value x = graph.Apply(append, e);
  ReadTargetOp read;
  read.fields = 2;
  read.positions = positions;
  read.width = width;
  read.field = 1;
  const Value both[] = {e, inner(&graph, x)};
  graph.SetRows(graph.Apply(read, both));
  ConcatOp concat;
  concat.first_features = 2 * width;
  const Value outputs[] = {graph.Rows(), x};
  const Value y = graph.Apply(concat, outputs);
  return std::move(graph).Finish(y);
}

// E has a field and two histories behind it, which become one.
Graph HistoryGraph(int64_t width) {
  FeatureShape features = {.categorical_fields = 3, .embedding_width = width};
  features.sequences = {{"first", 1, 0, 3}, {"second", 2, 0, 2}};
  GraphBuilder graph(features);
  const Value e = graph.Rows();
  SliceOp slice;
  slice.tokens = 8;
  slice.width = width;
  const auto cut = [&](int64_t first, int64_t count) {
    slice.first_token = first;
    slice.slice = {count, width};
    return graph.Apply(slice, e);
  };
  graph.SetRows(cut(0, 3));
  AppendHistoryOp append;
  append.positions = 3;
  append.width = width;
  append.sequences = 2;
  const Value first = graph.Apply(append, cut(3, 3));
  append.before = 3;
  append.positions = 2;
  append.sequence = 1;
  const Value both[] = {cut(6, 2), first};
  const Value history = graph.Apply(append, both);
  LinearOp scale = LinearOf(5, width, width, Weights::kOwn, {});
  scale.bias = false;
  const Value scaled = Linear(&graph, "scale", scale)(history);
  ConcatOp concat;
  concat.first_features = 3 * width;
  const Value outputs[] = {graph.Rows(), scaled};
  const Value y = graph.Apply(concat, outputs);
  return std::move(graph).Finish(y);
}

TEST(AppendHistoryTest, Gradients) { ExpectGradients(HistoryGraph(3)); }

TEST(AppendHistoryTest, ByHand) {
  const Graph graph = HistoryGraph(1);
  OpRun run(graph, 3);
  run.Set("scale.weight", {10, 20, 30, 40, 50});
  const int32_t lengths[] = {2, 1, 0, 2, 3, 0};
  run.pass.lengths = lengths;
  // A field, two empty bags, three positions and two.
  const Numbers row = {9, 0, 0, 1, 2, 3, 4, 5};
  Numbers e;
  for (int i = 0; i < 3; ++i) e.insert(e.end(), row.begin(), row.end());
  EXPECT_EQ(run.Forward(e), Numbers({9, 0, 0, 0, 0, 30 * 1, 40 * 2, 50 * 4,  //
                                     9, 0, 0, 0, 0, 0,      40 * 4, 50 * 5,  //
                                     9, 0, 0, 0, 0, 30 * 1, 40 * 2, 50 * 3}));
}

// E has a history of 3 positions, before which the tokens of a field go; a token stands behind
// them.
Graph PrependGraph(int64_t width) {
  FeatureShape features = {.categorical_fields = 3, .embedding_width = width};
  features.sequences = {{"history", 2, 0, 3}};
  GraphBuilder graph(features);
  const Value e = graph.Rows();
  const Value fields = CutTokens(&graph, e, 6, 0, 3);
  graph.SetRows(fields);
  AppendHistoryOp append;
  append.before = 2;
  append.positions = 3;
  append.width = width;
  append.last = true;
  append.behind = 1;
  const Value x = CutTokens(&graph, e, 6, 2, 4);
  const Value both[] = {x, CutTokens(&graph, fields, 3, 0, 2)};
  const Value y = graph.Apply(append, both);
  LinearOp scale = LinearOf(6, width, width, Weights::kOwn, {});
  scale.bias = false;
  const Value scaled = Linear(&graph, "scale", scale)(y);
  return std::move(graph).Finish(scaled);
}

TEST(AppendHistoryTest, LastPositionsStayInTheirPlaces) {
  ExpectGradients(PrependGraph(3));
  const Graph graph = PrependGraph(1);
  OpRun run(graph, 3);
  run.Set("scale.weight", {1, 10, 100, 1000, 10000, 100000});
  const int32_t lengths[] = {3, 1, 0};
  run.pass.lengths = lengths;
  const Numbers row = {8, 9, 1, 2, 3, 4};
  Numbers e;
  for (int i = 0; i < 3; ++i) e.insert(e.end(), row.begin(), row.end());
  EXPECT_EQ(run.Forward(e), Numbers({8, 90, 100, 2000, 30000, 400000,  //
                                     0, 0, 800, 9000, 30000, 400000,   //
                                     0, 0, 0, 8000, 90000, 400000}));
  EXPECT_EQ(run.Backward(Numbers(18, 1)), Numbers({1, 10, 100, 1000, 10000, 100000,  //
                                                   100, 1000, 0, 0, 10000, 100000,   //
                                                   1000, 10000, 0, 0, 0, 100000}));
}

TEST(SigmoidGateTest, ByHand) {
  const Graph graph = GraphOf(4, [](GraphBuilder* graph, Value x) {
    const Value a = CutTokens(graph, x, 2, 0, 1);
    const Value both[] = {a, CutTokens(graph, x, 2, 1, 1)};
    return graph->Apply(SigmoidGateOp{}, both);
  });
  OpRun run(graph, 1);
  const Numbers y = run.Forward({3, -2, 0, std::log(3.0)});
  EXPECT_EQ(y[0], 1.5);
  EXPECT_NEAR(y[1], -1.5, 1e-15);
  const Numbers dx = run.Backward({2, 4});
  const double expected[] = {1, 3, 2 * 3 * 0.25, 4 * -2 * 0.1875};
  for (int i = 0; i < 4; ++i) EXPECT_NEAR(dx[i], expected[i], 1e-14) << i;
}

TEST(TargetTokenTest, Gradients) {
  ExpectGradients(TargetTokenGraph(4, 3, [](GraphBuilder* graph, Value x) {
    return Linear(graph, "map", LinearOf(1, 15, 15, Weights::kOwn, {}))(x);
  }));
}

TEST(TargetTokenTest, ByHand) {
  const Graph graph = TargetTokenGraph(3, 1, [](GraphBuilder* graph, Value x) {
    return Linear(graph, "map", LinearOf(4, 1, 1, Weights::kOwn, {}))(x);
  });
  OpRun run(graph, 3);
  run.Set("map.weight", {10, 100, 1000, 10000});
  const int32_t lengths[] = {0, 2, 3};
  run.pass.lengths = lengths;
  // The target, the history's empty bag, three positions.
  EXPECT_EQ(run.Forward({2, 9, 3, 5, 7, 2, 9, 3, 5, 7, 2, 9, 3, 5, 7}),
            Numbers({2, 20, 2, 0, 0, 0,    //
                     2, 2000, 3, 5, 2, 0,  //
                     2, 20000, 3, 5, 7, 2}));
  EXPECT_EQ(run.Backward({1, 1, 0, 0, 0, 0,  //
                          1, 1, 0, 0, 0, 0,  //
                          1, 1, 0.5, 0.25, 0.125, 2}),
            Numbers({11, 0, 0, 0, 0,    //
                     1001, 0, 0, 0, 0,  //
                     10003, 0, 0.5, 0.25, 0.125}));
}

constexpr HstuOptions kHstu = {
    .input = {4, 3}, .sequence = 0, .heads = 2, .width = 3, .value_width = 2};

TEST(HstuTest, Gradients) {
  HstuOptions options = kHstu;
  options.sequence = -1;
  ExpectGradients(
      GraphOf(12, [&](GraphBuilder* graph, Value x) { return Hstu(graph, "hstu", options)(x); }));
}

// tests/golden/hstu.py printed these: sum of y, and of every gradient the sum and that of the
// squares, for numbers that both make by the same formula.
const std::map<std::string, std::pair<double, double>>& HstuGolden() {
  static const auto& golden = *new std::map<std::string, std::pair<double, double>>{
      {"y", {52.023241304513505, 80.45992489401456}},
      {"dx", {0.8487888293033503, 35.798927590642606}},
      {"hstu.norm.gain", {-4.030526384693616, 23.92586742849633}},
      {"hstu.norm.bias", {7.189085816635057, 21.896541251059208}},
      {"hstu.query.weight", {-0.06610625961554464, 0.08821074349029151}},
      {"hstu.key.weight", {-0.053870543137075066, 0.06619904758185326}},
      {"hstu.value.weight", {-0.001843698574158753, 0.15332375829900124}},
      {"hstu.gate.weight", {1.1380935430825927, 10.124912023056012}},
      {"hstu.position_bias", {0.2200087947696955, 0.022211546450854262}},
      {"hstu.output_norm.gain", {0.9595616926829345, 3.971366009212178}},
      {"hstu.output_norm.bias", {-3.2608474712419593, 27.96552031653326}},
      {"hstu.output.weight", {10.837190260020694, 28.935107660411752}},
      {"hstu.output.bias", {0.8487888293033492, 0.9230461245913417}}};
  return golden;
}

TEST(HstuTest, EqualsPyTorch) {
  constexpr double kTolerance = 1e-9;
  const Graph graph = GraphOf(kHstu.input.features(), [](GraphBuilder* graph, Value x) {
    return Hstu(graph, "hstu", kHstu)(x);
  });
  constexpr int64_t kRows = 5;
  OpRun run(graph, kRows);
  const std::vector<int32_t> lengths(kRows, 2);
  run.pass.lengths = lengths.data();
  int64_t place = 0;
  const auto numbers = [&](int64_t count) {
    Numbers values;
    for (int64_t i = 0; i < count; ++i)
      values.push_back(std::sin(0.7 * static_cast<double>(++place)));
    return values;
  };
  for (const ParameterInfo& p : graph.parameters().parameters()) {
    if (p.size > 0) run.Set(p.name, numbers(p.size));
  }
  const int64_t features = kHstu.input.features();
  const Numbers x = numbers(kRows * features);
  const Numbers dy = numbers(kRows * features);
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
    if (p.size > 0) expect(p.name.c_str(), run.Gradient(p.name));
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

// Means times the share, beside the least normal number m: m - 2^-153, its negative, and less than
// m - 2^-151, which is below m when rounded.
TEST(BatchNormTest, StatisticsUnderflowAsOnX86) {
  const Graph graph = BatchNormGraph();
  OpRunOf<float> run(graph, 1);
  run.pass.leaf_share = 0.5 - 0x1p-28;
  FloatingPoint::Set(FloatingPoint::kCanonical);
  run.Forward({0x1p-125, -0x1p-125, 0x1p-125 - 0x1p-149});
  run.Backward({1, 1, 1});
  FloatingPoint::Set(FloatingPoint::kDefault);
  EXPECT_EQ(run.Gradient("layer.running_mean"), (Numbers{0x1p-126, -0x1p-126, 0}));
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
  ExpectGradients(of_two_maps(SigmoidGateOp{}));
  ConcatOp concat;
  concat.first_features = 12;
  ExpectGradients(of_two_maps(concat));
  // A square: both inputs are one value.
  ExpectGradients(GraphOf(12, [](GraphBuilder* graph, Value x) {
    const Value both[] = {x, x};
    return graph->Apply(MultiplyOp{}, both);
  }));
}

// Two mixtures of three tokens, whose gates are the features behind them.
TEST(MixtureTest, GradientsAndByHand) {
  MixtureOp mixture;
  mixture.mixture = {.experts = 3, .width = 5, .mixtures = 2};
  ExpectGradients(GraphOf(7, [&](GraphBuilder* graph, Value x) {
    const Value both[] = {Linear(graph, "x", LinearOf(1, 7, 15, Weights::kOwn, {}))(x),
                          Linear(graph, "gates", LinearOf(1, 7, 6, Weights::kOwn, {}))(x)};
    return graph->Apply(mixture, both);
  }));

  mixture.mixture = {.experts = 2, .width = 2, .mixtures = 2};
  const Graph graph = GraphOf(8, [&](GraphBuilder* graph, Value x) {
    const Value both[] = {Linear(graph, "x", LinearOf(1, 8, 4, Weights::kOwn, {}))(x),
                          Linear(graph, "gates", LinearOf(1, 8, 4, Weights::kOwn, {}))(x)};
    return graph->Apply(mixture, both);
  });
  OpRun run(graph, 1);
  Numbers first(4 * 8), last(4 * 8);
  for (int i = 0; i < 4; ++i) first[i * 8 + i] = last[i * 8 + 4 + i] = 1;
  run.Set("x.weight", first);
  run.Set("gates.weight", last);
  // Weights 1/2, 1/2; and 1, 0, as far as gates of 1000 and 0 tell.
  EXPECT_EQ(run.Forward({3, 5, 7, 11, 4, 4, 1000, 0}), Numbers({5, 8, 3, 5}));
}

using Mixes = SinkhornMixOp::Mixes;

// The parameters are "layer0" and, with a rank, "layer1".
Graph SinkhornGraph(Mixes mixes, int64_t blocks, int64_t width, int64_t rank, double tau,
                    int64_t iterations) {
  SinkhornMixOp op;
  op.mixes = mixes;
  op.blocks = blocks;
  op.width = width;
  op.rank = rank;
  op.tau = tau;
  op.iterations = iterations;
  return GraphOf(blocks * width, [&](GraphBuilder* graph, Value x) {
    std::vector<int> parameters;
    for (const std::vector<int64_t>& shape : op.parameter_shapes()) {
      parameters.push_back(
          graph->Parameter(IndexedName("layer", static_cast<int64_t>(parameters.size())), shape,
                           {.stddev = 0.5}, Decay::kNone));
    }
    return graph->Apply(op, x, parameters);
  });
}

TEST(SinkhornMixTest, Gradients) {
  for (const Mixes mixes : {Mixes::kWithin, Mixes::kBetween}) {
    for (const int64_t rank : {0, 2}) {
      SCOPED_TRACE(testing::Message() << static_cast<int>(mixes) << ", " << rank);
      ExpectGradients(SinkhornGraph(mixes, 3, 5, rank, /*tau=*/0.5, /*iterations=*/2));
    }
  }
}

// S = [[0.8, 0.4], [0.4, -0.4]]. The limit has e^((0.8 - 0.4 - 2 * 0.4) / 2) = e^-0.2 as the ratio
// of p, on the diagonal, to 1 - p.
TEST(SinkhornMixTest, TwoByTwoByHand) {
  const Graph graph = SinkhornGraph(Mixes::kBetween, 2, 1, /*rank=*/0, /*tau=*/0.5, 20);
  OpRun run(graph, 2);
  run.Set("layer0", {0.4, 0.1, 0.3, -0.2});
  const Numbers y = run.Forward({1, 0, 0, 1});
  const double p = 1 / (1 + std::exp(0.2));
  const double expected[] = {p, 1 - p, 1 - p, p};
  for (int i = 0; i < 4; ++i) EXPECT_NEAR(y[i], expected[i], 1e-12);
}

// Large logits and one round: the sums of columns are 1, and those of rows are not.
TEST(SinkhornMixTest, ColumnsSumToOne) {
  constexpr int64_t kBlocks = 3, kBlockWidth = 5;
  const auto sums = [&](Mixes mixes) {
    const Graph graph = SinkhornGraph(mixes, kBlocks, kBlockWidth, 0, /*tau=*/0.02, 1);
    OpRun run(graph, 1);
    const int64_t logits =
        mixes == Mixes::kWithin ? kBlocks * kBlockWidth * kBlockWidth : kBlocks * kBlocks;
    run.Set("layer0", RandomNumbers<double>(logits, 1));
    return run.Forward(Numbers(kBlocks * kBlockWidth, 1));
  };
  for (const double sum : sums(Mixes::kWithin)) EXPECT_NEAR(sum, 1, 1e-12);
  const Numbers of_rows = sums(Mixes::kBetween);
  EXPECT_NEAR(of_rows[0] + of_rows[kBlockWidth] + of_rows[2 * kBlockWidth], kBlocks, 1e-12);
  EXPECT_GT(std::fabs(of_rows[0] - 1), 1e-3);
}

using Shared = MatrixProductOp::Shared;

// Factors that are values are runs of x's features, A first.
Graph MatrixProductGraph(const MatrixProductOp& op) {
  const int64_t first = op.shared == Shared::kFirst ? 0 : op.product.count * op.first_features();
  const int64_t second = op.shared == Shared::kSecond ? 0 : op.product.count * op.second_features();
  return GraphOf(first + second, [&](GraphBuilder* graph, Value x) {
    std::vector<Value> factors;
    for (const auto& [begin, features] : {std::pair(int64_t{0}, first), {first, second}}) {
      SliceOp slice;
      slice.width = first + second;
      slice.first_column = begin;
      slice.slice = {1, features};
      if (features > 0) factors.push_back(graph->Apply(slice, x));
    }
    std::vector<int> parameters;
    if (op.shared != Shared::kNone) {
      parameters = {graph->Parameter("w", op.shared_shape(), {.stddev = 0.5}, Decay::kDense)};
    }
    return graph->Apply(op, factors, parameters);
  });
}

TEST(MatrixProductTest, Gradients) {
  for (const Shared shared : {Shared::kNone, Shared::kFirst, Shared::kSecond}) {
    for (const bool first : {false, true}) {
      for (const bool second : {false, true}) {
        MatrixProductOp op;
        op.product = {.count = 3, .rows = 7, .columns = 5, .terms = 2};
        op.first_transposed = first;
        op.second_transposed = second;
        op.shared = shared;
        if (first != second) op.activation = Activation::kSigmoid;
        ExpectGradients(MatrixProductGraph(op));
      }
    }
  }
}

// [1 2; 3 4] and [0 1; 1 1] times 10 and 100.
TEST(MatrixProductTest, ByHand) {
  MatrixProductOp op;
  op.product = {.count = 2, .rows = 2, .columns = 1, .terms = 2};
  op.shared = Shared::kSecond;
  const Graph graph = MatrixProductGraph(op);
  OpRun run(graph, 1);
  run.Set("w", {10, 100});
  EXPECT_EQ(run.Forward({1, 2, 3, 4, 0, 1, 1, 1}), Numbers({210, 430, 100, 110}));
  EXPECT_EQ(run.Backward({1, 0, 0, 2}), Numbers({10, 100, 0, 0, 0, 0, 20, 200}));
  EXPECT_EQ(run.Gradient("w"), Numbers({1 + 2, 2 + 2}));
}

Graph PositionGraph(int64_t tokens, int64_t positions, double scale, double input_scale = 1) {
  PositionOp op;
  op.input_scale = input_scale;
  op.tokens = tokens;
  op.width = 2;
  op.positions = positions;
  op.scale = scale;
  return GraphOf(tokens * op.width, [&](GraphBuilder* graph, Value x) {
    return graph->Apply(
        op, x, {graph->Parameter("p", {positions, op.width}, {.stddev = 0.5}, Decay::kNone)});
  });
}

TEST(PositionTest, GradientsAndByHand) {
  for (const int64_t positions : {2, 5}) {
    for (const double scale : {1.0, 1.7}) ExpectGradients(PositionGraph(5, positions, 0.3, scale));
  }
  const Graph graph = PositionGraph(2, 1, 0.5);
  OpRun run(graph, 1);
  run.Set("p", {10, 20});
  EXPECT_EQ(run.Forward({1, 2, 3, 4}), Numbers({1, 2, 8, 14}));
  EXPECT_EQ(run.Backward({1, 2, 3, 4}), Numbers({1, 2, 3, 4}));
  EXPECT_EQ(run.Gradient("p"), Numbers({1.5, 2}));
  const Graph of_scaled = PositionGraph(2, 1, 0.5, 4);
  OpRun scaled(of_scaled, 1);
  scaled.Set("p", {10, 20});
  EXPECT_EQ(scaled.Forward({1, 2, 3, 4}), Numbers({4, 8, 17, 26}));
  EXPECT_EQ(scaled.Backward({1, 2, 3, 4}), Numbers({4, 8, 12, 16}));
  EXPECT_EQ(scaled.Gradient("p"), Numbers({1.5, 2}));
}

Graph WeightedPoolGraph(int64_t groups, int64_t tokens, int64_t width) {
  WeightedPoolOp op;
  op.groups = groups;
  op.tokens = tokens;
  op.width = width;
  return GraphOf(groups * tokens * width, [&](GraphBuilder* graph, Value x) {
    return graph->Apply(op, x,
                        {graph->Parameter("u", {width, tokens}, {.stddev = 0.5}, Decay::kDense)});
  });
}

TEST(WeightedPoolTest, GradientsAndByHand) {
  for (const int64_t groups : {1, 3}) ExpectGradients(WeightedPoolGraph(groups, 5, 4));
  const Graph graph = WeightedPoolGraph(/*groups=*/2, /*tokens=*/2, /*width=*/3);
  OpRun run(graph, 1);
  run.Set("u", {1, 10, 2, 20, 3, 30});
  EXPECT_EQ(run.Forward({1, 2, 3, 4, 5, 6, 0, 0, 1, 1, 0, 0}), Numbers({41, 104, 189, 10, 0, 3}));
  EXPECT_EQ(run.Backward({1, 0, 2, 0, 5, 3}), Numbers({1, 0, 6, 10, 0, 60, 0, 10, 9, 0, 100, 90}));
  EXPECT_EQ(run.Gradient("u"), Numbers({1, 4, 0, 0, 9, 12}));
}

// The vector collapse head, sums over the columns of W * M, is MultiProbe with u_k = e_k and v_k =
// row k of W.
TEST(MultiProbeTest, VectorCollapseIsMultiProbeOfUnitVectors) {
  constexpr int64_t kTokens = 5, kWidth = 7, kRows = 21;
  const LinearOp op = [] {
    LinearOp collapse = LinearOf(kTokens, kWidth, 1, Weights::kOwn, {});
    collapse.bias = false;
    return collapse;
  }();
  const Graph collapse = LinearGraph(op);
  const Graph probe =
      GraphOfLayer(kTokens * kWidth, [](GraphBuilder* graph, const std::string& name) {
        return MultiProbe(graph, name, {kTokens, kWidth}, kTokens);
      });
  const Numbers x = RandomNumbers<double>(kRows * kTokens * kWidth, /*seed=*/1);
  const Numbers w = RandomNumbers<double>(kTokens * kWidth, /*seed=*/2);
  const Numbers dy = RandomNumbers<double>(kRows * kTokens, /*seed=*/3);
  Numbers identity(kTokens * kTokens);
  for (int64_t t = 0; t < kTokens; ++t) identity[t * (kTokens + 1)] = 1;
  OpRun collapsed(collapse, kRows), probed(probe, kRows);
  collapsed.Set("layer.weight", w);
  probed.Set("layer.right.weight", w);
  probed.Set("layer.left.weight", identity);
  const auto expect_equal = [](const Numbers& a, const Numbers& b) {
    ASSERT_EQ(a.size(), b.size());
    for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-12 * (1 + std::abs(b[i])));
  };
  expect_equal(probed.Forward(x), collapsed.Forward(x));
  expect_equal(probed.Backward(dy), collapsed.Backward(dy));
  expect_equal(probed.Gradient("layer.right.weight"), collapsed.Gradient("layer.weight"));
}

// The functionals u_k' M v_k of K probes span at most K of the d^2 dimensions that those of M have,
// so that the scoring matrices of many classes, which share the probes, are any only from K = d^2
// on: K >= d, as a note on this head has it, suffices for one matrix alone.
TEST(MultiProbeTest, CounterexampleAsManyProbesAsColumnsDoNotScoreByAnyMatrix) {
  constexpr int64_t kD = 4, kElements = kD * kD;
  Numbers units(kElements * kElements);  // a row has one element
  for (int64_t i = 0; i < kElements; ++i) units[i * (kElements + 1)] = 1;
  for (const int64_t probes : {int64_t{1}, kD, kElements - 1, kElements, kElements + 3}) {
    const Graph graph =
        GraphOfLayer(kElements, [=](GraphBuilder* builder, const std::string& name) {
          return MultiProbe(builder, name, {kD, kD}, probes);
        });
    OpRun run(graph, kElements);
    run.Set("layer.right.weight", RandomNumbers<double>(probes * kD, /*seed=*/7));
    run.Set("layer.left.weight", RandomNumbers<double>(probes * kD, /*seed=*/8));
    const Numbers functionals = run.Forward(units);
    const Eigen::Map<const Eigen::MatrixXd> matrix(functionals.data(), probes, kElements);
    const Eigen::VectorXd values = SingularValuesByEigen(matrix);
    EXPECT_EQ((values.array() > 1e-12 * values[0]).count(), std::min(probes, kElements));
  }
}

// The same probes of several matrices: each alone gives the same.
TEST(MultiProbeTest, MatricesShareTheirProbes) {
  const auto make = [](int64_t matrices) {
    return GraphOfLayer(matrices * 12, [=](GraphBuilder* graph, const std::string& name) {
      return MultiProbe(graph, name, {3, 4}, /*probes=*/2, matrices);
    });
  };
  const Graph one = make(1), three = make(3);
  ExpectGradients(three);
  const Numbers x = RandomNumbers<double>(36, /*seed=*/4);
  OpRun alone(one, 3), together(three, 1);
  for (OpRun* run : {&alone, &together}) {
    run->Set("layer.right.weight", RandomNumbers<double>(8, /*seed=*/5));
    run->Set("layer.left.weight", RandomNumbers<double>(6, /*seed=*/6));
  }
  EXPECT_EQ(alone.Forward(x), together.Forward(x));
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

SliceOp SliceOf(Shape x, int64_t first_token, int64_t first_column, Shape slice) {
  SliceOp op;
  op.tokens = x.tokens;
  op.width = x.width;
  op.first_token = first_token;
  op.first_column = first_column;
  op.slice = slice;
  return op;
}

TEST(SliceTest, Gradients) {
  constexpr Shape kShape = {3, 4};
  // Tokens; columns; a part of one token.
  for (const SliceOp& op : {SliceOf(kShape, 1, 0, {2, 4}), SliceOf(kShape, 0, 1, {3, 2}),
                            SliceOf(kShape, 2, 1, {1, 3})}) {
    for (const bool used_again : {false, true}) {
      ExpectGradients(GraphOf(12, [&](GraphBuilder* graph, Value e) {
        const Value x = Linear(graph, "map", LinearOf(1, 12, 12, Weights::kOwn, {}))(e);
        const Value y = graph->Apply(op, x);
        if (!used_again) return y;
        ConcatOp concat;
        concat.first_features = op.slice.features();
        const Value both[] = {y, x};
        return graph->Apply(concat, both);
      }));
    }
  }
}

// x = (1 2 3, -4 5 -6), of which y = (-4 5 -6) and z = (2, 5): relu(y), z and x are outputs. A
// slice may lie in x, and the ReLU may not work in place there.
TEST(SliceTest, ByHand) {
  const Graph graph = GraphOf(6, [](GraphBuilder* graph, Value x) {
    const Value y = graph->Apply(SliceOf({2, 3}, 1, 0, {1, 3}), x);
    const Value relu = graph->Apply(ReluOp{}, y);
    const Value z = graph->Apply(SliceOf({2, 3}, 0, 1, {2, 1}), x);
    ConcatOp concat;
    concat.first_features = 3;
    const Value relu_and_z[] = {relu, z};
    const Value slices = graph->Apply(concat, relu_and_z);
    concat.first_features = 5;
    const Value all[] = {slices, x};
    return graph->Apply(concat, all);
  });
  OpRun run(graph, 1);
  EXPECT_EQ(run.Forward({1, 2, 3, -4, 5, -6}), Numbers({0, 5, 0, 2, 5, 1, 2, 3, -4, 5, -6}));
  EXPECT_EQ(run.Backward({7, 8, 9, 10, 20, 100, 200, 300, 400, 500, 600}),
            Numbers({100, 210, 300, 400, 528, 600}));
}

TEST(SumPoolTest, ByHand) {
  const Graph graph = GraphOf(6, [](GraphBuilder* graph, Value x) {
    SumPoolOp op;
    op.tokens = 2;
    op.width = 3;
    return graph->Apply(op, x);
  });
  OpRun run(graph, 1);
  EXPECT_EQ(run.Forward({1, 2, 3, -4, 5, -6}), Numbers({6, -5}));
  EXPECT_EQ(run.Backward({10, 100}), Numbers({10, 10, 10, 100, 100, 100}));
  ExpectGradients(graph);
}

// e = (1 2), (3 4), (5 6): 1*3 + 1*5 + 3*5 = 23 and 2*4 + 2*6 + 4*6 = 44.
TEST(FactorizationPoolTest, ByHand) {
  const auto make = [](int64_t tokens, int64_t width) {
    return GraphOf(tokens * width, [=](GraphBuilder* graph, Value x) {
      FactorizationPoolOp op;
      op.tokens = tokens;
      op.width = width;
      return graph->Apply(op, x);
    });
  };
  const Graph graph = make(3, 2);
  OpRun run(graph, 1);
  EXPECT_EQ(run.Forward({1, 2, 3, 4, 5, 6}), Numbers({23, 44}));
  EXPECT_EQ(run.Backward({10, 100}), Numbers({80, 1000, 60, 800, 40, 600}));
  ExpectGradients(graph);
  ExpectGradients(make(5, 19));
}

TEST(UpperTriangleTest, ByHand) {
  const Graph graph = GraphOf(9, [](GraphBuilder* graph, Value x) {
    UpperTriangleOp op;
    op.size = 3;
    return graph->Apply(op, x);
  });
  OpRun run(graph, 1);
  EXPECT_EQ(run.Forward({1, 2, 3, 4, 5, 6, 7, 8, 9}), Numbers({2, 3, 6}));
  EXPECT_EQ(run.Backward({10, 20, 30}), Numbers({0, 10, 20, 0, 0, 30, 0, 0, 0}));
  ExpectGradients(graph);
}

// p = v = 1/2 makes p v = 1/4 with the odds 1/3; the gradients are (1 - p) / (1 - p v) = 2/3 each.
TEST(JointLogitTest, ByHand) {
  const Graph graph =
      GraphOf(2, [](GraphBuilder* graph, Value x) { return graph->Apply(JointLogitOp{}, x); });
  OpRun run(graph, 1);
  const Numbers y = run.Forward({0, 0});
  EXPECT_EQ(y[0], 0);
  EXPECT_NEAR(y[1], -std::log(3), 1e-6);
  const Numbers dx = run.Backward({10, 3});
  EXPECT_NEAR(dx[0], 12, 1e-5);
  EXPECT_NEAR(dx[1], 2, 1e-5);
  // Far out the smaller of the logits is left.
  const std::vector<std::array<double, 3>> far = {
      {80, -50, -50}, {-50, 80, -50}, {-60, -70, -130}, {90, 80, 80}};
  for (const auto& [a, b, logit] : far) {
    EXPECT_NEAR(run.Forward({a, b})[1], logit, 1e-3) << a << ' ' << b;
  }
  ExpectGradients(graph);
}

TEST(MeanLogitTest, ByHand) {
  const Graph graph =
      GraphOf(2, [](GraphBuilder* graph, Value x) { return graph->Apply(MeanLogitOp{}, x); });
  OpRun run(graph, 1);
  EXPECT_EQ(run.Forward({1, 5}), Numbers({3, 1, 5}));
  EXPECT_EQ(run.Backward({10, 100, 1000}), Numbers({105, 1005}));
  ExpectGradients(graph);
}

TEST(LogitSumTest, ByHand) {
  const Graph graph = GraphOf(3, [](GraphBuilder* graph, Value x) { return LogitSum(graph, x); });
  OpRun run(graph, 2);
  run.Set("bias", {0.5});
  EXPECT_EQ(run.Forward({1, 2, -4, 0, 0, 8}), Numbers({-0.5, 8.5}));
  EXPECT_EQ(run.Backward({10, 1}), Numbers({10, 10, 10, 1, 1, 1}));
  EXPECT_EQ(run.Gradient("bias"), Numbers({11}));
  ExpectGradients(graph);
}

// A layer of the compressed interaction network on a, the first tokens of E, and b, the others; or
// on b alone.
Graph InteractionGraph(int64_t maps, int64_t first, int64_t second, int64_t width, bool one_input) {
  return GraphOf((one_input ? second : first + second) * width, [=](GraphBuilder* graph, Value e) {
    CompressedInteractionOp op;
    op.maps = maps;
    op.first = one_input ? second : first;
    if (!one_input) op.second = second;
    op.width = width;
    const std::vector<int> parameters = {
        graph->Parameter("layer.weight", {maps, op.first, op.b_tokens()}, {.stddev = 0.5},
                         Decay::kDense),
        graph->Parameter("layer.bias", {maps}, Init::Constant(0), Decay::kNone)};
    if (one_input) return graph->Apply(op, e, parameters);
    const Shape shape = {first + second, width};
    const Value a = graph->Apply(SliceOf(shape, 0, 0, {first, width}), e);
    const Value b = graph->Apply(SliceOf(shape, first, 0, {second, width}), e);
    const Value both[] = {a, b};
    return graph->Apply(op, both, parameters);
  });
}

TEST(CompressedInteractionTest, Gradients) {
  for (const int64_t maps : {1, 3, 19}) {
    SCOPED_TRACE(maps);
    ExpectGradients(InteractionGraph(maps, 2, 5, 3, /*one_input=*/false));
    ExpectGradients(InteractionGraph(maps, 0, 5, 3, /*one_input=*/true));
  }
  // Both inputs are one value, whose gradients the op adds.
  ExpectGradients(GraphOf(6, [](GraphBuilder* graph, Value e) {
    CompressedInteractionOp op;
    op.maps = 4;
    op.first = op.second = 3;
    op.width = 2;
    const std::vector<int> parameters = {
        graph->Parameter("layer.weight", {4, 3, 3}, {.stddev = 0.5}, Decay::kDense),
        graph->Parameter("layer.bias", {4}, Init::Constant(0), Decay::kNone)};
    const Value both[] = {e, e};
    return graph->Apply(op, both, parameters);
  }));
}

// a = (1 2), b = (3 4, 5 6), one map with W = (2, -1) and a bias of 0.5: columns
// 1 (2 3 - 5) + 0.5 and 2 (2 4 - 6) + 0.5.
TEST(CompressedInteractionTest, ByHand) {
  const Graph graph = InteractionGraph(1, 1, 2, 2, /*one_input=*/false);
  OpRun run(graph, 1);
  run.Set("layer.weight", {2, -1});
  run.Set("layer.bias", {0.5});
  EXPECT_EQ(run.Forward({1, 2, 3, 4, 5, 6}), Numbers({1.5, 4.5}));
  EXPECT_EQ(run.Backward({10, 100}), Numbers({10 * (6 - 5), 100 * (8 - 6), 20, 400, -10, -200}));
  EXPECT_EQ(run.Gradient("layer.weight"), Numbers({10 * 3 + 100 * 8, 10 * 5 + 100 * 12}));
  EXPECT_EQ(run.Gradient("layer.bias"), Numbers({110}));
}

// x = (1 2, 3 4): W = (1 2, 5 7) makes x1 x1 + 7 x1 x2 + 7 x2 x2 of every column.
TEST(CompressedInteractionTest, OfOneInputByHand) {
  const Graph graph = InteractionGraph(1, 0, 2, 2, /*one_input=*/true);
  OpRun run(graph, 1);
  run.Set("layer.weight", {1, 2, 5, 7});
  run.Set("layer.bias", {0});
  EXPECT_EQ(run.Forward({1, 2, 3, 4}), Numbers({1 + 21 + 63, 4 + 56 + 112}));
  EXPECT_EQ(run.Backward({1, 10}), Numbers({2 + 21, 10 * (4 + 28), 7 + 42, 10 * (14 + 56)}));
  EXPECT_EQ(run.Gradient("layer.weight"), Numbers({1 + 40, 3 + 80, 3 + 80, 9 + 160}));
}

// x of `first` and `second` tokens, and an op of both.
Graph GraphOfTwoSlices(Shape first, Shape second, const Op& op) {
  const int64_t features = first.features() + second.features();
  return GraphOf(features, [=](GraphBuilder* graph, Value e) {
    const Value both[] = {
        graph->Apply(SliceOf({1, features}, 0, 0, {1, first.features()}), e),
        graph->Apply(SliceOf({1, features}, 0, first.features(), {1, second.features()}), e)};
    return graph->Apply(op, both);
  });
}

PairwiseDotOp PairwiseDotOf(int64_t first, int64_t second, int64_t width) {
  PairwiseDotOp op;
  op.first = first;
  op.second = second;
  op.width = width;
  return op;
}

TEST(PairwiseDotTest, Gradients) {
  // Whole tiles of the kernel, and less.
  for (const auto& [first, second, width] :
       {std::tuple<int64_t, int64_t, int64_t>{4, 5, 3}, {3, 6, 1}, {1, 2, 7}, {7, 3, 4}}) {
    SCOPED_TRACE(first);
    ExpectGradients(
        GraphOfTwoSlices({first, width}, {second, width}, PairwiseDotOf(first, second, width)));
  }
  // Both inputs are one value, whose gradients the op adds.
  ExpectGradients(GraphOf(8, [](GraphBuilder* graph, Value x) {
    const Value both[] = {x, x};
    return graph->Apply(PairwiseDotOf(4, 4, 2), both);
  }));
}

// a = (1 2), b = (3 4, 5 6): 3 + 8 and 5 + 12.
TEST(PairwiseDotTest, ByHand) {
  const Graph graph = GraphOfTwoSlices({1, 2}, {2, 2}, PairwiseDotOf(1, 2, 2));
  OpRun run(graph, 1);
  EXPECT_EQ(run.Forward({1, 2, 3, 4, 5, 6}), Numbers({11, 17}));
  EXPECT_EQ(run.Backward({10, 100}), Numbers({530, 640, 10, 20, 100, 200}));
}

SoftmaxGateOp SoftmaxGateOf(int64_t tokens, int64_t width) {
  SoftmaxGateOp op;
  op.tokens = tokens;
  op.width = width;
  return op;
}

TEST(SoftmaxGateTest, Gradients) {
  ExpectGradients(GraphOfTwoSlices({4, 3}, {1, 4}, SoftmaxGateOf(4, 3)));
}

// Shares 1/2, 1/2 of (8 2, 4 6); and scores so large that their exponentials are not numbers.
TEST(SoftmaxGateTest, ByHand) {
  const Graph graph = GraphOfTwoSlices({2, 2}, {1, 2}, SoftmaxGateOf(2, 2));
  OpRun run(graph, 1);
  EXPECT_EQ(run.Forward({8, 2, 4, 6, 0.7, 0.7}), Numbers({4, 1, 2, 3}));
  // g = (8 + 4, 12 + 6), and ds = (g - 15) / 2.
  EXPECT_EQ(run.Backward({1, 2, 3, 1}), Numbers({0.5, 1, 1.5, 0.5, -1.5, 1.5}));
  EXPECT_EQ(run.Forward({8, 2, 4, 6, 5000, 1000}), Numbers({8, 2, 0, 0}));
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
