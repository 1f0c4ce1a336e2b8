#include "trainer/dense_optimizer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace elastor {
namespace {

constexpr double kLearningRate = 0.1;
constexpr double kScale = 0.5;
constexpr double kDenseL2 = 0.25;
constexpr double kEmbeddingL2 = 0.125;

// One parameter of every kind of decay, in two buckets.
struct Layout {
  Layout() {
    weights = layout.Declare("weights", {1100}, Init{}, Decay::kDense);
    bias = layout.Declare("bias", {7}, Init{}, Decay::kNone);
    vectors = layout.Declare("vectors", {2, 5}, Init{}, Decay::kEmbedding);
    layout.Finish();
  }
  ParameterLayout layout{/*bucket_elements=*/1024};
  int weights, bias, vectors;
};

double LambdaAt(const Layout& l, int64_t i) {
  const auto within = [&](int p) {
    return i >= l.layout[p].offset && i < l.layout[p].offset + l.layout[p].size;
  };
  if (within(l.weights)) return kDenseL2;
  return within(l.vectors) ? kEmbeddingL2 : 0;
}

double WeightAt(int64_t i) { return 0.01 * static_cast<double>(i % 13) - 0.05; }
double GradientAt(int64_t i) { return 0.02 * static_cast<double>(i % 7) - 0.03; }

DenseOptimizerOptions Options(SparseOptimizerKind kind) {
  DenseOptimizerOptions options;
  options.rule.kind = kind;
  options.rule.initial_accumulator = 0.1;
  options.dense_l2 = kDenseL2;
  options.embedding_l2 = kEmbeddingL2;
  return options;
}

template <typename T>
void FillGradients(const std::vector<Range>& slices, DenseOptimizer<T>* optimizer) {
  for (size_t b = 0; b < slices.size(); ++b) {
    for (int64_t i = 0; i < slices[b].size(); ++i) {
      optimizer->gradient(static_cast<int>(b))[i] = static_cast<T>(GradientAt(slices[b].begin + i));
    }
  }
}

template <typename T>
std::vector<T> MakeWeights(const ParameterLayout& layout) {
  std::vector<T> weights(layout.flat_size());
  for (size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<T>(WeightAt(i));
  return weights;
}

// The formulas of torch.optim, one element, two steps with the same gradient of the data.
double TwoSteps(SparseOptimizerKind kind, double w, double data_gradient, double lambda) {
  double m = 0, v = kind == SparseOptimizerKind::kAdagrad ? 0.1 : 0;
  for (int step = 1; step <= 2; ++step) {
    const double g = kScale * (data_gradient + lambda * w);
    if (kind == SparseOptimizerKind::kSgd) {
      w -= kLearningRate * g;
    } else if (kind == SparseOptimizerKind::kAdagrad) {
      v += g * g;
      w -= kLearningRate * g / (std::sqrt(v) + 1e-8);
    } else {
      m = 0.9 * m + 0.1 * g;
      v = 0.999 * v + 0.001 * g * g;
      const double corrected = std::sqrt(v / (1 - std::pow(0.999, step)));
      w -= kLearningRate * (m / (1 - std::pow(0.9, step))) / (corrected + 1e-8);
    }
  }
  return w;
}

class DenseOptimizerTest : public testing::TestWithParam<SparseOptimizerKind> {};

TEST_P(DenseOptimizerTest, MatchesTheFormulas) {
  const Layout l;
  ThreadPool pool(2);
  const auto buckets = l.layout.buckets();
  const std::vector<Range> slices(buckets.begin(), buckets.end());
  ASSERT_EQ(slices.size(), 2u);
  DenseOptimizer<double> optimizer(Options(GetParam()), l.layout, slices, &pool);
  std::vector<double> weights = MakeWeights<double>(l.layout);
  for (int step = 1; step <= 2; ++step) {
    FillGradients(slices, &optimizer);
    double expected_norm = 0, expected_penalty = 0;
    for (int64_t i = 0; i < l.layout.flat_size(); ++i) {
      const double lambda = LambdaAt(l, i);
      expected_norm += std::pow(GradientAt(i) + lambda * weights[i], 2);
      expected_penalty += 0.5 * lambda * weights[i] * weights[i];
    }
    ExactSum norm, penalty;
    optimizer.AddL2(weights.data(), &norm, &penalty);
    EXPECT_NEAR(norm.Value(), expected_norm, 1e-12);
    EXPECT_NEAR(penalty.Value(), expected_penalty, 1e-12);
    optimizer.Update(kScale, kLearningRate, step, weights.data());
  }
  for (int64_t i = 0; i < l.layout.flat_size(); ++i) {
    const double expected = TwoSteps(GetParam(), WeightAt(i), GradientAt(i), LambdaAt(l, i));
    ASSERT_NEAR(weights[i], expected, 1e-12) << i;
  }
}

// Slices of three ranks, one of them empty in the second bucket, against one rank's.
TEST_P(DenseOptimizerTest, SlicesGiveTheBitsOfTheWhole) {
  const Layout l;
  ThreadPool pool(1);
  const auto buckets = l.layout.buckets();
  const int64_t first_end = buckets[0].end;
  const int64_t second_end = buckets[1].end;
  const std::vector<std::vector<Range>> ranks = {
      {{0, 1024}, {first_end, first_end}},
      {{1024, first_end}, {first_end, first_end}},
      {{first_end, first_end}, {first_end, second_end}},
  };
  const auto train = [&](const std::vector<std::vector<Range>>& parts, std::vector<float>* weights,
                         ExactSum* norm, ExactSum* penalty, Digest* digest) {
    *weights = MakeWeights<float>(l.layout);
    for (const std::vector<Range>& slices : parts) {
      DenseOptimizer<float> optimizer(Options(GetParam()), l.layout, slices, &pool);
      FillGradients(slices, &optimizer);
      optimizer.AddL2(weights->data(), norm, penalty);
      optimizer.Update(kScale, kLearningRate, 1, weights->data());
      optimizer.AddToDigest(weights->data(), digest);
    }
  };
  std::vector<float> whole, sliced;
  ExactSum whole_norm, whole_penalty, norm, penalty;
  Digest whole_digest, digest;
  train({{buckets.begin(), buckets.end()}}, &whole, &whole_norm, &whole_penalty, &whole_digest);
  train(ranks, &sliced, &norm, &penalty, &digest);
  EXPECT_EQ(whole, sliced);
  EXPECT_EQ(whole_norm.Value(), norm.Value());
  EXPECT_EQ(whole_penalty.Value(), penalty.Value());
  EXPECT_EQ(whole_digest, digest);
}

// Two states with equal weights and unequal slots are unequal; SGD has no slots.
TEST_P(DenseOptimizerTest, DigestHoldsTheSlots) {
  const Layout l;
  ThreadPool pool(1);
  const auto buckets = l.layout.buckets();
  const std::vector<Range> slices(buckets.begin(), buckets.end());
  DenseOptimizer<float> optimizer(Options(GetParam()), l.layout, slices, &pool);
  std::vector<float> weights = MakeWeights<float>(l.layout);
  const std::vector<float> before = weights;
  Digest fresh, used;
  optimizer.AddToDigest(before.data(), &fresh);
  FillGradients(slices, &optimizer);
  optimizer.Update(kScale, kLearningRate, 1, weights.data());
  optimizer.AddToDigest(before.data(), &used);
  EXPECT_EQ(fresh == used, GetParam() == SparseOptimizerKind::kSgd);
}

INSTANTIATE_TEST_SUITE_P(Rules, DenseOptimizerTest,
                         testing::Values(SparseOptimizerKind::kSgd, SparseOptimizerKind::kAdagrad,
                                         SparseOptimizerKind::kDenseAdam));

}  // namespace
}  // namespace elastor
