#include "tests/core/spectrum/decompositions.h"

#include <Eigen/Eigenvalues>
#include <Eigen/QR>
#include <Eigen/SVD>

namespace elastor {

using Eigen::MatrixXd;
using Eigen::VectorXd;

namespace {

using Svd = Eigen::JacobiSVD<MatrixXd>;

constexpr int kThin = Eigen::ComputeThinU | Eigen::ComputeThinV;

}  // namespace

SingularValueDecomposition DecomposedByEigen(const MatrixXd& matrix) {
  const Svd svd(matrix, kThin);
  return {svd.matrixU(), svd.matrixV(), svd.singularValues()};
}

VectorXd SingularValuesByEigen(const MatrixXd& matrix) { return Svd(matrix).singularValues(); }

VectorXd EigenvaluesByEigen(const MatrixXd& matrix) {
  return Eigen::SelfAdjointEigenSolver<MatrixXd>(matrix, Eigen::EigenvaluesOnly).eigenvalues();
}

MatrixXd LeastSquaresByEigen(const MatrixXd& a, const MatrixXd& b, double threshold) {
  Svd svd(a, kThin);
  svd.setThreshold(threshold);
  return svd.solve(b);
}

MatrixXd OrthogonalFactorByEigen(const MatrixXd& matrix) {
  return Eigen::HouseholderQR<MatrixXd>(matrix).householderQ();
}

}  // namespace elastor
