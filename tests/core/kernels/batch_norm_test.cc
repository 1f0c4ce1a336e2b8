#include "core/kernels/batch_norm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <vector>

#include "tests/core/kernels/panel_testing.h"

namespace elastor {
namespace {

constexpr double kEpsilon = 1e-5;
// One row, a pair, a panel and a row of the next, several panels.
constexpr int64_t kRows[] = {1, 2, 17, 75};
constexpr int64_t kFeatures = 5;

template <typename T>
struct BatchNorm {
  PanelBuffer<T> x, y, dy, dx;
  std::vector<T> gain, bias, mean, variance, scale, dgain, dbias;
  double epsilon;

  BatchNorm(int64_t rows, int64_t features, double epsilon)
      : x(rows, features, 1),
        y(rows, features, 2),
        dy(rows, features, 3),
        dx(rows, features, 4),
        gain(RandomNumbers<T>(features, 5)),
        bias(RandomNumbers<T>(features, 6)),
        mean(features),
        variance(features),
        scale(features),
        dgain(features),
        dbias(features),
        epsilon(epsilon) {
    dy.ZeroPadding();
  }

  void Forward() {
    BatchStatistics<T>(epsilon, x.read(), mean.data(), variance.data(), scale.data());
    BatchNormForward<T>(x.read(), mean.data(), scale.data(), gain.data(), bias.data(), y.view());
  }
  void Backward(Panels<T> to, Store store) {
    BatchNormBackward<T>(x.read(), mean.data(), scale.data(), gain.data(), dy.read(), to,
                         dgain.data(), dbias.data(), store);
  }
};

TEST(BatchNormTest, ByHand) {
  BatchNorm<double> f(2, 1, 0);
  f.x.view().At(0, 0) = 1;
  f.x.view().At(1, 0) = 5;
  f.gain = {10};
  f.bias = {3};
  f.Forward();
  EXPECT_EQ(f.mean[0], 3);
  EXPECT_EQ(f.variance[0], 4);
  EXPECT_EQ(f.scale[0], 0.5);
  EXPECT_EQ(f.y.view().At(0, 0), -7);
  EXPECT_EQ(f.y.view().At(1, 0), 13);
}

// The documented order, emulated row by row; in float the statistics are rounded once.
struct Reference {
  template <typename Term>
  static double Sum(int64_t rows, const Term& term) {
    double chain[4] = {};
    for (int64_t row = 0; row < rows; ++row) chain[row % 4] = term(row, chain[row % 4]);
    return (chain[0] + chain[2]) + (chain[1] + chain[3]);
  }
};

TEST(BatchNormTest, ForwardAddsInTheDocumentedOrder) {
  for (const int64_t rows : kRows) {
    BatchNorm<float> f(rows, kFeatures, kEpsilon);
    f.Forward();
    for (int64_t i = 0; i < kFeatures; ++i) {
      const auto x = [&](int64_t row) -> double { return f.x.view().At(row, i); };
      const double mean = Reference::Sum(rows, [&](auto row, auto s) { return s + x(row); }) / rows;
      const double variance =
          Reference::Sum(
              rows, [&](auto row, auto s) { return std::fma(x(row) - mean, x(row) - mean, s); }) /
          rows;
      ASSERT_EQ(f.mean[i], static_cast<float>(mean));
      ASSERT_EQ(f.variance[i], static_cast<float>(variance));
      ASSERT_EQ(f.scale[i], static_cast<float>(1 / std::sqrt(variance + kEpsilon)));
      for (int64_t row = 0; row < rows; ++row) {
        const float n = (f.x.view().At(row, i) - f.mean[i]) * f.scale[i];
        ASSERT_EQ(f.y.view().At(row, i), std::fma(n, f.gain[i], f.bias[i])) << rows << " rows";
      }
    }
  }
}

TEST(BatchNormTest, BackwardAddsInTheDocumentedOrder) {
  for (const int64_t rows : kRows) {
    BatchNorm<float> f(rows, kFeatures, kEpsilon);
    f.Forward();
    const std::vector<float> before = RandomNumbers<float>(kFeatures, 7);
    f.dgain = f.dbias = before;
    f.Backward(f.dx.view(), Store::kAdd);
    for (int64_t i = 0; i < kFeatures; ++i) {
      const auto dy = [&](int64_t row) { return f.dy.view().At(row, i); };
      const auto n = [&](int64_t row) { return (f.x.view().At(row, i) - f.mean[i]) * f.scale[i]; };
      const double sum = Reference::Sum(rows, [&](auto row, auto s) { return s + dy(row); });
      const double along = Reference::Sum(
          rows, [&](auto row, auto s) { return std::fma<double>(dy(row), n(row), s); });
      ASSERT_EQ(f.dbias[i], before[i] + static_cast<float>(sum));
      ASSERT_EQ(f.dgain[i], before[i] + static_cast<float>(along));
      const auto mean_dy = static_cast<float>(sum / rows);
      const auto mean_along = static_cast<float>(along / rows);
      for (int64_t row = 0; row < rows; ++row) {
        const float d = std::fma(-n(row), mean_along, dy(row) - mean_dy) * (f.gain[i] * f.scale[i]);
        ASSERT_EQ(f.dx.view().At(row, i), d) << rows << " rows";
      }
      for (int64_t row = rows; row < f.dx.view().panels() * kPanelRows; ++row) {
        ASSERT_EQ(f.dx.view().At(row, i), 0) << "padded rows";
      }
    }
  }
}

TEST(BatchNormTest, DxMayBeDy) {
  for (const int64_t rows : kRows) {
    BatchNorm<float> f(rows, kFeatures, kEpsilon);
    f.Forward();
    f.Backward(f.dx.view(), Store::kOverwrite);
    f.Backward(f.dy.view(), Store::kOverwrite);
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t i = 0; i < kFeatures; ++i) {
        ASSERT_EQ(f.dy.view().At(row, i), f.dx.view().At(row, i));
      }
    }
  }
}

// The gradient of sum(y * dy) by central differences.
double Difference(double& parameter, const std::function<double()>& loss) {
  constexpr double kStep = 1e-5;
  const double before = parameter;
  parameter = before + kStep;
  const double above = loss();
  parameter = before - kStep;
  const double below = loss();
  parameter = before;
  return (above - below) / (2 * kStep);
}

// A large epsilon, else a leaf of two rows is +-1 wherever it is.
TEST(BatchNormTest, BackwardIsTheDerivative) {
  constexpr double kLargeEpsilon = 0.1;
  constexpr double kTolerance = 1e-8;
  for (const int64_t rows : kRows) {
    BatchNorm<double> f(rows, kFeatures, kLargeEpsilon);
    const auto loss = [&] {
      f.Forward();
      double sum = 0;
      for (int64_t row = 0; row < rows; ++row) {
        for (int64_t i = 0; i < kFeatures; ++i) {
          sum += f.y.view().At(row, i) * f.dy.view().At(row, i);
        }
      }
      return sum;
    };
    f.Forward();
    f.Backward(f.dx.view(), Store::kOverwrite);
    for (int64_t i = 0; i < kFeatures; ++i) {
      EXPECT_NEAR(f.dgain[i], Difference(f.gain[i], loss), kTolerance);
      EXPECT_NEAR(f.dbias[i], Difference(f.bias[i], loss), kTolerance);
      double largest = 0;
      for (int64_t row = 0; row < rows; ++row) {
        const double d = f.dx.view().At(row, i);
        EXPECT_NEAR(d, Difference(f.x.view().At(row, i), loss), kTolerance) << rows << " rows";
        largest = std::max(largest, std::fabs(d));
      }
      EXPECT_EQ(largest > 1e-3, rows > 1);
    }
  }
}

// A leaf of one row says nothing about the spread: y is the bias, and nothing flows back.
TEST(BatchNormTest, OneRow) {
  BatchNorm<float> f(1, kFeatures, kEpsilon);
  f.Forward();
  f.Backward(f.dx.view(), Store::kOverwrite);
  for (int64_t i = 0; i < kFeatures; ++i) {
    EXPECT_EQ(f.variance[i], 0);
    EXPECT_EQ(f.y.view().At(0, i), f.bias[i]);
    EXPECT_EQ(f.dx.view().At(0, i), 0);
    EXPECT_EQ(f.dgain[i], 0);
    EXPECT_EQ(f.dbias[i], f.dy.view().At(0, i));
  }
}

// A mean far from zero, of 4,096 floats: a sum of squares in float would have no digit left.
TEST(BatchNormTest, FarFromZero) {
  constexpr int64_t kManyRows = 4096;
  BatchNorm<float> f(kManyRows, 1, kEpsilon);
  for (int64_t row = 0; row < kManyRows; ++row) {
    f.x.view().At(row, 0) = 1000 + (row % 2 == 0 ? 0.125f : -0.125f);
  }
  f.Forward();
  EXPECT_EQ(f.mean[0], 1000);
  EXPECT_EQ(f.variance[0], 1.0f / 64);
}

TEST(BatchNormTest, RunningStatistics) {
  const std::vector<double> variance = {4 - kEpsilon, 0.25 - kEpsilon};
  std::vector<double> scale(2);
  BatchNormScale<double>(kEpsilon, 2, variance.data(), scale.data());
  EXPECT_NEAR(scale[0], 0.5, 1e-15);
  EXPECT_NEAR(scale[1], 2, 1e-15);
}

}  // namespace
}  // namespace elastor
