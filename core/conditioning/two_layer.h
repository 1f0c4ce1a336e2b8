#ifndef ELASTOR_CORE_CONDITIONING_TWO_LAYER_H_
#define ELASTOR_CORE_CONDITIONING_TWO_LAYER_H_

#include <Eigen/Core>
#include <cstdint>

#include "core/kernels/matmul.h"
#include "core/spectrum/symmetric_matrix.h"

namespace elastor {

// Neural tangent kernels of the two-layer networks of "The Devil is in the Condition Numbers"
// (arXiv:2605.20749, section 3.1; docs/results/reproduce_conditioning.md), as functions of inputs X
// [n, d],
//   plain  z(x) = V phi(W x)
//   gated  z(x) = V [(P x) * phi(W x)],   m hidden units,
// LeCun's initialisation: W, P [m, d] of N(0, 1/d), V [1, m] of N(0, 1/m). Activations are ReLU,
// GELU (by erf) and SiLU (kSwish). In double; the bits are Eigen's and libm's, which the promise of
// equal bits does not cover.

enum class Inputs {
  kGaussian,    // x ~ N(0, I)
  kNormalised,  // the same, scaled to |x|^2 = d
};
// [n, d]: a function of (inputs, n, d, seed).
Eigen::MatrixXd DrawInputs(Inputs inputs, int64_t n, int64_t d, uint64_t seed);

double Activate(Activation activation, double x);
double ActivationDerivative(Activation activation, double x);

// Expectations over w ~ N(0, I / d) for all pairs of inputs, [n, n]. For ReLU they are the
// arc-cosine kernels of Cho and Saul. Other activations use phi's Hermite coefficients by
// quadrature over the Gaussian, E[phi phi] = sum_k c_k(|x|) c_k(|x'|) cos^k, to about 1e-12 for
// |x|^2 / d up to 4.
struct PairExpectations {
  Eigen::MatrixXd gram;         // X X^T / d
  Eigen::MatrixXd values;       // E[phi(w x) phi(w x')]
  Eigen::MatrixXd derivatives;  // E[phi'(w x) phi'(w x')]
};
PairExpectations ExpectPairs(const Eigen::MatrixXd& x, Activation activation);

struct KernelPair {
  Eigen::MatrixXd plain;
  Eigen::MatrixXd gated;
};
// Eqs. (3) and (4), m finite or large. REQUIRES: of inputs of d dimensions.
KernelPair ExpectedKernels(const PairExpectations& pairs, int64_t d, double m);
// Returns the covariances E[z z^T] of the outputs at initialisation (Sigma of Proposition C.2), for
// any m.
KernelPair OutputCovariances(const PairExpectations& pairs);

// One draw, a function of (d, m, seed); the gated network alone has P.
struct Weights {
  Eigen::MatrixXd w;  // transposed, [d, m]
  Eigen::MatrixXd p;  // transposed, [d, m]
  Eigen::VectorXd v;  // [m]
};
Weights DrawWeights(int64_t d, int64_t m, uint64_t seed);

// Returns <grad z(x), grad z(x')> at the weights DrawWeights(d, m, seed).
KernelPair FiniteKernels(const Eigen::MatrixXd& x, Activation activation, int64_t m, uint64_t seed);

Conditioning ConditioningOf(const Eigen::MatrixXd& kernel);
Eigendecomposition Decompose(const Eigen::MatrixXd& kernel);

}  // namespace elastor

#endif  // ELASTOR_CORE_CONDITIONING_TWO_LAYER_H_
