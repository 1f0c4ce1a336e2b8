#ifndef ELASTOR_CORE_CONDITIONING_APPROXIMATIONS_H_
#define ELASTOR_CORE_CONDITIONING_APPROXIMATIONS_H_

#include <Eigen/Core>
#include <cstdint>

namespace elastor {

// Statements of appendix B of "The Devil is in the Condition Numbers" (arXiv:2605.20749) about the
// ReLU and ReGLU kernels (two_layer.h), as printed there and corrected.

// Proposition B.1: the plain kernel to first order of the cosines, eq. (10), and to second, which
// is eq. (14); the gated kernel to second, eqs. (11) and (15). Exact on the diagonal.
Eigen::MatrixXd LinearisedPlainKernel(const Eigen::MatrixXd& x, double m);
Eigen::MatrixXd QuadraticPlainKernel(const Eigen::MatrixXd& x, double m);
Eigen::MatrixXd QuadraticGatedKernel(const Eigen::MatrixXd& x, double m);

// Extreme eigenvalues for n Gaussian inputs of d dimensions.
struct EigenvalueEstimates {
  double plain_max = 0;
  double gated_max_lower = 0;  // the bound that the paper's figure 2 uses for gated_max
  double gated_max_upper = 0;
  double plain_min = 0;
  double gated_min = 0;

  double plain_condition_number() const { return plain_max / plain_min; }
  double gated_condition_number() const { return gated_max_lower / gated_min; }
};
// Returns the estimates of propositions B.6 and B.9 as printed.
EigenvalueEstimates PrintedEstimates(int64_t n, int64_t d, double m);
// Returns the same with two corrections: the term 2 sqrt(n d) of lambda_1(X X^T), which B.6's upper
// bound leaves out, and the second order of eq. (14) in plain_min: its smallest eigenvalue is (m /
// 4 pi + d / 2 pi) s~^2 where the linearised kernel's diagonal counts m / 4 pi + d / 2 pi.
EigenvalueEstimates CorrectedEstimates(int64_t n, int64_t d, double m);

// Tr(K^2 - K~^2) for n Gaussian inputs and m to infinity, in the proof of Corollary 4.2. Printed:
// the part off the diagonal has a factor 1/d too many. (Its (5 d + 2) in the line before stands for
// (5 d + 12), which the sum printed last has.)
double PrintedTraceDifference(int64_t n, int64_t d, double m);
double CorrectedTraceDifference(int64_t n, int64_t d, double m);

}  // namespace elastor

#endif  // ELASTOR_CORE_CONDITIONING_APPROXIMATIONS_H_
