#include "trainer/step/dense_optimizer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace elastor {
namespace {

constexpr double kLearningRate = 0.1;
constexpr double kScale = 0.5;
constexpr double kDenseL2 = 0.25;
constexpr double kEmbeddingL2 = 0.125;
constexpr double kDecoupledDecay = 0.375;

// One parameter of every kind of decay and a statistic across a block's end, in two buckets.
struct Layout {
  Layout() {
    weights = layout.Declare("weights", {1000}, Init{}, Decay::kDense);
    statistic = layout.DeclareStatistic("statistic", {100}, 0);
    bias = layout.Declare("bias", {7}, Init{}, Decay::kNone);
    vectors = layout.Declare("vectors", {2, 5}, Init{}, Decay::kEmbedding);
    layout.Finish();
  }
  ParameterLayout layout{/*bucket_elements=*/1024};
  bool IsIn(int parameter, int64_t i) const {
    return i >= layout[parameter].offset && i < layout[parameter].offset + layout[parameter].size;
  }
  int weights, statistic, bias, vectors;
};

double LambdaAt(const Layout& l, int64_t i) {
  if (l.IsIn(l.weights, i)) return kDenseL2;
  return l.IsIn(l.vectors, i) ? kEmbeddingL2 : 0;
}

double WeightAt(int64_t i) { return 0.01 * static_cast<double>(i % 13) - 0.05; }
double GradientAt(int64_t i) { return 0.02 * static_cast<double>(i % 7) - 0.03; }

DenseOptimizerOptions Options(OptimizerKind kind) {
  DenseOptimizerOptions options;
  options.rule.kind = kind;
  options.rule.initial_accumulator = 0.1;
  options.dense_l2 = kDenseL2;
  options.embedding_l2 = kEmbeddingL2;
  options.decoupled_decay = kDecoupledDecay;
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

// The formulas of torch.optim, one element, two steps with the same gradient of the data. decay:
// the lambda of decoupled decay (torch.optim.AdamW), which the gradient does not know.
double TwoSteps(OptimizerKind kind, double w, double data_gradient, double lambda, double decay) {
  double m = 0, v = kind == OptimizerKind::kAdagrad ? 0.1 : 0;
  for (int step = 1; step <= 2; ++step) {
    const double g = kScale * (data_gradient + lambda * w);
    w *= 1 - kLearningRate * decay;
    if (kind == OptimizerKind::kSgd) {
      w -= kLearningRate * g;
    } else if (kind == OptimizerKind::kAdagrad) {
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

class DenseOptimizerTest : public testing::TestWithParam<OptimizerKind> {};

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
      if (l.IsIn(l.statistic, i)) continue;
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
    // A statistic keeps 0.9^2 of what it was, whatever rule, rate and scale are.
    const double expected = l.IsIn(l.statistic, i)
                                ? 0.81 * WeightAt(i) + 0.19 * GradientAt(i)
                                : TwoSteps(GetParam(), WeightAt(i), GradientAt(i), LambdaAt(l, i),
                                           l.IsIn(l.weights, i) ? kDecoupledDecay : 0);
    ASSERT_NEAR(weights[i], expected, 1e-12) << i;
  }
}

// w = 1, g = 2, AdamW with learning rate 1/8 and lambda 4: (1 - 4/8) w, less Adam's first step,
// which is the learning rate whatever g is. Coupled, the step would be that alone.
TEST(DecoupledDecayTest, ByHand) {
  ParameterLayout layout;
  layout.Declare("weight", {1}, Init{}, Decay::kDense);
  layout.Declare("gain", {1}, Init{}, Decay::kNone);
  layout.Declare("vector", {1}, Init{}, Decay::kEmbedding);
  layout.Finish();
  ThreadPool pool(1);
  const auto buckets = layout.buckets();
  DenseOptimizerOptions options;
  options.rule.kind = OptimizerKind::kDenseAdam;
  options.decoupled_decay = 4;
  DenseOptimizer<double> optimizer(options, layout, buckets, &pool);
  std::vector<double> weights(layout.flat_size(), 1);
  std::fill_n(optimizer.gradient(0), layout.flat_size(), 2);
  ExactSum norm, penalty;
  optimizer.AddL2(weights.data(), &norm, &penalty);
  EXPECT_EQ(norm.Value(), 4.0 * static_cast<double>(layout.flat_size()));
  EXPECT_EQ(penalty.Value(), 0);
  optimizer.Update(/*scale=*/1, /*learning_rate=*/0.125, /*step=*/1, weights.data());
  constexpr double kEpsilonsPart = 1e-8;
  EXPECT_NEAR(weights[layout[0].offset], 0.375, kEpsilonsPart);
  EXPECT_NEAR(weights[layout[1].offset], 0.875, kEpsilonsPart);
  EXPECT_NEAR(weights[layout[2].offset], 0.875, kEpsilonsPart);
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
                         ExactSum* norm, ExactSum* penalty, std::vector<float>* slots) {
    *weights = MakeWeights<float>(l.layout);
    for (const std::vector<Range>& slices : parts) {
      DenseOptimizer<float> optimizer(Options(GetParam()), l.layout, slices, &pool);
      FillGradients(slices, &optimizer);
      optimizer.AddL2(weights->data(), norm, penalty);
      optimizer.Update(kScale, kLearningRate, 1, weights->data());
      // In the places of the whole array, slot after slot.
      slots->resize(optimizer.slots() * second_end);
      for (size_t b = 0; b < slices.size(); ++b) {
        for (int64_t slot = 0; slot < optimizer.slots(); ++slot) {
          float* const place = slots->data() + slot * second_end + slices[b].begin;
          optimizer.CopySlot(slot, static_cast<int>(b), place);
        }
      }
    }
  };
  std::vector<float> whole, sliced;
  ExactSum whole_norm, whole_penalty, norm, penalty;
  std::vector<float> whole_slots, slots;
  train({{buckets.begin(), buckets.end()}}, &whole, &whole_norm, &whole_penalty, &whole_slots);
  train(ranks, &sliced, &norm, &penalty, &slots);
  EXPECT_EQ(whole, sliced);
  EXPECT_EQ(whole_norm.Value(), norm.Value());
  EXPECT_EQ(whole_penalty.Value(), penalty.Value());
  EXPECT_EQ(whole_slots, slots);
  EXPECT_EQ(slots.empty(), GetParam() == OptimizerKind::kSgd);
}

// An optimizer whose slots were set goes on as the one they are of; reset, as a new one.
TEST_P(DenseOptimizerTest, SlotsAreTheState) {
  const Layout l;
  ThreadPool pool(1);
  const auto buckets = l.layout.buckets();
  const std::vector<Range> slices(buckets.begin(), buckets.end());
  DenseOptimizer<float> first(Options(GetParam()), l.layout, slices, &pool);
  DenseOptimizer<float> second(Options(GetParam()), l.layout, slices, &pool);
  const auto step = [&](DenseOptimizer<float>* optimizer, int64_t number) {
    std::vector<float> weights = MakeWeights<float>(l.layout);
    FillGradients(slices, optimizer);
    optimizer->Update(kScale, kLearningRate, number, weights.data());
    return weights;
  };
  const std::vector<float> fresh = step(&first, 1);
  std::vector<float> slot(l.layout.flat_size());
  for (int b = 0; b < 2; ++b) {
    for (int64_t i = 0; i < first.slots(); ++i) {
      first.CopySlot(i, b, slot.data());
      second.SetSlot(i, b, slot.data());
    }
  }
  EXPECT_EQ(step(&first, 2), step(&second, 2));
  first.ResetSlots();
  EXPECT_EQ(step(&first, 1), fresh);
}

INSTANTIATE_TEST_SUITE_P(Rules, DenseOptimizerTest,
                         testing::Values(OptimizerKind::kSgd, OptimizerKind::kAdagrad,
                                         OptimizerKind::kDenseAdam));

}  // namespace
}  // namespace elastor
