#include "core/spectrum/symmetric_eigenvalues.h"

#include <gtest/gtest.h>

#include <Eigen/Eigenvalues>
#include <cmath>
#include <vector>

#include "core/base/random.h"

namespace elastor {
namespace {

using Eigen::MatrixXd;

constexpr double kTolerance = 1e-14;  // of the largest, times n

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
        Eigen::SelfAdjointEigenSolver<MatrixXd>(matrices[lane], Eigen::EigenvaluesOnly)
            .eigenvalues();
    const double scale = expected.cwiseAbs().maxCoeff();
    for (int64_t i = 0; i < n; ++i) {
      EXPECT_NEAR(solver.Value(i)[lane], expected[n - 1 - i],
                  kTolerance * static_cast<double>(n) * scale)
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

}  // namespace
}  // namespace elastor
