// Products in bfloat16, bit for bit against their definition in matmul.h, which is also that of the
// instruction behind them.
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include "core/kernels/cpu/isa.h"
#include "core/kernels/matmul.h"
#include "gtest/gtest.h"
#include "tests/core/kernels/panel_testing.h"

namespace elastor {
namespace {

constexpr Precision kPrecision = Precision::kBFloat16;

// Denormals become zeros of the same sign.
float Flushed(float value) {
  return std::fpclassify(value) == FP_SUBNORMAL ? std::copysign(0.0f, value) : value;
}

// Rounded to bfloat16: to nearest, ties to even.
float Rounded(float value) {
  const uint32_t word = std::bit_cast<uint32_t>(Flushed(value));
  return std::bit_cast<float>((word + 0x7fff + (word >> 16 & 1)) & 0xffff0000);
}

// What vdpbf16ps does with one lane, of operands that are bfloat16.
float DotStep(float sum, std::array<float, 2> a, std::array<float, 2> b) {
  const auto fma = [](float x, float y, float z) {
    return Flushed(std::fma(Flushed(x), Flushed(y), Flushed(z)));
  };
  return fma(a[0], b[0], fma(a[1], b[1], sum));
}

// The sum over k of a(k) * x(k), in blocks of kReductionBlock pairs.
template <typename A, typename X>
float ReferenceSum(int64_t terms, A a, X x) {
  float total = 0;
  float sum = 0;
  for (int64_t k = 0; k < terms; k += 2) {
    if (k > 0 && k % (2 * kReductionBlock) == 0) {
      total = k == 2 * kReductionBlock ? sum : total + sum;
      sum = 0;
    }
    const bool pair = k + 1 < terms;
    sum = DotStep(sum, {Rounded(a(k)), pair ? Rounded(a(k + 1)) : 0},
                  {Rounded(x(k)), pair ? Rounded(x(k + 1)) : 0});
  }
  return terms > 2 * kReductionBlock ? total + sum : sum;
}

class BFloat16Test : public testing::Test {
 protected:
  void SetUp() override {
    if (!CpuHasBFloat16()) GTEST_SKIP() << "this CPU lacks AVX512-BF16";
  }
};

PackedMatrix<float> Packed(std::span<const MatrixView<float>> blocks) {
  PackedMatrix<float> packed(kPrecision);
  packed.Pack(blocks);
  return packed;
}

// One product of one pair, for numbers chosen by hand.
float OneStep(std::array<float, 2> a, std::array<float, 2> b) {
  PanelBuffer<float> x(1, 2, 1), y(1, 1, 2);
  for (int k = 0; k < 2; ++k) x.view().At(0, k) = b[k];
  const std::array<Panels<const float>, 1> segments = {x.read()};
  MatMul<float>(Packed({{MatrixView<float>::RowMajor(a.data(), 1, 2)}}), segments, y.view(), {});
  return y.view().At(0, 0);
}

TEST_F(BFloat16Test, OperandsAreRoundedToNearestEven) {
  const float ulp = 0x1p-7f;
  EXPECT_EQ(OneStep({1 + ulp / 2, 0}, {1, 0}), 1);                // a tie, down to even
  EXPECT_EQ(OneStep({1 + 3 * ulp / 2, 0}, {1, 0}), 1 + 2 * ulp);  // a tie, up to even
  EXPECT_EQ(OneStep({1, 0}, {1 + ulp / 2 + 0x1p-23f, 0}), 1 + ulp);
  EXPECT_EQ(OneStep({1, 0}, {-1 - ulp / 2 + 0x1p-23f, 0}), -1);
}

TEST_F(BFloat16Test, TheSecondTermIsAddedFirst) {
  PanelBuffer<float> x(1, 4, 1), y(1, 1, 2);
  for (int k = 0; k < 4; ++k) x.view().At(0, k) = 1;
  const std::vector<float> a = {0, 0x1p24f, -0x1p24f, 1};
  const std::array<Panels<const float>, 1> segments = {x.read()};
  MatMul<float>(Packed({{MatrixView<float>::RowMajor(a.data(), 1, 4)}}), segments, y.view(), {});
  // 2^24 + 1 is a tie, down to 2^24, before 2^24 is taken away; in the other order the sum is 1.
  EXPECT_EQ(y.view().At(0, 0), 0);
}

TEST_F(BFloat16Test, DenormalsAreZeros) {
  EXPECT_EQ(OneStep({0x1p-127f, 0}, {0x1p100f, 0}), 0);         // an operand
  EXPECT_EQ(OneStep({0x1.fffffcp-127f, 0}, {0x1p100f, 0}), 0);  // that would round to a normal one
  EXPECT_EQ(OneStep({0x1p-126f, 0}, {0.5f, 0}), 0);             // a result
  // A sum that is denormal between two steps does not come back.
  EXPECT_EQ(OneStep({0x1p-126f, 0x1p-126f}, {0.5f, 0.5f}), 0);
  EXPECT_EQ(OneStep({0x1p-126f, 0}, {1, 0}), 0x1p-126f);
}

TEST_F(BFloat16Test, ProductsHaveTheDocumentedOrder) {
  for (const auto& [rows, outputs, widths] :
       std::vector<std::tuple<int64_t, int64_t, std::vector<int64_t>>>{{1, 1, {1}},
                                                                       {7, 13, {26}},
                                                                       {33, 26, {78, 26}},
                                                                       {300, 5, {3, 5, 1, 4}},
                                                                       {16, 25, {0, 7, 7}},
                                                                       {40, 3, {700, 324}},
                                                                       {18, 13, {1025}},
                                                                       {5, 2, {1, 2100}}}) {
    int64_t terms = 0;
    std::vector<PanelBuffer<float>> buffers;
    std::vector<Panels<const float>> segments;
    for (const int64_t width : widths) {
      buffers.emplace_back(rows, width, static_cast<uint32_t>(10 + terms));
      terms += width;
    }
    for (auto& buffer : buffers) segments.push_back(buffer.read());
    std::vector<float> row_values(terms);
    const std::vector<float> weights = RandomNumbers<float>(outputs * terms, 1);
    const std::vector<float> bias = RandomNumbers<float>(outputs, 2);
    PanelBuffer<float> residual(rows, outputs, 3), y(rows, outputs, 4), split(rows, outputs, 5);
    Epilogue<float> epilogue;
    epilogue.bias = bias.data();
    epilogue.residual = residual.read();
    const auto all = MatrixView<float>::RowMajor(weights.data(), outputs, terms);
    MatMul<float>(Packed({{all}}), segments, y.view(), epilogue);
    // The same matrix packed from two blocks that cut a pair, the first of a transposed copy.
    const int64_t cut = terms / 2 | 1;
    std::vector<float> transposed(cut * outputs);
    for (int64_t j = 0; j < outputs; ++j) {
      for (int64_t k = 0; k < cut; ++k) transposed[k * outputs + j] = weights[j * terms + k];
    }
    const std::array<MatrixView<float>, 2> blocks = {
        MatrixView<float>::RowMajor(transposed.data(), cut, outputs).Transposed(),
        MatrixView<float>{weights.data() + cut, outputs, terms - cut, terms, 1}};
    MatMul<float>(Packed(blocks), segments, split.view(), epilogue);
    for (int64_t row = 0; row < rows; ++row) {
      int64_t k = 0;
      for (const auto& segment : segments) {
        for (int64_t f = 0; f < segment.features; ++f) row_values[k++] = segment.At(row, f);
      }
      for (int64_t j = 0; j < outputs; ++j) {
        const float sum = ReferenceSum(
            terms, [&](int64_t at) { return weights[j * terms + at]; },
            [&](int64_t at) { return row_values[at]; });
        const float expected = (sum + bias[j]) + residual.view().At(row, j);
        ASSERT_EQ(y.view().At(row, j), expected) << rows << " x " << terms << " to " << outputs;
        ASSERT_EQ(split.view().At(row, j), expected);
      }
    }
  }
}

TEST_F(BFloat16Test, EpilogueViewsOfLaterPanels) {
  constexpr int64_t kRows = 400;  // several portions
  constexpr int64_t kTerms = 390;
  constexpr int64_t kOutputs = 7;
  PanelBuffer<float> x(kRows, kTerms, 1);
  const std::vector<float> w = RandomNumbers<float>(kOutputs * kTerms, 2);
  PanelBuffer<float> derivative(kRows, kOutputs, 3), unscaled(kRows, kOutputs, 4),
      multiplier(kRows, kOutputs, 5), second(kRows, kOutputs, 6), by(kRows, kOutputs, 7),
      y(kRows, kOutputs, 8);
  const std::array<Panels<const float>, 1> segments = {x.read()};
  Epilogue<float> e;
  e.activation = Activation::kRelu;
  e.derivative = derivative.view();
  e.unscaled = unscaled.view();
  e.multiplier = multiplier.read();
  e.second_output = second.view();
  e.second_multiplier = by.read();
  MatMul<float>(Packed({{MatrixView<float>::RowMajor(w.data(), kOutputs, kTerms)}}), segments,
                y.view(), e);
  for (int64_t row = 0; row < kRows; ++row) {
    for (int64_t j = 0; j < kOutputs; ++j) {
      const float sum = ReferenceSum(
          kTerms, [&](int64_t k) { return w[j * kTerms + k]; },
          [&](int64_t k) { return x.view().At(row, k); });
      const float value = sum > 0 ? sum : 0;
      ASSERT_EQ(derivative.view().At(row, j), sum > 0 ? 1 : 0);
      ASSERT_EQ(unscaled.view().At(row, j), value);
      ASSERT_EQ(second.view().At(row, j), value * by.view().At(row, j));
      ASSERT_EQ(y.view().At(row, j), value * multiplier.view().At(row, j));
    }
  }
}

TEST_F(BFloat16Test, GatedUpProjection) {
  struct Shape {
    int rows, terms, width;
  };
  for (const Shape& shape :
       {Shape{300, 26, 78}, Shape{33, 5, 7}, Shape{16, 1030, 4}, Shape{1, 1, 1}}) {
    const int rows = shape.rows, terms = shape.terms, width = shape.width;
    PanelBuffer<float> x(rows, terms, 1);
    const std::vector<float> numbers = RandomNumbers<float>(2 * width * terms, 2);
    const std::vector<float> bias = RandomNumbers<float>(width, 3);
    PackedMatrix<float> w(kPrecision);
    w.PackPair(MatrixView<float>::RowMajor(numbers.data(), width, terms),
               MatrixView<float>::RowMajor(numbers.data() + width * terms, width, terms));
    PanelBuffer<float> h(rows, width, 5), first(rows, width, 6), second(rows, width, 7);
    GatedUpProjection<float>(w, x.read(), nullptr, bias.data(), Activation::kIdentity, h.view(),
                             first.view(), second.view());
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t j = 0; j < width; ++j) {
        const auto product = [&](int64_t matrix) {
          return ReferenceSum(
              terms, [&](int64_t k) { return numbers[(matrix * width + j) * terms + k]; },
              [&](int64_t k) { return x.view().At(row, k); });
        };
        const float p = product(0);
        const float q = product(1) + bias[j];
        ASSERT_EQ(h.view().At(row, j), p * q);
        ASSERT_EQ(first.view().At(row, j), q);
        ASSERT_EQ(second.view().At(row, j), p);
      }
    }
  }
}

TEST_F(BFloat16Test, WeightGradientsSumPairsOfRowsInEightChains) {
  for (const int64_t rows : {1, 2, 15, 16, 17, 40, 48, 256}) {
    for (const auto& [outputs, features] : {std::pair{1, 1}, {3, 7}, {26, 13}, {7, 121}}) {
      PanelBuffer<float> dy_all(rows, 2 * outputs, 1), x_all(rows, 3 * features, 2);
      dy_all.ZeroPadding();
      const Panels<const float> dy = dy_all.view().Every(1, 2, outputs);
      const Panels<const float> x = x_all.view().Every(0, 3, features);
      const std::vector<float> before = RandomNumbers<float>(outputs * features, 3);
      std::vector<float> overwritten = before;
      std::vector<float> added = before;
      WeightGradient<float>(dy, x, overwritten.data(), features, Store::kOverwrite, kPrecision);
      WeightGradient<float>(dy, x, added.data(), features, Store::kAdd, kPrecision);
      for (int64_t j = 0; j < outputs; ++j) {
        for (int64_t k = 0; k < features; ++k) {
          float chain[8] = {};
          for (int64_t pair = 0; pair < dy.panels() * 8; ++pair) {
            const auto rounded = [&](Panels<const float> view, int64_t f) {
              return std::array{Rounded(view.At(2 * pair, f)), Rounded(view.At(2 * pair + 1, f))};
            };
            chain[pair % 8] = DotStep(chain[pair % 8], rounded(dy, j), rounded(x, k));
          }
          const float sum = ((chain[0] + chain[4]) + (chain[2] + chain[6])) +
                            ((chain[1] + chain[5]) + (chain[3] + chain[7]));
          ASSERT_EQ(overwritten[j * features + k], sum)
              << rows << ": " << outputs << " x " << features;
          ASSERT_EQ(added[j * features + k], before[j * features + k] + sum);
        }
      }
    }
  }
}

TEST_F(BFloat16Test, WeightGradientsOfSeveralLeavesFollowTheirTree) {
  constexpr int64_t kOutputs = 5;
  constexpr int64_t kFeatures = 19;
  const std::array<int64_t, 5> offsets = {0, 16, 33, 33, 73};  // panels of each leaf: 1, 2, 0, 3
  const PassLeaves leaves(/*first_leaf=*/0, offsets);
  PanelBuffer<float> dy(leaves.rows(), kOutputs, 1), x(leaves.rows(), kFeatures, 2);
  for (const LeafRows& leaf : leaves.leaves()) {
    for (int64_t row = leaf.rows; row % kPanelRows != 0; ++row) {
      for (int64_t j = 0; j < kOutputs; ++j) {
        dy.view().At(leaf.first_panel * kPanelRows + row, j) = 0;
      }
    }
  }
  const auto gradient_of = [&](const LeafRows& leaf) {
    std::vector<float> dw(kOutputs * kFeatures);
    WeightGradient<float>(leaf.Of(dy.read()), leaf.Of(x.read()), dw.data(), kFeatures,
                          Store::kOverwrite, kPrecision);
    return dw;
  };
  ASSERT_EQ(leaves.leaves().size(), 3u);
  const auto a = gradient_of(leaves.leaves()[0]);
  const auto b = gradient_of(leaves.leaves()[1]);
  const auto c = gradient_of(leaves.leaves()[2]);
  std::vector<float> all(kOutputs * kFeatures);
  WeightGradient<float>(leaves.leaves(), dy.read(), x.read(), all.data(), kFeatures,
                        Store::kOverwrite, kPrecision);
  for (size_t i = 0; i < all.size(); ++i) ASSERT_EQ(all[i], (a[i] + b[i]) + c[i]);
}

}  // namespace
}  // namespace elastor
