#ifndef ELASTOR_CORE_CONDITIONING_DYNAMICS_H_
#define ELASTOR_CORE_CONDITIONING_DYNAMICS_H_

#include <Eigen/Core>
#include <cstdint>
#include <vector>

#include "core/conditioning/two_layer.h"
#include "core/kernels/matmul.h"
#include "core/spectrum/symmetric_matrix.h"

namespace elastor {

// Gradient descent of the networks of two_layer.h on the squared error e = z(X) - y, section 4 of
// "The Devil is in the Condition Numbers" (arXiv:2605.20749). Losses are |e|^2 / 2n. The step size
// eta is for descent on |e|^2 / 2, so that e_{k+1} = (I - eta K) e_k, eq. (9), in the kernel
// regime; for descent on the loss itself the same step has size n eta.

// The expected loss in the kernel regime, Proposition 4.1:
//   E[L_k] = (Tr[(I - eta K)^{2k} Sigma] + y^T (I - eta K)^{2k} y) / 2n,
// Sigma the covariance of the outputs at initialisation. The paper prints K for Sigma; Sigma is
// K / m where m is large (OutputCovariances).
class ExpectedLoss {
 public:
  // `kernel`: the eigendecomposition of K, with vectors.
  ExpectedLoss(const Eigendecomposition& kernel, const Eigen::MatrixXd& covariance,
               const Eigen::VectorXd& y);

  double At(double eta, int64_t step) const;
  double lambda_max() const { return eigenvalues_[eigenvalues_.size() - 1]; }

 private:
  Eigen::VectorXd eigenvalues_;  // ascending
  Eigen::VectorXd weights_;      // weights of the powers (1 - eta lambda)^{2k}
};

// Returns the steps k in [1, most] at which plain.At - gated.At has another sign than at k - 1. The
// search uses a grid of ratio 1.01, so it may miss two crossings that are nearer to each other.
std::vector<int64_t> Crossings(const ExpectedLoss& plain, const ExpectedLoss& gated, double eta,
                               int64_t most);

enum class Network { kPlain, kGated };

// Returns the losses before and after each of `steps` steps of the network of m hidden units with
// the weights of FiniteKernels(x, activation, m, seed): steps + 1 values.
std::vector<double> TrainingLosses(const Eigen::MatrixXd& x, const Eigen::VectorXd& y,
                                   Network network, Activation activation, int64_t m, double eta,
                                   int64_t steps, uint64_t seed);

// Returns the outputs z_0 = 0, z_1, ..., z_steps in the kernel regime, one column each.
Eigen::MatrixXd OutputTrajectory(const Eigen::MatrixXd& kernel, const Eigen::VectorXd& y,
                                 double eta, int64_t steps);

}  // namespace elastor

#endif  // ELASTOR_CORE_CONDITIONING_DYNAMICS_H_
