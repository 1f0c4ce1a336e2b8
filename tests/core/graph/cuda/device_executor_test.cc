#include "core/graph/cuda/device_executor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "core/graph/per_sample.h"
#include "tests/core/graph/cuda/device_run.h"
#include "tests/core/models/model_cases.h"

namespace elastor::cuda {
namespace {

constexpr uint64_t kSeed = 11;
constexpr int64_t kLeafRows = 7;

// Largest difference beside the largest value of a tensor. Float: a few dozen roundings of 6e-8,
// magnified by norms over 4 to 20 features of unlike sizes.
constexpr double kFloatBound = 5e-5;
// Root mean squares of difference and tensor. Both have some 30 roundings between E and a gradient
// (of 2^-10 and 2^-9; TF32 truncates in the emulation), which add up like a random walk and are
// magnified by norms and by sums over rows that cancel.
constexpr double kTf32Bound = 4e-2;
constexpr double kBFloat16Bound = 1.2e-1;
// Of 25 rows: whose ReLUs may fall on the other side when products are rounded.
constexpr int kMostFlippedRows = 4;

double LargestDifference(const std::vector<double>& a, const std::vector<double>& b) {
  CHECK_EQ(a.size(), b.size());
  double largest = 0;
  double difference = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    largest = std::max(largest, std::abs(b[i]));
    difference = std::max(difference, std::abs(a[i] - b[i]));
    if (std::isnan(a[i])) difference = INFINITY;
  }
  return largest > 0 ? difference / largest : difference;
}

double RootMeanSquareDifference(const std::vector<double>& a, const std::vector<double>& b) {
  CHECK_EQ(a.size(), b.size());
  double square = 0;
  double difference = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    square += b[i] * b[i];
    difference += (a[i] - b[i]) * (a[i] - b[i]);
  }
  return square > 0 ? std::sqrt(difference / square) : std::sqrt(difference);
}

// Sums over leaves of one parameter; of a single number every leaf's, which may cancel.
std::vector<double> Gradient(const PassResult& result, const ParameterInfo& parameter) {
  std::vector<double> sum(parameter.size);
  std::vector<double> leaves;
  for (const std::vector<double>& leaf : result.gradients) {
    if (leaf.empty()) continue;
    for (int64_t i = 0; i < parameter.size; ++i) sum[i] += leaf[parameter.offset + i];
    leaves.push_back(leaf[parameter.offset]);
  }
  return parameter.size == 1 ? leaves : sum;
}

template <typename Difference>
void ExpectNear(const PassResult& device, const PassResult& host, const elastor::Graph& graph,
                const Difference& difference, double bound) {
  ASSERT_FALSE(host.logits.empty());
  ASSERT_EQ(host.probes.size(), graph.probes().size());
  ASSERT_EQ(device.probes.size(), host.probes.size());
  ASSERT_EQ(device.gradients.size(), host.gradients.size());
  EXPECT_LE(difference(device.logits, host.logits), bound) << "logits";
  for (size_t p = 0; p < host.probes.size(); ++p) {
    EXPECT_LE(difference(device.probes[p], host.probes[p]), bound) << graph.probes()[p].name;
  }
  EXPECT_LE(difference(device.embedding_gradients, host.embedding_gradients), bound) << "dE";
  if (device.gradients.empty()) return;
  for (const ParameterInfo& p : graph.parameters().parameters()) {
    EXPECT_LE(difference(Gradient(device, p), Gradient(host, p)), bound) << p.name;
  }
}

DeviceModelOptions Options(Precision precision, int64_t leaf_rows, int64_t leaves = 4) {
  DeviceModelOptions options;
  options.precision = precision;
  options.seed = kSeed;
  options.canonical_leaves = leaves;
  options.canonical_rows = leaves * leaf_rows;
  return options;
}

class DeviceExecutorTest : public testing::TestWithParam<ModelCase> {
 protected:
  LeafBatch Batch(std::vector<int32_t> counts, int64_t leaf_rows) const {
    return MakeLeafBatch(graph_, std::move(counts), leaf_rows);
  }
  PassResult RunOnCpu(const LeafBatch& batch, bool training = true) const {
    return RunOnHost(graph_, weights_, batch, kSeed, training);
  }
  template <typename A>
  PassResult Run(const LeafBatch& batch, int64_t begin, int64_t count, Precision precision,
                 bool training = true, DeviceRewrites rewrites = DeviceRewrites::kAll) {
    const int64_t leaves = std::max<int64_t>(4, batch.leaves());
    DeviceRun<A> run(graph_, weights_, batch, begin, count,
                     Options(precision, batch.leaf_rows, leaves), rewrites);
    run.Enqueue(training);
    return run.Result(training);
  }

  // The suite runs once a schedule.
  static void SetUpTestSuite() { all_leaves_.clear(); }
  // Of absent_leaf_ in one call.
  const PassResult& AllLeaves() {
    const auto [found, is_new] = all_leaves_.try_emplace(GetParam().name);
    if (is_new) found->second = Run<float>(absent_leaf_, 0, 4, Precision::kFloat32);
    return found->second;
  }

  const elastor::Graph graph_ = GetParam().graph();
  const std::vector<float> weights_ = MakeWeights(graph_.parameters());

  // Four leaves, of which the third is absent.
  const LeafBatch absent_leaf_ = Batch({7, 6, 0, 5}, kLeafRows);

 private:
  static inline std::map<std::string, PassResult> all_leaves_;
};

TEST_P(DeviceExecutorTest, EqualsTheHosts) {
  const PassResult host = RunOnCpu(absent_leaf_);
  PassResult device = AllLeaves();
  device.gradients[2].clear();
  ExpectNear(device, host, graph_, LargestDifference, kFloatBound);
}

// Of more rows than two chunks of the column sums have.
TEST_P(DeviceExecutorTest, LongLeaves) {
  const LeafBatch batch = Batch({35, 34}, /*leaf_rows=*/35);
  const PassResult host = RunOnCpu(batch);
  ExpectNear(Run<float>(batch, 0, 2, Precision::kFloat32), host, graph_, LargestDifference,
             kFloatBound);
}

// A row for which a ReLU falls on the other side has another gradient: such rows are found by dE,
// which shows it less than a bias may, and left out. Pixels have no dE, so those of images stay in.
TEST_P(DeviceExecutorTest, RoundedProducts) {
  const auto check = [&]<typename A>(A, Precision precision, double bound) {
    if (graph_.features().image.pixels() > 0) bound *= 1.5;
    LeafBatch batch = Batch({7, 6, 7, 5}, kLeafRows);
    const auto host = [&] { return RunOnCpu(batch); };
    const auto device = [&] { return Run<A>(batch, 0, 4, precision); };
    PassResult exact = host();
    PassResult rounded = device();
    int flipped = 0;
    for (int64_t row = 0; row < batch.rows(); ++row) {
      const auto part = [&](const PassResult& result) {
        const auto begin =
            result.embedding_gradients.begin() + row * graph_.features().embedding_features();
        return std::vector<double>(begin, begin + graph_.features().embedding_features());
      };
      if (RootMeanSquareDifference(part(rounded), part(exact)) <= bound / 1.1) continue;
      std::fill_n(batch.dlogits.begin() + row * graph_.outputs(), graph_.outputs(), 0.0f);
      ++flipped;
    }
    EXPECT_LE(flipped, kMostFlippedRows);
    if (flipped > 0) {
      exact = host();
      rounded = device();
    }
    ExpectNear(rounded, exact, graph_, RootMeanSquareDifference, bound);
  };
  check(float{}, Precision::kTf32, kTf32Bound);
  check(BFloat16{}, Precision::kBFloat16, kBFloat16Bound);
}

// Running statistics, no dropout.
TEST_P(DeviceExecutorTest, EvaluationEqualsTheHosts) {
  const LeafBatch batch = Batch({7, 6, 7, 5}, kLeafRows);
  const PassResult host = RunOnCpu(batch, /*training=*/false);
  const PassResult device = Run<float>(batch, 0, 4, Precision::kFloat32, /*training=*/false);
  ExpectNear(device, host, graph_, LargestDifference, kFloatBound);
  // Rows of other leaves beside it do not matter for a row.
  const LeafBatch one_leaf = Batch({25}, /*leaf_rows=*/25);
  EXPECT_EQ(Run<float>(one_leaf, 0, 1, Precision::kFloat32, /*training=*/false).logits,
            device.logits);
}

// Training batches of at most 4 rows: an evaluation has more, and its rows count.
TEST_P(DeviceExecutorTest, EvaluationMayBeLargerThanTraining) {
  const LeafBatch batch = Batch({7, 6, 7, 5}, kLeafRows);
  DeviceRun<float> run(graph_, weights_, batch, 0, 4, Options(Precision::kFloat32, 1));
  run.Enqueue(/*training=*/false);
  const PassResult expected = Run<float>(batch, 0, 4, Precision::kFloat32, /*training=*/false);
  EXPECT_EQ(run.Result(/*training=*/false).logits, expected.logits);
}

TEST_P(DeviceExecutorTest, LeavesOfACallDoNotMatter) {
  const PassResult& all = AllLeaves();
  PassResult parts;
  for (const auto& [begin, count] : {std::pair(0, 1), std::pair(1, 2), std::pair(3, 1)}) {
    const PassResult part = Run<float>(absent_leaf_, begin, count, Precision::kFloat32);
    const auto append = [](const auto& from, auto* to) {
      to->insert(to->end(), from.begin(), from.end());
    };
    append(part.logits, &parts.logits);
    append(part.embedding_gradients, &parts.embedding_gradients);
    append(part.gradients, &parts.gradients);
  }
  EXPECT_EQ(parts.logits, all.logits);
  EXPECT_EQ(parts.embedding_gradients, all.embedding_gradients);
  for (int64_t leaf : {0, 1, 3}) EXPECT_EQ(parts.gradients[leaf], all.gradients[leaf]) << leaf;
}

TEST_P(DeviceExecutorTest, PaddingHasNoGradient) {
  const LeafBatch batch = Batch({4, 7}, kLeafRows);
  DeviceRun<float> run(graph_, weights_, batch, 0, 2, Options(Precision::kFloat32, kLeafRows));
  run.Enqueue(/*training=*/true);
  const std::vector<double> de = run.DeviceEmbeddingGradients();
  for (int64_t device_row = 4; device_row < kLeafRows; ++device_row) {
    for (int64_t f = 0; f < graph_.features().embedding_features(); ++f) {
      EXPECT_EQ(de[device_row * graph_.features().embedding_features() + f], 0)
          << device_row << ", " << f;
    }
  }
}

// A captured pass gives what a plain one does, and reads the step's number where it lies.
TEST_P(DeviceExecutorTest, CapturedPass) {
  const LeafBatch batch = Batch({7, 6}, kLeafRows);
  DeviceRun<float> run(graph_, weights_, batch, 0, 2, Options(Precision::kFloat32, kLeafRows));
  const auto plain = [&](uint32_t step) {
    run.SetStep(step);
    run.Enqueue(/*training=*/true);
    return run.Result(/*training=*/true);
  };
  const PassResult first = plain(1);
  const PassResult second = plain(2);
  EXPECT_EQ(first.logits == second.logits, !HasDropout(graph_));
  Graph graph;
  graph.BeginCapture(run.stream());
  run.Enqueue(/*training=*/true);
  graph.EndCapture(run.stream());
  for (const auto& [step, expected] : {std::pair(2u, &second), std::pair(1u, &first)}) {
    run.SetStep(step);
    graph.Launch(run.stream());
    const PassResult captured = run.Result(/*training=*/true);
    EXPECT_EQ(captured.logits, expected->logits);
    EXPECT_EQ(captured.embedding_gradients, expected->embedding_gradients);
    EXPECT_EQ(captured.gradients, expected->gradients);
  }
}

TEST_P(DeviceExecutorTest, RewritesChangeNoBit) {
  const PassResult& rewritten = AllLeaves();
  const PassResult plain =
      Run<float>(absent_leaf_, 0, 4, Precision::kFloat32, /*training=*/true, DeviceRewrites::kNone);
  EXPECT_EQ(rewritten.logits, plain.logits);
  EXPECT_EQ(rewritten.probes, plain.probes);
  EXPECT_EQ(rewritten.embedding_gradients, plain.embedding_gradients);
  EXPECT_EQ(rewritten.gradients, plain.gradients);
}

// Leaves of one row: the gradients are those of single rows.
TEST_P(DeviceExecutorTest, PerSampleGradients) {
  constexpr int64_t kRows = 5;
  if (!CheckPerSampleGradients(graph_).ok()) GTEST_SKIP() << graph_.whole_leaf_op();
  const LeafBatch batch = Batch(std::vector<int32_t>(kRows, 1), /*leaf_rows=*/1);
  const PassResult host = RunOnCpu(batch);
  const PassResult device = Run<float>(batch, 0, kRows, Precision::kFloat32);
  for (int64_t row = 0; row < kRows; ++row) {
    EXPECT_LE(LargestDifference(device.gradients[row], host.gradients[row]), kFloatBound) << row;
  }
}

TEST_P(DeviceExecutorTest, ASmallerPassMovesNothing) {
  Stream stream;
  DeviceExecutor<float> executor(graph_, Options(Precision::kFloat32, kLeafRows), &stream);
  const LeafShape shape = {2, kLeafRows};
  executor.Reserve(shape);
  const float* const logits = executor.Logits();
  const float* const embeddings = executor.Embeddings(shape).data;
  executor.Reserve({1, kLeafRows});
  EXPECT_EQ(executor.Logits(), logits);
  EXPECT_EQ(executor.Embeddings(shape).data, embeddings);
}

INSTANTIATE_TEST_SUITE_P(All, DeviceExecutorTest, testing::ValuesIn(ModelCases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace elastor::cuda
