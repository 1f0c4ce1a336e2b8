#include "core/spectrum/spectrum.h"

#include <gtest/gtest.h>

#include <Eigen/Core>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "core/base/random.h"
#include "core/kernels/cpu/isa.h"
#include "core/spectrum/low_rank.h"
#include "core/spectrum/spectrum_kernels.h"
#include "tests/core/spectrum/decompositions.h"

namespace elastor {
namespace {

using Eigen::MatrixXd;

// Relative to the largest singular value. Ranks and large singular values are good to about 1e-15;
// the Gram matrix squares small ones, so they are only good to about 1e-8.
constexpr double kTolerance = 1e-12;
constexpr double kSmallValueTolerance = 1e-7;

MatrixXd RandomMatrix(int64_t tokens, int64_t width, uint64_t stream) {
  MatrixXd matrix(tokens, width);
  FillNormal(1, stream, 1, matrix.size(), matrix.data());
  return matrix;
}

// Measures `matrix` as row 18 of panels of 20 rows whose other rows hold noise.
template <typename T>
struct Measured {
  explicit Measured(const MatrixXd& matrix, bool unit_tokens = false)
      : spectrum(matrix.rows(), matrix.cols(), unit_tokens),
        memory(PanelElements(20, matrix.size())) {
    constexpr int64_t kRow = 18;
    FillNormal(2, 0, 1, static_cast<int64_t>(memory.size()), memory.data());
    const Panels<T> x = {memory.data(), 20, matrix.size(), PanelStride(matrix.size())};
    for (int64_t t = 0; t < matrix.rows(); ++t) {
      for (int64_t d = 0; d < matrix.cols(); ++d) {
        x.At(kRow, t * matrix.cols() + d) = static_cast<T>(matrix(t, d));
      }
    }
    spectrum.template Measure<T>(x, kRow / Spectrum::kRows * Spectrum::kRows);
    constexpr int64_t kPlace = kRow % Spectrum::kRows;
    rank = spectrum.rank(kPlace);
    for (int64_t n = 0; n < spectrum.max_rank(); ++n) {
      singular_values.push_back(spectrum.singular_value(n, kPlace));
    }
  }

  Spectrum spectrum;
  std::vector<T> memory;
  EffectiveRank rank;
  std::vector<double> singular_values;
};

EffectiveRank RanksOf(const Eigen::VectorXd& singular_values) {
  const double sum = singular_values.sum();
  double entropy = 0;
  for (const double s : singular_values) {
    if (s > 0) entropy -= s / sum * std::log(s / sum);
  }
  return {singular_values.squaredNorm() / (singular_values[0] * singular_values[0]),
          std::exp(entropy)};
}

TEST(SpectrumTest, IdentityHasFullRank) {
  for (const int64_t width : {7, 10}) {
    const Measured<float> measured(MatrixXd::Identity(7, width));
    EXPECT_NEAR(measured.rank.stable, 7, kTolerance);
    EXPECT_NEAR(measured.rank.entropy, 7, kTolerance);
  }
}

TEST(SpectrumTest, OuterProductHasRankOne) {
  const MatrixXd matrix = RandomMatrix(15, 1, 1) * RandomMatrix(1, 26, 2);
  const Measured<double> measured(matrix);
  EXPECT_NEAR(measured.rank.stable, 1, kTolerance);
  // The fourteen small values are noise of about 1e-8 or cut to 0.
  EXPECT_NEAR(measured.rank.entropy, 1, 14 * 20 * kSmallValueTolerance);
  EXPECT_NEAR(measured.singular_values[0], matrix.norm(), kTolerance * matrix.norm());
}

TEST(SpectrumTest, RotatedDiagonalHasItsSingularValues) {
  const Eigen::Vector4d values(8, 4, 2, 2);
  const MatrixXd left = OrthogonalFactorByEigen(RandomMatrix(4, 4, 3));
  const MatrixXd right = OrthogonalFactorByEigen(RandomMatrix(6, 6, 4));
  const MatrixXd matrix = left * values.asDiagonal() * right.topRows(4);
  const Measured<double> measured(matrix);
  ASSERT_EQ(measured.singular_values.size(), 4u);
  for (int i = 0; i < 4; ++i) {
    EXPECT_NEAR(measured.singular_values[i], values[i], 8 * kTolerance);
  }
  // p = 1/2, 1/4, 1/8, 1/8: entropy 7/4 bits.
  EXPECT_NEAR(measured.rank.stable, (64 + 16 + 4 + 4) / 64.0, kTolerance);
  EXPECT_NEAR(measured.rank.entropy, std::pow(2, 1.75), kTolerance);
}

TEST(SpectrumTest, AgreesWithASingularValueDecomposition) {
  for (const auto& [tokens, width] :
       {std::pair{15, 26}, std::pair{26, 15}, std::pair{26, 26}, std::pair{1, 5}, std::pair{5, 1},
        std::pair{24, 48}, std::pair{2, 2}, std::pair{39, 20}}) {
    for (uint64_t stream = 0; stream < 5; ++stream) {
      const MatrixXd matrix = RandomMatrix(tokens, width, 10 + stream);
      const Eigen::VectorXd expected = SingularValuesByEigen(matrix);
      const EffectiveRank expected_rank = RanksOf(expected);
      const Measured<double> measured(matrix);
      const std::vector<double>& values = measured.singular_values;
      ASSERT_EQ(static_cast<int64_t>(values.size()), expected.size());
      for (int64_t i = 0; i < expected.size(); ++i) {
        EXPECT_NEAR(values[i], expected[i], kSmallValueTolerance * expected[0]);
      }
      EXPECT_NEAR(values[0], expected[0], kTolerance * expected[0]);
      EXPECT_NEAR(measured.rank.stable, expected_rank.stable, kTolerance * tokens);
      EXPECT_NEAR(measured.rank.entropy, expected_rank.entropy, kSmallValueTolerance * tokens);
    }
  }
}

TEST(SpectrumTest, RankDeficientMatrix) {
  const MatrixXd matrix = RandomMatrix(15, 4, 1) * RandomMatrix(4, 26, 2);
  const Eigen::VectorXd expected = SingularValuesByEigen(matrix);
  const Measured<double> measured(matrix);
  for (int64_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(measured.singular_values[i], expected[i], kTolerance * expected[0]);
  }
  for (int64_t i = 4; i < 15; ++i) EXPECT_EQ(measured.singular_values[i], 0) << i;
  EXPECT_NEAR(measured.rank.entropy, RanksOf(expected).entropy, 1e-9);
}

TEST(SpectrumTest, UnitTokensHaveTheRanksOfTheirDirections) {
  for (const auto& [tokens, width] : {std::pair{7, 10}, std::pair{10, 7}, std::pair{5, 5}}) {
    MatrixXd matrix = RandomMatrix(tokens, width, 30);
    matrix.row(1) *= 1000;
    matrix.row(3).setZero();
    MatrixXd directions = matrix;
    for (int64_t t = 0; t < tokens; ++t) {
      if (t != 3) directions.row(t).normalize();
    }
    const Measured<double> found(matrix, /*unit_tokens=*/true);
    const Measured<double> expected(directions);
    EXPECT_NEAR(found.rank.stable, expected.rank.stable, kTolerance * tokens);
    EXPECT_NEAR(found.rank.entropy, expected.rank.entropy, kSmallValueTolerance * tokens);
    EXPECT_GT(found.rank.stable, Measured<double>(matrix).rank.stable + 1);
  }
}

// Each row next to others, at other places.
TEST(SpectrumTest, ARowsBitsDoNotDependOnItsNeighbours) {
  constexpr int64_t kRows = 64;
  constexpr int64_t kTokens = 5, kWidth = 7;
  std::vector<float> memory(PanelElements(kRows, kTokens * kWidth));
  FillNormal(3, 0, 1, static_cast<int64_t>(memory.size()), memory.data());
  const Panels<float> x = {memory.data(), kRows, kTokens * kWidth, PanelStride(kTokens * kWidth)};
  std::vector<float> turned_memory(memory.size());
  const Panels<float> turned = {turned_memory.data(), x.rows, x.features, x.panel_stride};
  const auto place_of = [](int64_t row) { return (row * 37 + 11) % kRows; };
  for (int64_t row = 0; row < kRows; ++row) {
    // Some rows converge at once, some late.
    if (row % 5 == 0) x.At(row, 3) = 1e6f;
    for (int64_t f = 0; f < x.features; ++f) {
      if (row % 7 == 0) x.At(row, f) = 0;
      if (row % 11 == 10) x.At(row, f) = std::numeric_limits<float>::infinity();
      turned.At(place_of(row), f) = x.At(row, f);
    }
  }
  Spectrum spectrum(kTokens, kWidth);
  Spectrum other(kTokens, kWidth);
  for (int64_t row = 0; row < kRows; ++row) {
    const int64_t place = place_of(row);
    spectrum.Measure<float>(x, row / Spectrum::kRows * Spectrum::kRows);
    other.Measure<float>(turned, place / Spectrum::kRows * Spectrum::kRows);
    const EffectiveRank a = spectrum.rank(row % Spectrum::kRows);
    const EffectiveRank b = other.rank(place % Spectrum::kRows);
    EXPECT_EQ(std::bit_cast<uint64_t>(a.stable), std::bit_cast<uint64_t>(b.stable)) << row;
    EXPECT_EQ(std::bit_cast<uint64_t>(a.entropy), std::bit_cast<uint64_t>(b.entropy)) << row;
    EXPECT_EQ(std::isnan(a.stable), row % 11 == 10) << row;
  }
}

#ifndef __aarch64__
// Every kernel of both instruction sets, on matrices of many kinds side by side.
TEST(SpectrumTest, TheSameBitsByEveryInstructionSet) {
  if (!CpuHas(Isa::kV4)) GTEST_SKIP() << "this CPU lacks AVX-512";
  for (const int64_t n : {1, 2, 15, 20}) {
    const int64_t columns = n + 11;
    std::vector<double> matrix(n * columns * kSpectrumLanes);
    FillNormal(4, n, 1, static_cast<int64_t>(matrix.size()), matrix.data());
    for (size_t i = 0; i < matrix.size(); ++i) {
      const size_t lane = i % kSpectrumLanes;
      if (lane % 5 == 0) matrix[i] *= static_cast<double>(i % 37 == 0) * 1e3;  // sparse
      if (lane % 5 == 1) matrix[i] = 1 + 1e-9 * matrix[i];                     // nearly rank one
    }
    std::vector<double> results[2];
    for (const SpectrumKernels* kernels : {&v3::kSpectrumKernels, &v4::kSpectrumKernels}) {
      std::vector<double> lower(n * (n + 1) / 2 * kSpectrumLanes);
      std::vector<double> eigenvalues(n * kSpectrumLanes), singular_values(n * kSpectrumLanes);
      std::vector<double> scratch(kEigenvalueScratch * n * kSpectrumLanes);
      std::vector<double> entropy_rank(kSpectrumLanes);
      kernels->gram(matrix.data(), n, columns, lower.data());
      std::vector<double>& all = results[kernels == &v4::kSpectrumKernels];
      all = lower;
      ASSERT_TRUE(kernels->eigenvalues(n, lower.data(), eigenvalues.data(), scratch.data()));
      kernels->entropy_rank(n, eigenvalues.data(), singular_values.data(), entropy_rank.data());
      for (const auto& part : {eigenvalues, singular_values, entropy_rank}) {
        all.insert(all.end(), part.begin(), part.end());
      }
    }
    EXPECT_EQ(std::memcmp(results[0].data(), results[1].data(), results[0].size() * 8), 0) << n;
  }
}
#endif

TEST(SpectrumTest, DoesNotDependOnScale) {
  const MatrixXd matrix = RandomMatrix(15, 26, 20);
  const EffectiveRank rank = Measured<float>(matrix).rank;
  const EffectiveRank scaled = Measured<float>(matrix * 0x1p-40).rank;
  EXPECT_EQ(rank.stable, scaled.stable);
  EXPECT_EQ(rank.entropy, scaled.entropy);
}

TEST(SpectrumTest, ZeroMatrixHasRankZero) {
  const Measured<float> measured(MatrixXd::Zero(4, 6));
  EXPECT_EQ(measured.rank.stable, 0);
  EXPECT_EQ(measured.rank.entropy, 0);
  for (const double value : measured.singular_values) EXPECT_EQ(value, 0);
}

TEST(SpectrumTest, NonFiniteMatrixHasNoRank) {
  MatrixXd matrix = RandomMatrix(4, 6, 21);
  for (const double bad :
       {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    matrix(2, 3) = bad;
    const Measured<float> measured(matrix);
    EXPECT_TRUE(std::isnan(measured.rank.stable));
    EXPECT_TRUE(std::isnan(measured.rank.entropy));
    EXPECT_TRUE(std::isnan(measured.singular_values[0]));
  }
}

// The sums of the first terms are the best approximations; a matrix of rank 2 has no third term.
TEST(LowRankTest, SumsOfTermsAreEigensApproximations) {
  using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  for (const auto& [tokens, width] : {std::pair(5, 9), std::pair(9, 5), std::pair(6, 6)}) {
    for (const int64_t inner : {int64_t{2}, int64_t{6}}) {
      const RowMajor x = RandomMatrix(tokens, inner, 3) * RandomMatrix(inner, width, 4);
      const SingularValueDecomposition svd = DecomposedByEigen(x);
      LowRank terms(tokens, width);
      terms.Decompose({x.data(), static_cast<size_t>(x.size())});
      RowMajor sum = RowMajor::Zero(tokens, width);
      for (int64_t k = 1; k <= terms.max_rank(); ++k) {
        terms.AddTerm(k - 1, {sum.data(), static_cast<size_t>(sum.size())});
        const MatrixXd best = svd.left.leftCols(k) * svd.values.head(k).asDiagonal() *
                              svd.right.leftCols(k).transpose();
        EXPECT_LT((sum - best).norm(), kTolerance * x.norm()) << k << " of " << inner;
      }
    }
  }
}

TEST(LowRankTest, EndsOnWhatIsNotFinite) {
  std::vector<double> x(12, 1);
  x[5] = std::numeric_limits<double>::quiet_NaN();
  LowRank terms(3, 4);
  terms.Decompose(x);
  std::vector<double> sum(12);
  terms.AddTerm(0, sum);
  EXPECT_TRUE(std::isnan(sum[5]));
}

}  // namespace
}  // namespace elastor
