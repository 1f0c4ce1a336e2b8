#include "core/kernels/norm.h"

#include <cmath>
#include <functional>
#include <tuple>
#include <vector>

#include "gtest/gtest.h"
#include "tests/core/kernels/panel_testing.h"

namespace elastor {
namespace {

struct NormCase {
  NormKind kind;
  int64_t rows, width, groups;
};
const NormCase kNormCases[] = {{NormKind::kLayer, 5, 26, 3}, {NormKind::kLayer, 17, 1, 2},
                               {NormKind::kLayer, 33, 7, 1}, {NormKind::kRms, 16, 26, 2},
                               {NormKind::kRms, 3, 5, 4},    {NormKind::kLayer, 1, 390, 1}};

template <typename T>
struct Forward {
  PanelBuffer<T> x, y, normalized, scale;
  std::vector<T> gain, bias;
  NormShape shape;

  explicit Forward(const NormCase& c)
      : x(c.rows, c.width * c.groups, 1),
        y(c.rows, c.width * c.groups, 2),
        normalized(c.rows, c.width * c.groups, 3),
        scale(c.rows, c.groups, 4),
        gain(RandomNumbers<T>(c.width, 5)),
        bias(RandomNumbers<T>(c.width, 6)),
        shape{c.kind, c.width, 1e-5} {}

  const T* bias_data() const { return shape.kind == NormKind::kLayer ? bias.data() : nullptr; }
  void Run() {
    NormForward<T>(shape, x.read(), gain.data(), bias_data(), y.view(), normalized.view(),
                   scale.view());
  }
};

TEST(NormTest, ForwardIsTheFormula) {
  for (const NormCase& c : kNormCases) {
    Forward<double> f(c);
    f.Run();
    for (int64_t row = 0; row < c.rows; ++row) {
      for (int64_t g = 0; g < c.groups; ++g) {
        const auto x = [&](int64_t i) { return f.x.view().At(row, g * c.width + i); };
        double mean = 0;
        for (int64_t i = 0; i < c.width; ++i) mean += x(i) / c.width;
        if (c.kind == NormKind::kRms) mean = 0;
        double variance = 0;
        for (int64_t i = 0; i < c.width; ++i) variance += std::pow(x(i) - mean, 2) / c.width;
        const double scale = 1 / std::sqrt(variance + 1e-5);
        ASSERT_NEAR(f.scale.view().At(row, g), scale, 1e-9 * scale);
        for (int64_t i = 0; i < c.width; ++i) {
          const double n = (x(i) - mean) * scale;
          const double bias = c.kind == NormKind::kLayer ? f.bias[i] : 0;
          ASSERT_NEAR(f.normalized.view().At(row, g * c.width + i), n, 1e-9);
          ASSERT_NEAR(f.y.view().At(row, g * c.width + i), n * f.gain[i] + bias, 1e-9);
        }
      }
    }
  }
}

TEST(NormTest, FloatIsCloseToDouble) {
  constexpr float kTolerance = 2e-5f;  // sums of 390 numbers near 1, then a division
  for (const NormCase& c : kNormCases) {
    if (c.width == 1) continue;  // 0 / sqrt(eps): rounding of the mean, magnified
    Forward<float> single(c);
    Forward<double> twice(c);
    single.Run();
    twice.Run();
    for (int64_t row = 0; row < c.rows; ++row) {
      for (int64_t i = 0; i < c.width * c.groups; ++i) {
        ASSERT_NEAR(single.y.view().At(row, i), twice.y.view().At(row, i), kTolerance);
      }
    }
  }
}

TEST(NormTest, InPlaceAndAloneGiveTheSameBits) {
  for (const NormCase& c : kNormCases) {
    Forward<float> f(c);
    f.Run();
    Forward<float> in_place(c);
    NormForward<float>(f.shape, in_place.x.read(), f.gain.data(), f.bias_data(), in_place.x.view(),
                       in_place.normalized.view(), in_place.scale.view());
    Forward<float> alone({c.kind, 1, c.width, c.groups});
    for (int64_t i = 0; i < c.width * c.groups; ++i) {
      alone.x.view().At(0, i) = f.x.view().At(c.rows - 1, i);
    }
    alone.Run();
    for (int64_t i = 0; i < c.width * c.groups; ++i) {
      for (int64_t row = 0; row < c.rows; ++row) {
        ASSERT_EQ(in_place.x.view().At(row, i), f.y.view().At(row, i));
      }
      ASSERT_EQ(alone.y.view().At(0, i), f.y.view().At(c.rows - 1, i));
    }
  }
}

// The gradient of sum(y * weight) by central differences.
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

TEST(NormTest, BackwardIsTheDerivative) {
  constexpr double kTolerance = 1e-6;
  for (const NormCase& c : kNormCases) {
    if (c.width == 1) continue;  // y is constant up to eps: differences of nothing
    Forward<double> f(c);
    const int64_t features = c.width * c.groups;
    PanelBuffer<double> dy(c.rows, features, 7), residual(c.rows, features, 8);
    dy.ZeroPadding();
    const auto loss = [&] {
      f.Run();
      double sum = 0;
      for (int64_t row = 0; row < c.rows; ++row) {
        for (int64_t i = 0; i < features; ++i) sum += f.y.view().At(row, i) * dy.view().At(row, i);
      }
      return sum;
    };
    f.Run();
    PanelBuffer<double> dx(c.rows, features, 9);
    std::vector<double> dgain(c.width), dbias(c.width);
    const bool has_bias = c.kind == NormKind::kLayer;
    NormBackward<double>(f.shape, f.normalized.read(), f.scale.read(), f.gain.data(), dy.read(),
                         residual.read(), dx.view(), dgain.data(),
                         has_bias ? dbias.data() : nullptr, Store::kOverwrite);
    for (int64_t row = 0; row < c.rows; row += 3) {
      for (int64_t i = 0; i < features; i += 5) {
        const double expected =
            Difference(f.x.view().At(row, i), loss) + residual.view().At(row, i);
        ASSERT_NEAR(dx.view().At(row, i), expected,
                    kTolerance * std::max(1.0, std::fabs(expected)));
      }
    }
    for (int64_t i = 0; i < c.width; i += 3) {
      const double gain = Difference(f.gain[i], loss);
      ASSERT_NEAR(dgain[i], gain, kTolerance * std::max(1.0, std::fabs(gain)));
      if (!has_bias) continue;
      const double bias = Difference(f.bias[i], loss);
      ASSERT_NEAR(dbias[i], bias, kTolerance * std::max(1.0, std::fabs(bias)));
    }
  }
}

// Eight chains over rows for every feature of every group, then groups ascending.
TEST(NormTest, ParameterGradientsAddInTheDocumentedOrder) {
  for (const NormCase& c : kNormCases) {
    const int64_t features = c.width * c.groups;
    Forward<float> f(c);
    f.Run();
    PanelBuffer<float> dy(c.rows, features, 7), dx(c.rows, features, 8),
        in_place(c.rows, features, 7);
    dy.ZeroPadding();
    in_place.ZeroPadding();
    const std::vector<float> before = RandomNumbers<float>(c.width, 9);
    std::vector<float> dgain(c.width), dbias(c.width), dgain_added = before, dbias_added = before;
    NormBackward<float>(f.shape, f.normalized.read(), f.scale.read(), f.gain.data(), dy.read(), {},
                        dx.view(), dgain.data(), dbias.data(), Store::kOverwrite);
    NormBackward<float>(f.shape, f.normalized.read(), f.scale.read(), f.gain.data(),
                        in_place.read(), {}, in_place.view(), dgain_added.data(),
                        dbias_added.data(), Store::kAdd);
    for (int64_t i = 0; i < c.width; ++i) {
      float gain = 0;
      float bias = 0;
      for (int64_t g = 0; g < c.groups; ++g) {
        float chain[8] = {};
        float plain[8] = {};
        for (int64_t row = 0; row < dy.view().panels() * kPanelRows; ++row) {
          const float d = dy.view().At(row, g * c.width + i);
          chain[row % 8] =
              std::fma(d, f.normalized.view().At(row, g * c.width + i), chain[row % 8]);
          plain[row % 8] += d;
        }
        const auto combine = [](const float* s) {
          return ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
        };
        gain = g == 0 ? combine(chain) : gain + combine(chain);
        bias = g == 0 ? combine(plain) : bias + combine(plain);
      }
      ASSERT_EQ(dgain[i], gain);
      ASSERT_EQ(dbias[i], bias);
      ASSERT_EQ(dgain_added[i], before[i] + gain);
      ASSERT_EQ(dbias_added[i], before[i] + bias);
    }
    for (int64_t row = 0; row < dy.view().panels() * kPanelRows; ++row) {
      for (int64_t i = 0; i < features; ++i) {
        ASSERT_EQ(dx.view().At(row, i), in_place.view().At(row, i)) << "dx in dy's memory";
        if (row >= c.rows) {
          ASSERT_EQ(dx.view().At(row, i), 0) << "padded rows";
        }
      }
    }
  }
}

}  // namespace
}  // namespace elastor
