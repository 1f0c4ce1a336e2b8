// Eigen's decompositions, which tests compare with: compiled once.
#ifndef ELASTOR_TESTS_CORE_SPECTRUM_DECOMPOSITIONS_H_
#define ELASTOR_TESTS_CORE_SPECTRUM_DECOMPOSITIONS_H_

#include <Eigen/Core>

namespace elastor {

// matrix = left * diag(values) * right^T, the values descending; left and right are thin.
struct SingularValueDecomposition {
  Eigen::MatrixXd left, right;
  Eigen::VectorXd values;
};

SingularValueDecomposition DecomposedByEigen(const Eigen::MatrixXd& matrix);

// Descending.
Eigen::VectorXd SingularValuesByEigen(const Eigen::MatrixXd& matrix);

// Of a symmetric matrix, ascending.
Eigen::VectorXd EigenvaluesByEigen(const Eigen::MatrixXd& matrix);

// The w of least norm that minimises ||a w - b||; singular values below `threshold` of the largest
// count as 0.
Eigen::MatrixXd LeastSquaresByEigen(const Eigen::MatrixXd& a, const Eigen::MatrixXd& b,
                                    double threshold);

// The square orthogonal factor of the QR decomposition of a square matrix.
Eigen::MatrixXd OrthogonalFactorByEigen(const Eigen::MatrixXd& matrix);

}  // namespace elastor

#endif  // ELASTOR_TESTS_CORE_SPECTRUM_DECOMPOSITIONS_H_
