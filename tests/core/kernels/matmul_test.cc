#include "core/kernels/matmul.h"

#include <array>
#include <cmath>
#include <tuple>
#include <vector>

#include "core/kernels/cpu/activate.h"
#include "core/kernels/cpu/isa.h"
#include "gtest/gtest.h"
#include "tests/core/kernels/panel_testing.h"

namespace elastor {
namespace {

// The documented order of MatMul, one element at a time.
template <typename T>
T ReferenceSum(const MatrixView<T>& a, int64_t j, const std::vector<T>& x) {
  T total = 0;
  for (int64_t begin = 0; begin < a.columns; begin += kReductionBlock) {
    T chain = 0;
    for (int64_t k = begin; k < std::min(begin + kReductionBlock, a.columns); ++k) {
      chain = std::fma(a.data[j * a.row_stride + k * a.column_stride], x[k], chain);
    }
    total = begin == 0 ? chain : total + chain;
  }
  return total;
}

template <typename T>
std::vector<T> RowOf(Panels<const T> x, int64_t row) {
  std::vector<T> values;
  for (int64_t f = 0; f < x.features; ++f) values.push_back(x.At(row, f));
  return values;
}

template <typename T>
PackedMatrix<T> Packed(const MatrixView<T>& a) {
  PackedMatrix<T> packed;
  packed.Pack({&a, 1});
  return packed;
}

template <typename T>
ValueAndSlope<T> ActivateOne(Activation activation, T s) {
  ValueAndSlope<T> result;
  WithActivation(activation, [&](auto function) {
    const auto both = function(Broadcast(s));
    result = {both.value[0], both.slope[0]};
  });
  return result;
}

template <typename T>
class MatMulTest : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(MatMulTest, Types);

template <typename T>
void ExpectTheDocumentedOrder(int64_t rows, int64_t k, int64_t outputs) {
  PanelBuffer<T> x(rows, k, 1);
  PanelBuffer<T> y(rows, outputs, 2);
  const std::vector<T> weights = RandomNumbers<T>(outputs * k, 3);
  const auto a = MatrixView<T>::RowMajor(weights.data(), outputs, k);
  const std::array<Panels<const T>, 1> segments = {x.read()};
  MatMul<T>(Packed(a), segments, y.view(), {});
  for (int64_t row = 0; row < rows; ++row) {
    const std::vector<T> in = RowOf(x.read(), row);
    for (int64_t j = 0; j < outputs; ++j) {
      ASSERT_EQ(y.view().At(row, j), ReferenceSum(a, j, in))
          << rows << " x " << k << " -> " << outputs << " at " << row << ", " << j;
    }
  }
}

TYPED_TEST(MatMulTest, SumsInTheDocumentedOrder) {
  for (const int64_t rows : {1, 3, 16, 17, 40}) {
    for (const int64_t k : {1, 2, 5, 26, 511, 512, 513, 1024, 1025}) {
      for (const int64_t outputs : {1, 2, 5, 6, 7, 13, 26}) {
        ExpectTheDocumentedOrder<TypeParam>(rows, k, outputs);
      }
    }
  }
}

// Tiles of every height, at an even and an odd number of panels.
TYPED_TEST(MatMulTest, EveryTileHeight) {
  for (const int64_t rows : {32, 40}) {
    for (int64_t outputs = 1; outputs <= 28; ++outputs) {
      ExpectTheDocumentedOrder<TypeParam>(rows, 7, outputs);
      ExpectTheDocumentedOrder<TypeParam>(rows, 520, outputs);
    }
  }
}

TYPED_TEST(MatMulTest, EveryRowCountUpToFortyGivesTheSameRows) {
  using T = TypeParam;
  constexpr int64_t kFeatures = 26;
  PanelBuffer<T> x(40, kFeatures, 1);
  const std::vector<T> weights = RandomNumbers<T>(19 * kFeatures, 3);
  const PackedMatrix<T> a = Packed(MatrixView<T>::RowMajor(weights.data(), 19, kFeatures));
  PanelBuffer<T> all(40, 19, 2);
  const std::array<Panels<const T>, 1> segments = {x.read()};
  MatMul<T>(a, segments, all.view(), {});
  for (int64_t rows = 1; rows <= 40; ++rows) {
    PanelBuffer<T> y(rows, 19, 4);
    Panels<const T> part = x.read();
    part.rows = rows;
    MatMul<T>(a, {&part, 1}, y.view(), {});
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t j = 0; j < 19; ++j) ASSERT_EQ(y.view().At(row, j), all.view().At(row, j));
    }
    // And alone in a panel, at another lane.
    PanelBuffer<T> single(1, kFeatures, 7);
    for (int64_t f = 0; f < kFeatures; ++f) single.view().At(0, f) = x.view().At(rows - 1, f);
    PanelBuffer<T> alone(1, 19, 5);
    const std::array<Panels<const T>, 1> one = {single.read()};
    MatMul<T>(a, one, alone.view(), {});
    for (int64_t j = 0; j < 19; ++j) ASSERT_EQ(alone.view().At(0, j), all.view().At(rows - 1, j));
  }
}

// Blocks of weights against segments cut elsewhere; strided features in and out; transposed views.
TYPED_TEST(MatMulTest, SegmentsStridesAndTransposes) {
  using T = TypeParam;
  constexpr int64_t kRows = 37;
  PanelBuffer<T> first(kRows, 600, 1);
  PanelBuffer<T> second(kRows, 300, 2);
  const std::array<Panels<const T>, 3> segments = {Panels<const T>(first.view().Every(1, 3, 190)),
                                                   Panels<const T>(first.view().Slice(7, 500)),
                                                   Panels<const T>(second.view().Every(0, 2, 150))};
  const int64_t k = 840;
  const int64_t outputs = 11;
  const std::vector<T> left = RandomNumbers<T>(400 * outputs, 3);  // stored transposed
  const std::vector<T> right = RandomNumbers<T>(outputs * 440, 4);
  const std::array<MatrixView<T>, 2> blocks = {
      MatrixView<T>::RowMajor(left.data(), 400, outputs).Transposed(),
      MatrixView<T>::RowMajor(right.data(), outputs, 440)};
  PackedMatrix<T> a;
  a.Pack(blocks);
  ASSERT_EQ(a.columns(), k);
  std::vector<T> dense(outputs * k);
  for (int64_t j = 0; j < outputs; ++j) {
    for (int64_t c = 0; c < 400; ++c) dense[j * k + c] = left[c * outputs + j];
    for (int64_t c = 0; c < 440; ++c) dense[j * k + 400 + c] = right[j * 440 + c];
  }
  PanelBuffer<T> wide(kRows, 40, 5);
  const Panels<T> y = wide.view().Every(2, 3, outputs);
  MatMul<T>(a, segments, y, {});
  for (int64_t row = 0; row < kRows; ++row) {
    std::vector<T> in;
    for (const Panels<const T>& segment : segments) {
      for (const T value : RowOf(segment, row)) in.push_back(value);
    }
    const auto view = MatrixView<T>::RowMajor(dense.data(), outputs, k);
    for (int64_t j = 0; j < outputs; ++j) ASSERT_EQ(y.At(row, j), ReferenceSum(view, j, in));
  }
  PanelBuffer<T> untouched(kRows, 40, 5);
  for (const int64_t f : {0, 1, 3, 4, 33, 34, 39}) {
    for (int64_t row = 0; row < kRows; ++row) {
      ASSERT_EQ(wide.view().At(row, f), untouched.view().At(row, f)) << f;
    }
  }
}

// Steps of the epilogue, as bits.
constexpr int kBias = 1;
constexpr int kDerivative = 2;
constexpr int kUnscaled = 4;
constexpr int kMultiplier = 8;
constexpr int kResidual = 16;
constexpr int kSecond = 32;

TYPED_TEST(MatMulTest, EveryCombinationOfTheEpilogue) {
  using T = TypeParam;
  constexpr int64_t kRows = 35;  // three panels
  constexpr int64_t kFeatures = 9;
  constexpr int64_t kOutputs = 14;
  PanelBuffer<T> x(kRows, kFeatures, 1);
  const std::vector<T> weights = RandomNumbers<T>(kOutputs * kFeatures, 2);
  const std::vector<T> bias = RandomNumbers<T>(kOutputs, 3);
  const auto a = MatrixView<T>::RowMajor(weights.data(), kOutputs, kFeatures);
  const PackedMatrix<T> packed = Packed(a);
  const std::array<Panels<const T>, 1> segments = {x.read()};
  for (const Activation activation : {Activation::kIdentity, Activation::kRelu, Activation::kGelu,
                                      Activation::kSwish, Activation::kTanh}) {
    for (int steps = 0; steps < 64; ++steps) {
      PanelBuffer<T> y(kRows, kOutputs, 4), derivative(kRows, kOutputs, 5);
      PanelBuffer<T> unscaled(kRows, kOutputs, 6), multiplier(kRows, kOutputs, 7);
      PanelBuffer<T> residual(kRows, kOutputs, 8), second(kRows, kOutputs, 9);
      PanelBuffer<T> second_multiplier(kRows, kOutputs, 10);
      Epilogue<T> e;
      e.activation = activation;
      if (steps & kBias) e.bias = bias.data();
      if (steps & kDerivative) e.derivative = derivative.view();
      if (steps & kUnscaled) e.unscaled = unscaled.view();
      if (steps & kMultiplier) e.multiplier = multiplier.read();
      if (steps & kResidual) e.residual = residual.read();
      if (steps & kSecond) e.second_output = second.view();
      if (steps & kSecond) e.second_multiplier = second_multiplier.read();
      MatMul<T>(packed, segments, y.view(), e);
      for (int64_t row = 0; row < kRows; ++row) {
        for (int64_t j = 0; j < kOutputs; ++j) {
          T s = ReferenceSum(a, j, RowOf(x.read(), row));
          if (steps & kBias) s = s + bias[j];
          const ValueAndSlope<T> act = ActivateOne(activation, s);
          s = act.value;
          if (steps & kDerivative) {
            ASSERT_EQ(derivative.view().At(row, j), act.slope);
          }
          if (steps & kUnscaled) {
            ASSERT_EQ(unscaled.view().At(row, j), s);
          }
          if (steps & kSecond) {
            const T expected = s * second_multiplier.view().At(row, j);
            ASSERT_EQ(second.view().At(row, j), expected);
          }
          if (steps & kMultiplier) s = s * multiplier.view().At(row, j);
          if (steps & kResidual) s = s + residual.view().At(row, j);
          ASSERT_EQ(y.view().At(row, j), s) << steps;
        }
      }
    }
  }
}

TYPED_TEST(MatMulTest, EpilogueViewsMayBeTheOutput) {
  using T = TypeParam;
  constexpr int64_t kRows = 35;
  PanelBuffer<T> x(kRows, 8, 1);
  const std::vector<T> weights = RandomNumbers<T>(13 * 8, 2);
  const PackedMatrix<T> a = Packed(MatrixView<T>::RowMajor(weights.data(), 13, 8));
  const std::array<Panels<const T>, 1> segments = {x.read()};
  PanelBuffer<T> other(kRows, 13, 4);
  for (const int step : {kMultiplier, kResidual, kSecond, kMultiplier | kResidual}) {
    PanelBuffer<T> apart(kRows, 13, 5), input(kRows, 13, 3), in_place(kRows, 13, 3);
    PanelBuffer<T> second_apart(kRows, 13, 6), second_in_place(kRows, 13, 6);
    const auto run = [&](PanelBuffer<T>& y, PanelBuffer<T>& from, PanelBuffer<T>& second) {
      Epilogue<T> e;
      if (step & kMultiplier) e.multiplier = from.read();
      if (step & kResidual) e.residual = from.read();
      if (step & kSecond) {
        e.multiplier = other.read();
        e.second_multiplier = from.read();
        e.second_output = second.view();
      }
      MatMul<T>(a, segments, y.view(), e);
    };
    run(apart, input, second_apart);
    run(in_place, in_place, second_in_place);
    for (int64_t row = 0; row < kRows; ++row) {
      for (int64_t j = 0; j < 13; ++j) {
        ASSERT_EQ(apart.view().At(row, j), in_place.view().At(row, j));
        ASSERT_EQ(second_apart.view().At(row, j), second_in_place.view().At(row, j));
      }
    }
  }
}

TYPED_TEST(MatMulTest, PackedTilesAreBalancedAndReadAsDocumented) {
  using T = TypeParam;
  const std::vector<T> numbers = RandomNumbers<T>(2 * 26 * 4, 1);
  const auto first = MatrixView<T>::RowMajor(numbers.data(), 26, 4);
  const auto second = MatrixView<T>::RowMajor(numbers.data() + 26 * 4, 26, 4);
  const PackedMatrix<T> single = Packed(first);
  std::vector<int64_t> heights;
  for (const auto& tile : single.tiles()) {
    heights.push_back(tile.height);
    for (int64_t i = 0; i < tile.height; ++i) {
      for (int64_t k = 0; k < 4; ++k) {
        EXPECT_EQ(single.data()[tile.offset + k * tile.height + i],
                  numbers[(tile.row + i) * 4 + k]);
      }
    }
  }
  const std::vector<int64_t> expected[kIsas] = {{6, 5, 5, 5, 5}, {13, 13}, {9, 9, 8}};
  EXPECT_EQ(heights, expected[static_cast<int>(ActiveIsa())]);
  PackedMatrix<T> pair;
  pair.PackPair(first, second);
  EXPECT_TRUE(pair.paired());
  const size_t pairs[kIsas] = {9, 5, 6};
  EXPECT_EQ(pair.tiles().size(), pairs[static_cast<int>(ActiveIsa())]);
  for (const auto& tile : pair.tiles()) {
    for (int64_t i = 0; i < tile.height; ++i) {
      for (int64_t k = 0; k < 4; ++k) {
        const T* at = pair.data() + tile.offset + k * 2 * tile.height + i;
        EXPECT_EQ(at[0], numbers[(tile.row + i) * 4 + k]);
        EXPECT_EQ(at[tile.height], numbers[(26 + tile.row + i) * 4 + k]);
      }
    }
  }
}

TYPED_TEST(MatMulTest, GatedUpProjectionIsTwoProductsAndAGate) {
  using T = TypeParam;
  for (const auto& [rows, k, width] : {std::tuple{7, 26, 78},
                                       {33, 5, 7},
                                       {16, 600, 4},
                                       {1, 1, 1},
                                       {32, 3, 1},
                                       {32, 3, 2},
                                       {32, 600, 3},
                                       {40, 3, 4},
                                       {40, 3, 5},
                                       {40, 600, 6},
                                       {1, 26, 78},
                                       {1, 600, 5},
                                       {1, 3, 29}}) {
    PanelBuffer<T> x(rows, k, 1);
    const std::vector<T> numbers = RandomNumbers<T>(2 * width * k, 2);
    const auto w1 = MatrixView<T>::RowMajor(numbers.data(), width, k);
    const auto w2 = MatrixView<T>::RowMajor(numbers.data() + width * k, width, k);
    const std::vector<T> bias1 = RandomNumbers<T>(width, 3);
    const std::vector<T> bias2 = RandomNumbers<T>(width, 4);
    PackedMatrix<T> w;
    w.PackPair(w1, w2);
    for (const Activation activation :
         {Activation::kGelu, Activation::kRelu, Activation::kSwish, Activation::kIdentity}) {
      for (const bool full : {true, false}) {
        PanelBuffer<T> h(rows, width, 5), first(rows, width, 6), second(rows, width, 7);
        GatedUpProjection<T>(w, x.read(), full ? bias1.data() : nullptr,
                             full ? bias2.data() : nullptr, activation, h.view(),
                             full ? first.view() : Panels<T>{}, full ? second.view() : Panels<T>{});
        for (int64_t row = 0; row < rows; ++row) {
          const std::vector<T> in = RowOf(x.read(), row);
          for (int64_t j = 0; j < width; ++j) {
            T p = ReferenceSum(w1, j, in);
            T q = ReferenceSum(w2, j, in);
            if (full) p += bias1[j];
            if (full) q += bias2[j];
            const ValueAndSlope<T> act = ActivateOne(activation, p);
            ASSERT_EQ(h.view().At(row, j), act.value * q);
            if (!full) continue;
            ASSERT_EQ(first.view().At(row, j), q * act.slope);
            ASSERT_EQ(second.view().At(row, j), act.value);
          }
        }
      }
    }
  }
}

// Gradients of padded rows are 0, and stay so.
TYPED_TEST(MatMulTest, PaddedRowsOfZeroStayZero) {
  using T = TypeParam;
  const std::vector<T> w = RandomNumbers<T>(29 * 13, 1);
  const PackedMatrix<T> a = Packed(MatrixView<T>::RowMajor(w.data(), 29, 13));
  for (const int64_t rows : {1, 5, 17}) {
    PanelBuffer<T> x(rows, 13, 2), y(rows, 29, 3), factor(rows, 29, 4);
    x.ZeroPadding();
    const std::array<Panels<const T>, 1> segment = {x.read()};
    Epilogue<T> epilogue;
    epilogue.multiplier = factor.read();
    MatMul<T>(a, segment, y.view(), epilogue);
    for (int64_t row = rows; row % kPanelRows != 0; ++row) {
      for (int64_t j = 0; j < 29; ++j) ASSERT_EQ(y.view().At(row, j), 0) << rows;
    }
  }
}

TEST(MatMulTest, FloatIsCloseToDouble) {
  PanelBuffer<float> x(32, 390, 1);
  PanelBuffer<double> x_double(32, 390, 1);
  PanelBuffer<float> y(32, 78, 2);
  PanelBuffer<double> y_double(32, 78, 2);
  const std::vector<float> w = RandomNumbers<float>(78 * 390, 3);
  const std::vector<double> w_double = RandomNumbers<double>(78 * 390, 3);
  const std::array<Panels<const float>, 1> segment = {x.read()};
  const std::array<Panels<const double>, 1> segment_double = {x_double.read()};
  MatMul<float>(Packed(MatrixView<float>::RowMajor(w.data(), 78, 390)), segment, y.view(), {});
  MatMul<double>(Packed(MatrixView<double>::RowMajor(w_double.data(), 78, 390)), segment_double,
                 y_double.view(), {});
  constexpr double kTolerance = 2e-5;  // 390 roundings of sums near 10, half an ulp of 5e-7 each
  for (int64_t row = 0; row < 32; ++row) {
    for (int64_t j = 0; j < 78; ++j) {
      ASSERT_NEAR(y.view().At(row, j), y_double.view().At(row, j), kTolerance);
    }
  }
}

}  // namespace
}  // namespace elastor
