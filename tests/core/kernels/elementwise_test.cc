#include "core/kernels/elementwise.h"

#include <cmath>
#include <limits>
#include <vector>

#include "core/base/random.h"
#include "core/kernels/pair_products.h"
#include "core/kernels/row_matrices.h"
#include "gtest/gtest.h"
#include "tests/core/kernels/panel_testing.h"

namespace elastor {
namespace {

template <typename T>
class ElementwiseTest : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(ElementwiseTest, Types);

TYPED_TEST(ElementwiseTest, AddMultiplyCopyFill) {
  using T = TypeParam;
  PanelBuffer<T> wide(19, 12, 1), b(19, 4, 2), sum(19, 4, 3), product(19, 4, 4), copy(19, 4, 5);
  const Panels<T> a = wide.view().Every(1, 3, 4);
  Add<T>(a, b.read(), sum.view());
  Multiply<T>(a, b.read(), product.view());
  Copy<T>(a, copy.view());
  for (int64_t row = 0; row < 19; ++row) {
    for (int64_t f = 0; f < 4; ++f) {
      ASSERT_EQ(sum.view().At(row, f), a.At(row, f) + b.view().At(row, f));
      ASSERT_EQ(product.view().At(row, f), a.At(row, f) * b.view().At(row, f));
      ASSERT_EQ(copy.view().At(row, f), a.At(row, f));
    }
  }
  Add<T>(copy.read(), b.read(), b.view());
  Fill<T>(T(2.5), copy.view());
  for (int64_t row = 0; row < 19; ++row) {
    for (int64_t f = 0; f < 4; ++f) {
      ASSERT_EQ(b.view().At(row, f), sum.view().At(row, f));
      ASSERT_EQ(copy.view().At(row, f), T(2.5));
    }
  }
}

TYPED_TEST(ElementwiseTest, BlockTransposeIsItsOwnInverse) {
  using T = TypeParam;
  constexpr int64_t kTokens = 3, kWidth = 6, kBlock = 2;
  PanelBuffer<T> x(20, kTokens * kWidth, 1), y(20, kTokens * kWidth, 2), z(20, kTokens * kWidth, 3);
  BlockTranspose<T>(kTokens, kWidth, x.read(), y.view());
  BlockTranspose<T>(kTokens, kWidth, y.read(), z.view());
  for (int64_t row = 0; row < 20; ++row) {
    for (int64_t i = 0; i < kTokens; ++i) {
      for (int64_t j = 0; j < kTokens; ++j) {
        for (int64_t c = 0; c < kBlock; ++c) {
          ASSERT_EQ(y.view().At(row, i * kWidth + j * kBlock + c),
                    x.view().At(row, j * kWidth + i * kBlock + c));
        }
      }
    }
    for (int64_t f = 0; f < kTokens * kWidth; ++f)
      ASSERT_EQ(z.view().At(row, f), x.view().At(row, f));
  }
}

TYPED_TEST(ElementwiseTest, MeanPoolAndItsAdjoint) {
  using T = TypeParam;
  constexpr int64_t kTokens = 3, kWidth = 5;
  PanelBuffer<T> x(18, kTokens * kWidth, 1), y(18, kWidth, 2), dx(18, kTokens * kWidth, 3);
  MeanPool<T>(kTokens, kWidth, x.read(), y.view());
  MeanPoolBackward<T>(kTokens, kWidth, y.read(), dx.view());
  const T share = T(1) / T(kTokens);
  for (int64_t row = 0; row < 18; ++row) {
    for (int64_t d = 0; d < kWidth; ++d) {
      const auto in = [&](int64_t t) { return x.view().At(row, t * kWidth + d); };
      ASSERT_EQ(y.view().At(row, d), ((in(0) + in(1)) + in(2)) * share);
      for (int64_t t = 0; t < kTokens; ++t) {
        ASSERT_EQ(dx.view().At(row, t * kWidth + d), y.view().At(row, d) * share);
      }
    }
  }
}

TYPED_TEST(ElementwiseTest, DropoutFollowsThePhiloxOfCoreBase) {
  using T = TypeParam;
  PanelBuffer<T> x(37, 11, 1), y(37, 11, 2);
  for (const double rate : {0.0, 0.1, 0.5, 0.999}) {
    const DropoutKey key = {
        .key = 0x123456789abcdefULL, .step = 7, .first_row = (1LL << 32) - 5, .rate = rate};
    Dropout<T>(key, x.read(), y.view());
    for (int64_t row = 0; row < 37; ++row) {
      for (int64_t f = 0; f < 11; ++f) {
        const auto epoch_row = static_cast<uint64_t>(key.first_row + row);
        const PhiloxBlock words = Philox(
            key.key, {static_cast<uint32_t>(epoch_row), static_cast<uint32_t>(epoch_row >> 32),
                      key.step, static_cast<uint32_t>(f / 4)});
        const bool keep = words[f % 4] >= rate * 0x1p32;
        const T expected = keep ? x.view().At(row, f) * static_cast<T>(1 / (1 - rate)) : T(0);
        ASSERT_EQ(y.view().At(row, f), expected) << rate << " " << row << " " << f;
      }
    }
  }
}

TYPED_TEST(ElementwiseTest, DropoutDependsOnTheEpochRowOnly) {
  using T = TypeParam;
  PanelBuffer<T> x(40, 6, 1), all(40, 6, 2), tail(23, 6, 3);
  Panels<T> x_tail = tail.view();
  for (int64_t row = 0; row < 23; ++row) {
    for (int64_t f = 0; f < 6; ++f) x_tail.At(row, f) = x.view().At(row + 17, f);
  }
  Dropout<T>({.key = 1, .step = 2, .first_row = 100, .rate = 0.4}, x.read(), all.view());
  Dropout<T>({.key = 1, .step = 2, .first_row = 117, .rate = 0.4}, tail.read(), x_tail);
  for (int64_t row = 0; row < 23; ++row) {
    for (int64_t f = 0; f < 6; ++f) ASSERT_EQ(x_tail.At(row, f), all.view().At(row + 17, f));
  }
}

TYPED_TEST(ElementwiseTest, RowsToPanelsAndBack) {
  using T = TypeParam;
  for (const int64_t features : {1, 4, 7, 8, 9, 16, 20, 33}) {
    for (const int64_t rows : {1, 7, 8, 15, 16, 17, 40}) {
      const std::vector<T> memory = RandomNumbers<T>(rows * features, 1);
      std::vector<const T*> starts;
      for (int64_t row = 0; row < rows; ++row)
        starts.push_back(&memory[(rows - 1 - row) * features]);
      PanelBuffer<T> wide(rows, features + 2, 2);
      const Panels<T> y = wide.view().Slice(1, features);
      RowsToPanels<T>(starts.data(), y);
      for (int64_t row = 0; row < y.panels() * kPanelRows; ++row) {
        for (int64_t f = 0; f < features; ++f) {
          ASSERT_EQ(y.At(row, f), row < rows ? starts[row][f] : T(0)) << features << " " << rows;
        }
      }
      PanelBuffer<T> untouched(rows, features + 2, 2);
      for (int64_t row = 0; row < rows; ++row) {
        for (const int64_t f : {int64_t{0}, features + 1}) {
          ASSERT_EQ(wide.view().At(row, f), untouched.view().At(row, f));
        }
      }
      std::vector<T> back(rows * (features + 3), T(9));
      PanelsToRows<T>(y, back.data(), features + 3);
      for (int64_t row = 0; row < rows; ++row) {
        for (int64_t f = 0; f < features + 3; ++f) {
          ASSERT_EQ(back[row * (features + 3) + f], f < features ? starts[row][f] : T(9));
        }
      }
    }
  }
}

double ExactLoss(double z, double y) {
  return std::max(z, 0.0) - z * y + std::log1p(std::exp(-std::fabs(z)));
}

// A label among three of a row, which every fifth row lacks.
TYPED_TEST(ElementwiseTest, BceWithLogits) {
  using T = TypeParam;
  constexpr int64_t kRows = 37, kStride = 3;
  constexpr double kTolerance = sizeof(T) == 4 ? 4e-7 : 1e-14;
  PanelBuffer<T> logits(kRows, 1, 1), gradient(kRows, 1, 2);
  std::vector<float> labels(kRows * kStride, 0.5f), weights;
  for (int64_t row = 0; row < kRows; ++row) {
    logits.view().At(row, 0) *= 20;
    labels[row * kStride + 1] =
        row % 5 == 3 ? std::numeric_limits<float>::quiet_NaN() : static_cast<float>(row % 2);
    weights.push_back(0.5f + 0.1f * row);
  }
  for (const bool weighted : {false, true}) {
    std::vector<double> loss(2 * kRows, -7);
    const float* weight_data = weighted ? weights.data() : nullptr;
    BceWithLogits<T>(logits.read(), {labels.data() + 1, kStride}, weight_data, T(0.25),
                     {loss.data(), 2}, gradient.view());
    for (int64_t row = 0; row < kRows; ++row) {
      const double z = logits.view().At(row, 0);
      const float label = labels[row * kStride + 1];
      EXPECT_EQ(loss[2 * row + 1], -7);
      EXPECT_EQ(Sigmoid(logits.view().At(row, 0)), Sigmoid(static_cast<T>(z)));
      if (std::isnan(label)) {
        EXPECT_EQ(loss[2 * row], 0);
        EXPECT_EQ(gradient.view().At(row, 0), 0);
        continue;
      }
      EXPECT_NEAR(loss[2 * row], ExactLoss(z, label), kTolerance);
      const double weight = weighted ? weights[row] : 1;
      const double probability = 1 / (1 + std::exp(-z));
      EXPECT_NEAR(gradient.view().At(row, 0), (probability - label) * weight * 0.25,
                  2 * kTolerance);
    }
    for (int64_t row = kRows; row < 48; ++row) EXPECT_EQ(gradient.view().At(row, 0), 0);
  }
}

TEST(BceTest, GradientIsTheDerivativeOfTheLoss) {
  constexpr double kStep = 1e-5;
  constexpr double kTolerance = 1e-9;
  for (double z = -30; z <= 30; z += 0.37) {
    for (const float label : {0.0f, 1.0f, 0.3f}) {
      PanelBuffer<double> logits(3, 1, 1), gradient(3, 1, 2);
      logits.view().At(0, 0) = z - kStep;
      logits.view().At(1, 0) = z;
      logits.view().At(2, 0) = z + kStep;
      const std::vector<float> labels(3, label);
      double loss[3];
      BceWithLogits<double>(logits.read(), {labels.data()}, nullptr, 1.0, {loss}, gradient.view());
      EXPECT_NEAR(gradient.view().At(1, 0), (loss[2] - loss[0]) / (2 * kStep), kTolerance);
    }
  }
}

TEST(BceTest, NanIsNotHidden) {
  PanelBuffer<float> logits(1, 1, 1), gradient(1, 1, 2);
  logits.view().At(0, 0) = std::numeric_limits<float>::quiet_NaN();
  const float label = 1;
  double loss;
  BceWithLogits<float>(logits.read(), {&label}, nullptr, 1.0f, {&loss}, gradient.view());
  EXPECT_TRUE(std::isnan(loss));
  EXPECT_TRUE(std::isnan(gradient.view().At(0, 0)));
}

// Of five classes, some far below the largest; every fifth row lacks the label.
TYPED_TEST(ElementwiseTest, SoftmaxCrossEntropy) {
  using T = TypeParam;
  constexpr int64_t kRows = 21, kClasses = 5;
  constexpr double kTolerance = sizeof(T) == 4 ? 1e-7 : 1e-14;
  PanelBuffer<T> logits(kRows, kClasses, 1), gradient(kRows, kClasses, 2);
  std::vector<float> labels, weights;
  std::vector<double> scales, loss(kRows, -7);
  for (int64_t row = 0; row < kRows; ++row) {
    for (int64_t c = 0; c < kClasses; ++c) logits.view().At(row, c) *= row % 4 == 0 ? 400 : 3;
    labels.push_back(row % 5 == 3 ? std::numeric_limits<float>::quiet_NaN()
                                  : static_cast<float>(row % kClasses));
    weights.push_back(0.5f + 0.1f * row);
    scales.push_back(1.0 / (1 + row));
  }
  SoftmaxCrossEntropy<T>(logits.read(), {labels.data()}, weights.data(), scales.data(),
                         {loss.data()}, gradient.view());
  for (int64_t row = 0; row < kRows; ++row) {
    double most = -1e300, sum = 0;
    for (int64_t c = 0; c < kClasses; ++c) {
      most = std::max(most, static_cast<double>(logits.view().At(row, c)));
    }
    for (int64_t c = 0; c < kClasses; ++c) sum += std::exp(logits.view().At(row, c) - most);
    const bool known = !std::isnan(labels[row]);
    for (int64_t c = 0; c < kClasses; ++c) {
      const double target = static_cast<float>(c) == labels[row] ? 1 : 0;
      const double expected = (std::exp(logits.view().At(row, c) - most) / sum - target) *
                              double{weights[row]} * scales[row];
      EXPECT_NEAR(gradient.view().At(row, c), known ? expected : 0, kTolerance) << row;
      if (target == 0) continue;
      EXPECT_NEAR(loss[row], std::log(sum) + most - logits.view().At(row, c),
                  1e-12 * (1 + std::fabs(most)));
    }
    if (known) continue;
    EXPECT_EQ(loss[row], 0);
  }
  for (int64_t row = kRows; row < 32; ++row) EXPECT_EQ(gradient.view().At(row, 0), 0);
  logits.view().At(1, 2) = std::numeric_limits<T>::quiet_NaN();
  SoftmaxCrossEntropy<T>(logits.read(), {labels.data()}, nullptr, scales.data(), {loss.data()},
                         gradient.view());
  EXPECT_TRUE(std::isnan(loss[1]) && std::isnan(gradient.view().At(1, 0)));
}

TYPED_TEST(ElementwiseTest, NumericEmbedding) {
  using T = TypeParam;
  constexpr int64_t kRows = 21, kCount = 3, kWidth = 10;
  std::vector<float> values = RandomNumbers<float>(kRows * kCount, 1);
  for (size_t i = 0; i < values.size(); i += 4) values[i] = std::numeric_limits<float>::quiet_NaN();
  const std::vector<T> vectors = RandomNumbers<T>(kCount * kWidth, 2);
  const std::vector<T> missing = RandomNumbers<T>(kCount * kWidth, 3);
  PanelBuffer<T> y(kRows, kCount * kWidth, 4), dy(kRows, kCount * kWidth, 5);
  dy.ZeroPadding();
  NumericEmbedding<T>(values.data(), kCount, kWidth, vectors.data(), missing.data(), y.view());
  const std::vector<T> before = RandomNumbers<T>(kCount * kWidth, 6);
  std::vector<T> dvectors = before, dmissing = before;
  NumericEmbeddingBackward<T>(values.data(), kCount, kWidth, dy.read(), dvectors.data(),
                              dmissing.data(), Store::kAdd);
  std::vector<T> dvectors_alone(before.size()), dmissing_alone(before.size());
  NumericEmbeddingBackward<T>(values.data(), kCount, kWidth, dy.read(), dvectors_alone.data(),
                              dmissing_alone.data(), Store::kOverwrite);
  for (int64_t i = 0; i < kCount; ++i) {
    for (int64_t c = 0; c < kWidth; ++c) {
      const int64_t f = i * kWidth + c;
      T chain[8] = {}, missing_chain[8] = {};
      for (int64_t row = 0; row < kRows; ++row) {
        const float value = values[row * kCount + i];
        const bool is_missing = std::isnan(value);
        ASSERT_EQ(y.view().At(row, f), is_missing ? missing[f] : T(value) * vectors[f]);
        const T d = dy.view().At(row, f);
        chain[row % 8] = std::fma(d, is_missing ? T(0) : T(value), chain[row % 8]);
        missing_chain[row % 8] = std::fma(d, is_missing ? T(1) : T(0), missing_chain[row % 8]);
      }
      const auto combine = [](const T* s) {
        return ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
      };
      ASSERT_EQ(dvectors_alone[f], combine(chain));
      ASSERT_EQ(dmissing_alone[f], combine(missing_chain));
      ASSERT_EQ(dvectors[f], before[f] + combine(chain));
      ASSERT_EQ(dmissing[f], before[f] + combine(missing_chain));
    }
  }
}

TYPED_TEST(ElementwiseTest, SumPool) {
  using T = TypeParam;
  PanelBuffer<T> x(19, 12, 1), y(19, 3, 2);
  SumPool<T>(3, 4, x.read(), y.view());
  for (int64_t row = 0; row < 19; ++row) {
    for (int64_t t = 0; t < 3; ++t) {
      T sum = x.view().At(row, 4 * t);
      for (int64_t f = 1; f < 4; ++f) sum += x.view().At(row, 4 * t + f);
      ASSERT_EQ(y.view().At(row, t), sum);
    }
  }
}

// Columns of tokens, as the compressed interaction has them; then a view with itself.
TYPED_TEST(ElementwiseTest, PairProducts) {
  using T = TypeParam;
  constexpr int64_t kRows = 35;
  PanelBuffer<T> wide_a(kRows, 10, 1), wide_b(kRows, 6, 2), z(kRows, 5, 3), dz(kRows, 5, 4);
  const Panels<const T> a = wide_a.read().Every(1, 2, 5), b = wide_b.read().Every(0, 2, 3);
  const std::vector<FeaturePair> pairs = {{0, 0}, {0, 2}, {3, 1}, {4, 0}, {4, 1}};
  PairProducts<T>(a, b, pairs, z.view());
  PanelBuffer<T> da(kRows, 5, 5), db(kRows, 3, 6), da_before(kRows, 5, 5), db_before(kRows, 3, 6);
  PairProductsBackward<T>(dz.read(), a, b, pairs, da.view(), db.view());
  const std::vector<FeaturePair> squares = {{0, 0}, {0, 1}, {1, 1}};
  PanelBuffer<T> both(kRows, 3, 6);
  PairProductsBackward<T>(dz.read().Slice(0, 3), b, b, squares, both.view(), both.view());
  for (int64_t row = 0; row < kRows; ++row) {
    T expected_a[5], expected_b[3], expected[3];
    for (int i = 0; i < 5; ++i) expected_a[i] = da_before.view().At(row, i);
    for (int i = 0; i < 3; ++i) expected_b[i] = expected[i] = db_before.view().At(row, i);
    for (int q = 0; q < 5; ++q) {
      const auto [i, j] = pairs[q];
      const T d = dz.view().At(row, q);
      ASSERT_EQ(z.view().At(row, q), a.At(row, i) * b.At(row, j));
      expected_a[i] = std::fma(d, b.At(row, j), expected_a[i]);
      expected_b[j] = std::fma(d, a.At(row, i), expected_b[j]);
    }
    for (int q = 0; q < 3; ++q) {
      const auto [i, j] = squares[q];
      const T d = dz.view().At(row, q);
      expected[i] = std::fma(d, b.At(row, j), expected[i]);
      expected[j] = std::fma(d, b.At(row, i), expected[j]);
    }
    for (int i = 0; i < 5; ++i) ASSERT_EQ(da.view().At(row, i), expected_a[i]);
    for (int i = 0; i < 3; ++i) ASSERT_EQ(db.view().At(row, i), expected_b[i]);
    for (int i = 0; i < 3; ++i) ASSERT_EQ(both.view().At(row, i), expected[i]);
  }
}

// Every element is one chain, in a whole tile and beside it.
TYPED_TEST(ElementwiseTest, RowMatrices) {
  using T = TypeParam;
  constexpr int64_t kRows = 19, kM = 4, kN = 7, kK = 5;
  PanelBuffer<T> a(kRows, kM * kK, 1), b(kRows, kN * kK, 2), addend(kRows, kM * kN, 3);
  PanelBuffer<T> c(kRows, kM * kN, 4), transposed(kRows, kM * kN, 5);
  const RowMatrix<const T> b_rows = {b.read(), kK, 1};  // [n, k]
  MultiplyRowMatrices<T>(kM, kN, kK, {a.read(), kK, 1}, b_rows.Transposed(), addend.read(),
                         {c.view(), kN, 1});
  MultiplyRowMatrices<T>(kN, kM, kK, b_rows, RowMatrix<const T>{a.read(), kK, 1}.Transposed(), {},
                         {transposed.view(), kM, 1});
  for (int64_t row = 0; row < kRows; ++row) {
    for (int64_t i = 0; i < kM; ++i) {
      for (int64_t j = 0; j < kN; ++j) {
        T sum = 0;
        for (int64_t t = 0; t < kK; ++t) {
          sum = std::fma(a.view().At(row, i * kK + t), b.view().At(row, j * kK + t), sum);
        }
        ASSERT_EQ(c.view().At(row, i * kN + j), sum + addend.view().At(row, i * kN + j));
        ASSERT_EQ(transposed.view().At(row, j * kM + i), sum);
      }
    }
  }
}

}  // namespace
}  // namespace elastor
