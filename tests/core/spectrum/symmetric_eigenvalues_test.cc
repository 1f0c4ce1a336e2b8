#include "core/spectrum/symmetric_eigenvalues.h"

#include <gtest/gtest.h>

#include <Eigen/Core>
#include <cmath>
#include <numbers>
#include <vector>

#include "core/base/random.h"
#include "core/spectrum/symmetric_matrix.h"
#include "tests/core/spectrum/decompositions.h"

namespace elastor {
namespace {

using Eigen::MatrixXd;

constexpr double kRelativeError = 1e-14;  // of the largest, times n

MatrixXd RandomSymmetric(int64_t n, uint64_t stream) {
  MatrixXd matrix(n, n);
  FillNormal(1, stream, 1, matrix.size(), matrix.data());
  return matrix + matrix.transpose();
}

// All of one size, one a lane.
void ExpectEigenvalues(const std::vector<MatrixXd>& matrices) {
  const int64_t n = matrices[0].rows();
  SymmetricEigenvalues solver(n);
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j <= i; ++j) {
      for (int64_t lane = 0; lane < SymmetricEigenvalues::kMatrices; ++lane) {
        solver.Element(i, j)[lane] = matrices[lane % matrices.size()](i, j);
      }
    }
  }
  solver.Compute();
  for (size_t lane = 0; lane < matrices.size(); ++lane) {
    const Eigen::VectorXd expected =  // ascending
        EigenvaluesByEigen(matrices[lane]);
    const double scale = expected.cwiseAbs().maxCoeff();
    for (int64_t i = 0; i < n; ++i) {
      EXPECT_NEAR(solver.Value(i)[lane], expected[n - 1 - i],
                  kRelativeError * static_cast<double>(n) * scale)
          << "matrix " << lane << " of size " << n << ", value " << i;
    }
  }
}

TEST(SymmetricEigenvaluesTest, RandomMatricesOfManySizes) {
  for (const int64_t n : {1, 2, 3, 4, 5, 8, 15, 26, 40}) {
    for (uint64_t stream = 0; stream < 5; ++stream) {
      std::vector<MatrixXd> matrices;
      for (uint64_t lane = 0; lane < SymmetricEigenvalues::kMatrices; ++lane) {
        matrices.push_back(RandomSymmetric(n, SymmetricEigenvalues::kMatrices * stream + lane));
      }
      ExpectEigenvalues(matrices);
    }
  }
}

// What an iteration stumbles over: nothing to do, equal values, blocks that fall apart, values of
// very different sizes.
TEST(SymmetricEigenvaluesTest, SpecialMatrices) {
  constexpr int64_t kN = 12;
  MatrixXd exchange = MatrixXd::Zero(kN, kN);  // +-1, no diagonal
  for (int64_t i = 0; i < kN; ++i) exchange(i, kN - 1 - i) = 1;
  MatrixXd laplace = 2 * MatrixXd::Identity(kN, kN);
  for (int64_t i = 0; i + 1 < kN; ++i) laplace(i, i + 1) = laplace(i + 1, i) = -1;
  MatrixXd blocks = MatrixXd::Zero(kN, kN);
  for (int64_t b = 0; b < kN; b += 3) blocks.block(b, b, 3, 3) = RandomSymmetric(3, b);
  MatrixXd graded = RandomSymmetric(kN, 7);
  for (int64_t i = 0; i < kN; ++i) {
    for (int64_t j = 0; j < kN; ++j) graded(i, j) *= std::pow(10.0, -static_cast<double>(i + j));
  }
  Eigen::VectorXd diagonal = Eigen::VectorXd::LinSpaced(kN, -3, 8);
  ExpectEigenvalues({MatrixXd::Zero(kN, kN), MatrixXd::Identity(kN, kN), MatrixXd::Ones(kN, kN),
                     exchange, laplace, blocks, graded, diagonal.asDiagonal()});
  // As RankElastor's tokens may be: one direction far above the rest, and what is below the
  // rounding error of it.
  const MatrixXd collapsed = MatrixXd::Ones(kN, kN) + 1e-13 * RandomSymmetric(kN, 8);
  ExpectEigenvalues({collapsed, MatrixXd(collapsed.transpose() * collapsed), graded * 1e-120,
                     graded.colwise().reverse().rowwise().reverse(), laplace * 1e150,
                     MatrixXd::Ones(kN, kN) * 1e-300, blocks * -1,
                     MatrixXd::Identity(kN, kN) + 1e-12 * exchange, exchange * 1e10,
                     MatrixXd(diagonal.asDiagonal()) + 1e-8 * laplace});
}

// The second difference has the eigenvalues 2 - 2 cos(pi i / (n + 1)). What stands above the
// diagonal is not read.
TEST(SymmetricMatrixTest, ValuesAndVectorsOfTheSecondDifference) {
  constexpr int64_t kN = 60;
  std::vector<double> matrix(kN * kN, 0);
  for (int64_t i = 0; i < kN; ++i) {
    matrix[i * kN + i] = 2;
    if (i > 0) matrix[i * kN + i - 1] = -1;
    for (int64_t j = i + 1; j < kN; ++j) matrix[i * kN + j] = 1000;
  }
  const Eigendecomposition both = Decompose(matrix, kN);
  const std::vector<double> values = EigenvaluesOf(matrix, kN);
  for (int64_t k = 0; k < kN; ++k) {
    const double expected =
        2 - 2 * std::cos(std::numbers::pi * static_cast<double>(k + 1) / (kN + 1));
    EXPECT_NEAR(values[k], expected, 1e-13);
    EXPECT_NEAR(both.values[k], expected, 1e-13);
    const double* v = &both.vectors[k * kN];
    for (int64_t i = 0; i < kN; ++i) {
      const double product = 2 * v[i] - (i > 0 ? v[i - 1] : 0) - (i + 1 < kN ? v[i + 1] : 0);
      EXPECT_NEAR(product, expected * v[i], 1e-13);
    }
  }
}

TEST(SymmetricMatrixTest, ConditioningSaysWhereDoubleCannotTell) {
  const Conditioning good = ConditioningOf(std::vector<double>{0.5, 1, 2});
  EXPECT_TRUE(good.resolved());
  EXPECT_EQ(good.rank, 3);
  EXPECT_EQ(good.condition_number(), 4);
  // A Gram matrix of 40 rows in 7 dimensions.
  constexpr int64_t kN = 40, kD = 7;
  MatrixXd rows(kN, kD);
  FillNormal(1, 99, 1, rows.size(), rows.data());
  const MatrixXd gram = rows * rows.transpose();
  const Conditioning singular = ConditioningOf(EigenvaluesOf({gram.data(), kN * kN}, kN));
  EXPECT_FALSE(singular.resolved());
  EXPECT_EQ(singular.rank, kD);
  EXPECT_TRUE(std::isnan(singular.condition_number()));
  EXPECT_EQ(ConditioningOf(std::vector<double>{0, 0}).rank, 0);
}

}  // namespace
}  // namespace elastor
