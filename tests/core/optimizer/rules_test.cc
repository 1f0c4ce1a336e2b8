#include <bit>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/base/floating_point.h"
#include "core/optimizer/adagrad.h"
#include "core/optimizer/adam.h"
#include "core/optimizer/optimizer_options.h"
#include "core/optimizer/row_wise_adagrad.h"
#include "core/optimizer/sgd.h"
#include "core/optimizer/sum_of_squares.h"
#include "gtest/gtest.h"

namespace elastor {
namespace {

constexpr double kTolerance = 1e-15;  // a few rounding errors of double

OptimizerOptions Options(double epsilon) {
  OptimizerOptions options;
  options.epsilon = epsilon;
  return options;
}

TEST(Optimizer, SlotElements) {
  EXPECT_EQ(SlotElements(OptimizerKind::kSgd, 20), 0);
  EXPECT_EQ(SlotElements(OptimizerKind::kAdagrad, 20), 20);
  EXPECT_EQ(SlotElements(OptimizerKind::kRowWiseAdagrad, 20), 1);
  EXPECT_EQ(SlotElements(OptimizerKind::kLazyAdam, 20), 40);
  EXPECT_EQ(SlotElements(OptimizerKind::kDenseAdam, 20), 40);
}

TEST(Optimizer, InitialSlot) {
  for (const auto& [kind, want] :
       {std::pair(OptimizerKind::kSgd, 0.0), std::pair(OptimizerKind::kAdagrad, 0.5),
        std::pair(OptimizerKind::kRowWiseAdagrad, 0.5), std::pair(OptimizerKind::kLazyAdam, 0.0),
        std::pair(OptimizerKind::kDenseAdam, 0.0)}) {
    EXPECT_EQ(InitialSlot({.kind = kind, .initial_accumulator = 0.5}), want);
  }
}

TEST(Sgd, HandComputed) {
  std::vector<double> w = {1, 2};
  const std::vector<double> g = {4, -8};
  Sgd<double>::ForStep({}, 0.25, 1)(2, 0.5, g.data(), w.data(), nullptr);
  EXPECT_EQ(w, (std::vector<double>{0.5, 3}));
}

TEST(Adagrad, HandComputed) {
  // g = 3, a = 7 + 9 = 16: w = 1 - 0.5 * 3 / (4 + 1) = 0.7. g = 0: a stays.
  std::vector<double> w = {1, 2}, a = {7, 4};
  const std::vector<double> g = {6, 0};
  Adagrad<double>::ForStep(Options(1), 0.5, 1)(2, 0.5, g.data(), w.data(), a.data());
  EXPECT_NEAR(w[0], 0.7, kTolerance);
  EXPECT_EQ(w[1], 2);
  EXPECT_EQ(a, (std::vector<double>{16, 4}));
}

TEST(RowWiseAdagrad, HandComputed) {
  // g = (3, 1, 0, 5, 1): mean of g^2 = 36 / 5; a = 1.8 + 7.2 = 9; rate = 0.5 / (3 + 1).
  std::vector<double> w = {1, 1, 1, 1, 1}, a = {1.8};
  const std::vector<double> g = {6, 2, 0, 10, 2};
  RowWiseAdagrad<double>::ForStep(Options(1), 0.5, 1)(5, 0.5, g.data(), w.data(), a.data());
  EXPECT_NEAR(a[0], 9, 4 * kTolerance);
  const double want[] = {0.625, 0.875, 1, 0.375, 0.875};
  for (int i = 0; i < 5; ++i) EXPECT_NEAR(w[i], want[i], kTolerance);
}

TEST(Adam, FirstStepMovesByTheLearningRate) {
  // m / (1 - b1) = g and sqrt(v / (1 - b2)) = |g|: w -= lr * sign(g), up to epsilon.
  std::vector<double> w = {1, 1, 1}, slots(6, 0.0);
  const std::vector<double> g = {3, -0.01, 0};
  Adam<double>::ForStep(Options(0), 0.125, 1)(2, 1.0, g.data(), w.data(), slots.data());
  EXPECT_NEAR(w[0], 0.875, 1e-14);
  EXPECT_NEAR(w[1], 1.125, 1e-14);
  EXPECT_EQ(w[2], 1);  // beyond the row
}

TEST(Adam, SecondStepByHand) {
  // b1 = 0.5, b2 = 0.75. Step 1, g = 2: m = 1, v = 1. Step 2, g = 4: m = 2.5, v = 4.75;
  // bias 1 - 0.25 = 0.75 and 1 - 0.5625 = 0.4375.
  OptimizerOptions options = Options(0.1);
  options.beta1 = 0.5;
  options.beta2 = 0.75;
  std::vector<double> w = {1}, slots = {1, 1};
  const double g = 8;
  Adam<double>::ForStep(options, 0.3, 2)(1, 0.5, &g, w.data(), slots.data());
  EXPECT_EQ(slots, (std::vector<double>{2.5, 4.75}));
  EXPECT_NEAR(w[0], 1 - 0.3 / 0.75 * 2.5 / (std::sqrt(4.75 / 0.4375) + 0.1), 4 * kTolerance);
}

// a b by x86-64's rule: rounded as if exponents had no end, then 0 if below 2^-126.
float FlushedProduct(float a, float b) {
  const double exact = static_cast<double>(a) * static_cast<double>(b);
  if (exact >= 0x1p-126) return static_cast<float>(exact);
  return exact >= 0x1p-126 - 0x1p-151 ? 0x1p-126f : 0.0f;
}

#ifdef __aarch64__
constexpr bool kFlushesBeforeRounding = true;
#else
constexpr bool kFlushesBeforeRounding = false;
#endif

// 10^7 slots go below the least normal number, 10^4 beside it for each of 1000 rates: m's beta is
// about 0.9, v's about 0.999. One slot of some rates passes the window where only rounding gives
// that number.
TEST(Adam, DecayingSlotsFlushAlikeOnEveryMachine) {
  constexpr int kWidth = 10'000, kRates = 1000, kSteps = 3;
  FloatingPoint::Set(FloatingPoint::kCanonical);
  const std::vector<float> no_gradient(kWidth);
  std::vector<float> w(kWidth), slots(2 * kWidth), expected(2 * kWidth);
  int64_t wrong = 0, wrong_plain = 0, left = 0;
  for (int rate = 0; rate < kRates; ++rate) {
    OptimizerOptions options;
    options.beta1 = 0.9 + 1e-6 * rate;
    options.beta2 = 0.999 + 1e-7 * rate;
    const Adam<float> rule = Adam<float>::ForStep(options, 0.1, 1000);
    for (int i = 0; i < 2 * kWidth; ++i) {
      const float beta = i < kWidth ? rule.beta1 : rule.beta2;
      const auto passes = static_cast<uint32_t>(0x1p23 / beta);  // a mantissa
      expected[i] = slots[i] = std::bit_cast<float>(passes - kWidth / 2 + i % kWidth);
    }
    for (int step = 0; step < kSteps; ++step) {
      rule(kWidth, 1.0f, no_gradient.data(), w.data(), slots.data());
      for (int i = 0; i < 2 * kWidth; ++i) {
        const float beta = i < kWidth ? rule.beta1 : rule.beta2;
        const float plain = beta * expected[i];
        expected[i] = FlushedProduct(beta, expected[i]);
        wrong += std::bit_cast<uint32_t>(slots[i]) != std::bit_cast<uint32_t>(expected[i]);
        wrong_plain += std::bit_cast<uint32_t>(plain) != std::bit_cast<uint32_t>(expected[i]);
        left += step == kSteps - 1 && expected[i] != 0;
      }
    }
  }
  FloatingPoint::Set(FloatingPoint::kDefault);
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(left, 0);
  // This test can fail: the machine's own product does.
  EXPECT_EQ(wrong_plain > 100, kFlushesBeforeRounding);
  EXPECT_EQ(wrong_plain > 0, kFlushesBeforeRounding);
}

TEST(SumOfSquares, ExactOnSmallIntegers) {
  for (int64_t n = 0; n < 12; ++n) {
    std::vector<float> x;
    for (int64_t i = 0; i < n; ++i) x.push_back(static_cast<float>(i + 1));
    EXPECT_EQ(SumOfSquares(x.data(), n), n * (n + 1) * (2 * n + 1) / 6) << n;
  }
}

}  // namespace
}  // namespace elastor
