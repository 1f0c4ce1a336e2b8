#include "core/graph/graph.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <random>
#include <span>
#include <vector>

#include "core/graph/cpu/cpu_executor.h"
#include "core/graph/per_sample.h"
#include "core/graph/rewrites.h"
#include "core/graph/schedule.h"
#include "core/kernels/elementwise.h"
#include "core/models/layers.h"
#include "tests/core/graph/finite_difference.h"
#include "tests/core/kernels/panel_testing.h"
#include "tests/core/models/model_cases.h"

namespace elastor {
namespace {

constexpr int64_t kFeatures = 6;
constexpr FeatureShape kOneField = {.categorical_fields = 1, .embedding_width = kFeatures};

LinearOp Square() {
  LinearOp op;
  op.in = op.out = kFeatures;
  op.activation = Activation::kGelu;
  return op;
}

// What a training pass of some rows leaves behind.
template <typename T>
struct Passed {
  std::vector<T> logits;
  std::vector<T> gradients;  // flat
  std::vector<T> de;         // [rows][n k]
  bool operator==(const Passed&) const = default;
};

// A pass over the node of leaves [begin, end); leaf i has rows [offsets[i], offsets[i + 1]).
template <typename T>
Passed<T> TrainNode(const Graph& graph, CpuRewrites rewrites, const std::vector<int64_t>& offsets,
                    const Range& node, T noise = 0.2) {
  const int64_t rows = offsets.back();
  const FeatureShape& features = graph.features();
  CpuExecutor<T> executor(graph, rewrites);
  std::vector<T> weights(graph.parameters().flat_size());
  graph.parameters().Initialize(/*seed=*/3, weights.data());
  const std::vector<T> random = RandomNumbers<T>(static_cast<int64_t>(weights.size()), /*seed=*/6);
  for (size_t i = 0; i < weights.size(); ++i) weights[i] += noise * random[i];
  executor.Prepare(weights.data());
  std::vector<float> numeric = RandomNumbers<float>(rows * features.numeric_fields, /*seed=*/12);
  for (size_t i = 0; i < numeric.size(); i += 5) {
    numeric[i] = std::numeric_limits<float>::quiet_NaN();
  }
  const std::vector<T> e = RandomNumbers<T>(rows * features.embedding_features(), /*seed=*/4);
  Pass<T> pass;
  pass.leaves = PassLeaves(node.begin, std::span(offsets).subspan(node.begin, node.size() + 1));
  Workspace<T> workspace(executor.workspace_plan(), pass.rows());
  FlatSink<T> sink(&graph.parameters());
  sink.Begin(Store::kOverwrite);
  pass.workspace = &workspace;
  pass.sink = &sink;
  pass.training = true;
  pass.first_row = offsets[node.begin];
  pass.numeric = numeric.data() + pass.first_row * features.numeric_fields;
  const std::vector<int32_t> lengths = SequenceLengths(features, rows);
  pass.lengths = lengths.data() + pass.first_row * features.encoded_sequences();
  pass.seed = 8;
  // work(row of the batch, the views' row, feature).
  const auto each = [&](int64_t count, const auto& work) {
    for (const LeafRows& leaf : pass.leaves.leaves()) {
      for (int64_t row = 0; row < leaf.rows; ++row) {
        for (int64_t f = 0; f < count; ++f) {
          work(pass.first_row + leaf.first_row + row, leaf.first_panel * kPanelRows + row, f);
        }
      }
    }
  };
  each(features.embedding_features(), [&](int64_t row, int64_t at, int64_t f) {
    executor.Embeddings(pass).At(at, f) = e[row * features.embedding_features() + f];
  });
  executor.Forward(pass);
  Passed<T> passed;
  each(graph.outputs(), [&](int64_t, int64_t at, int64_t f) {
    passed.logits.push_back(executor.Logits(pass).At(at, f));
  });
  const Panels<T> dlogits = executor.LogitGradients(pass);
  Fill<T>(T(0), dlogits);
  each(graph.outputs(), [&](int64_t row, int64_t at, int64_t f) {
    dlogits.At(at, f) = T(1) / static_cast<T>(1 + row + f);
  });
  executor.Backward(pass);
  sink.End();
  each(features.embedding_features(), [&](int64_t, int64_t at, int64_t f) {
    passed.de.push_back(executor.EmbeddingGradients(pass).At(at, f));
  });
  passed.gradients = sink.gradients();
  return passed;
}

template <typename T>
Passed<T> TrainOnce(const Graph& graph, CpuRewrites rewrites, int64_t rows, T noise = 0.2) {
  return TrainNode<T>(graph, rewrites, {0, rows}, {0, 1}, noise);
}

// What passes over single leaves leave behind, gradients added along the tree. Nothing where the
// node has no rows.
template <typename T>
Passed<T> TrainLeafByLeaf(const Graph& graph, const std::vector<int64_t>& offsets,
                          const Range& node) {
  if (offsets[node.begin] == offsets[node.end]) return {};
  if (node.size() == 1) return TrainNode<T>(graph, CpuRewrites::kAll, offsets, node);
  const int64_t middle = (node.begin + node.end) / 2;
  Passed<T> left = TrainLeafByLeaf<T>(graph, offsets, {node.begin, middle});
  const Passed<T> right = TrainLeafByLeaf<T>(graph, offsets, {middle, node.end});
  if (left.gradients.empty()) return right;
  left.logits.insert(left.logits.end(), right.logits.begin(), right.logits.end());
  left.de.insert(left.de.end(), right.de.begin(), right.de.end());
  for (size_t i = 0; i < right.gradients.size(); ++i) left.gradients[i] += right.gradients[i];
  return left;
}

TEST(GraphBuilderDeathTest, RefusesMistakes) {
  EXPECT_DEATH(
      {
        GraphBuilder graph(kOneField);
        Linear(&graph, "map", Square());
        Linear(&graph, "map", Square());
      },
      "map.weight is declared twice");
  EXPECT_DEATH(
      {
        GraphBuilder graph(kOneField);
        const Layer map = Linear(&graph, "map", Square());
        map(graph.Embeddings());
        const Value end = map(graph.Embeddings());
        std::move(graph).Finish(end);
      },
      "nothing uses node 1 \\(linear\\)");
  EXPECT_DEATH(
      {
        GraphBuilder graph(kOneField);
        LinearOp op = Square();
        op.in = kFeatures + 1;
        Linear(&graph, "map", op)(graph.Embeddings());
      },
      "tokens \\* in");
}

// E is used three times; the gradients of its uses are added from the last to the first.
TEST(GraphTest, GradientsOfAValueAreAddedInOrder) {
  const auto graph_of = [](const std::vector<std::string>& names) {
    GraphBuilder graph(kOneField);
    Value sum;
    for (const std::string& name : names) {
      const Value y = Linear(&graph, name, Square())(graph.Embeddings());
      sum = sum.node < 0 ? y : graph.Add(sum, y);
    }
    return std::move(graph).Finish(sum);
  };
  const Graph all = graph_of({"a", "b", "c"});
  ExpectGradients(all);
  // Weights are keyed by name, so each map alone has the gradient that it has among the three.
  const auto de = [&](const Graph& graph) {
    return TrainOnce<float>(graph, CpuRewrites::kAll, 5, /*noise=*/0).de;
  };
  const std::vector<float> found = de(all);
  const std::vector<float> a = de(graph_of({"a"}));
  const std::vector<float> b = de(graph_of({"b"}));
  const std::vector<float> c = de(graph_of({"c"}));
  int other_order = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i], a[i] + (b[i] + c[i])) << i;
    other_order += found[i] != (a[i] + b[i]) + c[i];
  }
  EXPECT_GT(other_order, 0);
}

// A block applied three times with the same parameters.
TEST(GraphTest, GradientsOfSharedParameters) {
  GraphBuilder graph(kOneField);
  const Layer map = Linear(&graph, "map", Square());
  const Layer norm = Norm(&graph, "norm", LayerNorm(kFeatures));
  Value x = graph.Embeddings();
  for (int i = 0; i < 3; ++i) x = norm(graph.Add(x, map(x)));
  const Graph iterated = std::move(graph).Finish(x);
  EXPECT_EQ(iterated.parameter_uses(0), 3);
  ExpectGradients(iterated);
  ExpectGradients(iterated, {.rewrites = CpuRewrites::kNone});
}

// E is read between the map and the sum, and its gradients would be added in another order.
TEST(RewritesTest, KeepTheOrderOfGradients) {
  GraphBuilder graph(kOneField);
  std::vector<Value> y;
  for (const char* name : {"a", "b", "c"}) {
    y.push_back(Linear(&graph, name, Square())(graph.Embeddings()));
  }
  const Value sum = graph.Add(y[1], y[0]);
  const Value end = graph.Add(sum, y[2]);
  const Graph three = std::move(graph).Finish(end);
  EXPECT_EQ(FuseResidualIntoLinear(three).size(), three.size() - 1);  // c alone
  EXPECT_EQ(TrainOnce<float>(three, CpuRewrites::kAll, 5),
            TrainOnce<float>(three, CpuRewrites::kNone, 5));
}

class GraphOfModelTest : public testing::TestWithParam<ModelCase> {
 protected:
  const Graph graph_ = GetParam().graph();
};

TEST_P(GraphOfModelTest, RewritesChangeNoBit) {
  EXPECT_EQ(TrainOnce<float>(graph_, CpuRewrites::kAll, 21),
            TrainOnce<float>(graph_, CpuRewrites::kNone, 21));
}

// What is made once more on the way back has the bits that it had, in less memory.
TEST_P(GraphOfModelTest, RecomputationChangesNoBit) {
  TestModel model = GetParam();
  ModelConfig& config = model.config;
  if (!config.has_rank_elastor() && !config.has_rank_mixer() && !config.has_matrix_thinker()) {
    GTEST_SKIP();
  }
  const auto graph_of = [&](bool recompute) {
    const auto set = [&](auto* refined) {
      refined->set_iterations(4);
      refined->set_recompute(recompute);
    };
    if (config.has_rank_elastor()) set(config.mutable_rank_elastor());
    if (config.has_rank_mixer()) set(config.mutable_rank_mixer());
    if (config.has_matrix_thinker()) set(config.mutable_matrix_thinker());
    return model.graph();
  };
  const Graph kept = graph_of(false);
  const Graph recomputed = graph_of(true);
  for (const CpuRewrites rewrites : {CpuRewrites::kAll, CpuRewrites::kNone}) {
    EXPECT_EQ(TrainOnce<float>(recomputed, rewrites, 21), TrainOnce<float>(kept, rewrites, 21));
  }
  EXPECT_LT(CpuExecutor<float>(recomputed).workspace_plan().elements_per_panel,
            CpuExecutor<float>(kept).workspace_plan().elements_per_panel);
}

// Leaves of other lengths than a panel's, absent ones, and half of a batch.
TEST_P(GraphOfModelTest, APassOfSeveralLeavesHasTheBitsOfPassesOfOne) {
  if (graph_.needs_whole_leaf() || graph_.shares_parameters()) {
    EXPECT_DEATH(TrainNode<float>(graph_, CpuRewrites::kAll, {0, 2, 4}, {0, 2}), "1u");
    return;
  }
  const std::vector<int64_t> offsets = {0, 17, 20, 20, 36, 36, 36, 69, 70};
  for (const Range& node : {Range{0, 8}, Range{0, 4}, Range{4, 8}, Range{2, 4}}) {
    const Passed<float> expected = TrainLeafByLeaf<float>(graph_, offsets, node);
    EXPECT_EQ(TrainNode<float>(graph_, CpuRewrites::kAll, offsets, node), expected);
    EXPECT_EQ(TrainNode<double>(graph_, CpuRewrites::kAll, offsets, node),
              TrainLeafByLeaf<double>(graph_, offsets, node));
    const std::vector<int64_t> one_leaf = {0, offsets[node.end]};
    if (node.begin == 0) {
      EXPECT_NE(TrainNode<float>(graph_, CpuRewrites::kAll, one_leaf, {0, 1}).gradients,
                expected.gradients)
          << "the test cannot fail";
    }
  }
}

TEST_P(GraphOfModelTest, PerSampleGradientsSumToTheBatchs) {
  if (graph_.needs_whole_leaf()) {
    EXPECT_EQ(CheckPerSampleGradients(graph_).message(),
              "per-sample gradients: the model has batch norm, whose rows have no gradients of "
              "their own");
    return;
  }
  ASSERT_TRUE(CheckPerSampleGradients(graph_).ok());
  constexpr int64_t kRows = 5;
  constexpr double kTolerance = 1e-13;  // sums of five doubles near 1
  const FeatureShape& features = graph_.features();
  const int64_t size = graph_.parameters().flat_size();
  CpuExecutor<double> executor(graph_);
  std::vector<double> weights(size);
  graph_.parameters().Initialize(/*seed=*/3, weights.data());
  executor.Prepare(weights.data());
  const std::vector<float> numeric =
      RandomNumbers<float>(kRows * features.numeric_fields, /*seed=*/12);
  const std::vector<int32_t> lengths = SequenceLengths(features, kRows);
  const std::vector<double> e =
      RandomNumbers<double>(kRows * features.embedding_features(), /*seed=*/4);
  Workspace<double> workspace(executor.workspace_plan(), kRows);
  StoringSink<double> sink(&graph_.parameters());
  const auto gradient = [&](int64_t first, int64_t rows) {
    std::vector<double> flat(size);
    Pass<double> pass;
    pass.workspace = &workspace;
    pass.sink = &sink;
    pass.leaves = PassLeaves(rows);
    pass.training = true;
    pass.numeric = numeric.data() + first * features.numeric_fields;
    pass.lengths = lengths.data() + first * features.encoded_sequences();
    pass.first_row = first;
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t f = 0; f < features.embedding_features(); ++f) {
        executor.Embeddings(pass).At(row, f) = e[(first + row) * features.embedding_features() + f];
      }
    }
    executor.Forward(pass);
    const Panels<double> dlogits = executor.LogitGradients(pass);
    for (int64_t row = 0; row < dlogits.panels() * kPanelRows; ++row) {
      for (int64_t f = 0; f < graph_.outputs(); ++f) dlogits.At(row, f) = row < rows ? 1 : 0;
    }
    sink.Begin(flat.data());
    executor.Backward(pass);
    return flat;
  };
  std::vector<double> sum(size);
  for (int64_t row = 0; row < kRows; ++row) {
    const std::vector<double> one = gradient(row, 1);
    for (int64_t i = 0; i < size; ++i) sum[i] += one[i];
  }
  const std::vector<double> batch = gradient(0, kRows);
  for (int64_t i = 0; i < size; ++i) {
    ASSERT_NEAR(sum[i], batch[i], kTolerance * std::max(1.0, std::abs(batch[i]))) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(All, GraphOfModelTest, testing::ValuesIn(ModelCases()),
                         [](const auto& info) { return info.param.name; });

TEST(PlaceBuffersTest, BuffersThatLiveAtOnceDoNotOverlap) {
  std::mt19937 random(1);
  for (int round = 0; round < 50; ++round) {
    std::vector<BufferLife> lives;
    std::vector<int64_t> bytes;
    for (int i = 0; i < 20; ++i) {
      const int first = static_cast<int>(random() % 30);
      lives.push_back({1, first, first + static_cast<int>(random() % 8)});
      bytes.push_back(static_cast<int64_t>(random() % 1000));
    }
    const BufferPlacement placement = PlaceBuffers(lives, bytes, /*alignment=*/64);
    for (size_t a = 0; a < lives.size(); ++a) {
      EXPECT_EQ(placement.offsets[a] % 64, 0);
      EXPECT_LE(placement.offsets[a] + bytes[a], placement.total);
      for (size_t b = 0; b < a; ++b) {
        const bool together = lives[a].first <= lives[b].last && lives[b].first <= lives[a].last;
        const bool overlap = placement.offsets[a] < placement.offsets[b] + bytes[b] &&
                             placement.offsets[b] < placement.offsets[a] + bytes[a];
        EXPECT_FALSE(together && overlap) << a << " and " << b;
      }
    }
  }
}

// A chain of maps needs what its backward pass reads, and no more than two gradients at once.
TEST(ScheduleTest, MemoryIsSharedOnTheWayBack) {
  constexpr int kMaps = 10;
  GraphBuilder graph(kOneField);
  Value x = graph.Embeddings();
  LinearOp op = Square();
  op.activation = Activation::kIdentity;
  for (int i = 0; i < kMaps; ++i) x = Linear(&graph, IndexedName("map", i), op)(x);
  const Graph chain = std::move(graph).Finish(x);
  const int64_t buffer = ActivationsPerPanel(kFeatures);
  // E and kMaps outputs live at the end of the forward pass, with the last output's gradient; then
  // a gradient may lie where an output has been.
  EXPECT_LE(CpuExecutor<float>(chain).workspace_plan().elements_per_panel, (kMaps + 3) * buffer);
}

// Slices of E lie in E, and on the way back each is added to one gradient, in place.
TEST(ScheduleTest, SlicesShareMemoryBothWays) {
  GraphBuilder graph(kOneField);
  std::vector<Value> slices;
  for (const int64_t first : {0, 2, 3}) {
    SliceOp op;
    op.width = kFeatures;
    op.first_column = first;
    op.slice = {1, 3};
    slices.push_back(graph.Apply(op, graph.Embeddings()));
  }
  const Value sum = graph.Add(graph.Add(slices[0], slices[1]), slices[2]);
  const Graph slicing = std::move(graph).Finish(sum);
  std::vector<KernelTraits> traits(slicing.size());
  for (const Value slice : slices) {
    traits[slice.node] = {
        .repeats_input = true,
        .first_repeated = std::get<SliceOp>(slicing[slice.node].op).first_feature(),
        .adds_addend = true};
  }
  traits[sum.node - 1].in_place_inputs = traits[sum.node].in_place_inputs = 2;
  const Schedule schedule = MakeSchedule(slicing, traits);
  const BufferView de = schedule.nodes[0].doutput;
  for (const Value slice : slices) {
    const NodeSchedule& node = schedule.nodes[slice.node];
    EXPECT_EQ(node.output.buffer, schedule.nodes[0].output.buffer);
    EXPECT_EQ(node.output.first_feature, traits[slice.node].first_repeated);
    EXPECT_EQ(node.dinputs[0].buffer, de.buffer);
    EXPECT_EQ(node.addends[0].buffer, slice.node == slices.back().node ? -1 : de.buffer);
    EXPECT_TRUE(node.sums.empty());
  }
  // The sums may not lie over a slice: that is E's memory.
  EXPECT_NE(schedule.nodes[sum.node - 1].output.buffer, schedule.nodes[0].output.buffer);
}

// A kernel that reads all its inputs may say so by any number that is large enough. This one is so
// large that it reaches beyond the process's memory.
TEST(ScheduleTest, TraitsMayNameMoreInputsThanThereAre) {
  GraphBuilder graph(kOneField);
  LinearOp op = Square();
  op.activation = Activation::kIdentity;
  graph.BeginSegment();
  Value x = graph.Embeddings();
  for (int i = 0; i < 3; ++i) x = Linear(&graph, IndexedName("map", i), op)(x);
  graph.EndSegment();
  const Graph chain = std::move(graph).Finish(x);
  const auto lives = [&](int inputs) {
    std::vector<KernelTraits> traits(chain.size(),
                                     {.in_place_inputs = inputs, .reads_inputs = inputs});
    std::vector<std::vector<int64_t>> result;
    for (const BufferLife& life : MakeSchedule(chain, traits).buffers) {
      result.push_back({life.features, life.first, life.last});
    }
    return result;
  };
  EXPECT_EQ(lives(1 << 30), lives(1));
  EXPECT_NE(lives(0), lives(1));
}

}  // namespace
}  // namespace elastor
