#include "core/conditioning/approximations.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace elastor {
namespace {

using Eigen::ArrayXXd;
using Eigen::MatrixXd;
using Eigen::VectorXd;
using std::numbers::pi;

// Coefficients of eqs. (10) and (11).
struct Coefficients {
  Coefficients(double d, double m)
      : alpha(0.25 + m / (4 * d)),
        beta(m / (2 * pi * d)),
        gamma(alpha - beta),
        gated_alpha(m / (4 * d * d) + 1 / (2 * d)),
        gated_beta(1 / (2 * pi * d) + m / (2 * pi * d * d)),
        gated_gamma(gated_alpha - gated_beta) {}

  double alpha, beta, gamma;
  double gated_alpha, gated_beta, gated_gamma;
};

// The parts of the trace difference, less n m^2 / (4 d^3): the mean over a pair times d, and the
// diagonal.
double PairPart(double d) {
  return (d * d - 3 * d - 6) / 4 + (d * d * d - d * d - 4 * d - 4) / (pi * pi);
}
double DiagonalPart(double d) { return 2 * (d + 2) * (5 * d + 12); }

double TraceDifference(double n, double d, double m, double pairs) {
  return n * m * m / (4 * d * d * d) * ((n - 1) * pairs - DiagonalPart(d));
}

}  // namespace

MatrixXd LinearisedPlainKernel(const MatrixXd& x, double m) {
  const Coefficients c(static_cast<double>(x.cols()), m);
  const VectorXd r = x.rowwise().norm();
  MatrixXd kernel = c.alpha * x * x.transpose() + c.beta * r * r.transpose();
  kernel.diagonal() += c.gamma * r.cwiseAbs2();
  return kernel;
}

MatrixXd QuadraticPlainKernel(const MatrixXd& x, double m) {
  const auto d = static_cast<double>(x.cols());
  const VectorXd r = x.rowwise().norm();
  MatrixXd kernel = LinearisedPlainKernel(x, m);
  const VectorXd diagonal = kernel.diagonal();
  kernel.array() += (1 / (2 * pi) + m / (4 * pi * d)) * (x * x.transpose()).array().square() /
                    (r * r.transpose()).array();
  kernel.diagonal() = diagonal;
  return kernel;
}

MatrixXd QuadraticGatedKernel(const MatrixXd& x, double m) {
  const Coefficients c(static_cast<double>(x.cols()), m);
  const VectorXd r = x.rowwise().norm();
  const ArrayXXd inner = x * x.transpose();
  MatrixXd kernel =
      (c.gated_alpha * inner.square() + c.gated_beta * (r * r.transpose()).array() * inner)
          .matrix();
  kernel.diagonal() += c.gated_gamma * r.array().pow(4).matrix();
  return kernel;
}

EigenvalueEstimates PrintedEstimates(int64_t inputs, int64_t dimensions, double m) {
  const auto n = static_cast<double>(inputs), d = static_cast<double>(dimensions);
  const Coefficients c(d, m);
  const double s = std::max(0.0, 1 - std::sqrt(n / d));
  const double gated_s = std::max(0.0, 1 - std::sqrt(2 * n) / d);
  return {
      .plain_max = m * n / (2 * pi) + d / 2 + (pi - 1) * m / (2 * pi),
      .gated_max_lower = c.gated_alpha * d * n + (c.gated_alpha + c.gated_gamma) * d * d,
      .gated_max_upper = (c.gated_alpha + c.gated_beta) * d * n +
                         (c.gated_alpha + c.gated_beta + c.gated_gamma) * d * d,
      .plain_min = (m + d) / 4 * (s * s + 1) - m / (2 * pi),
      .gated_min = (m + 2 * d) / 4 * (gated_s * gated_s + 1) + (m + d) / (2 * pi) * (s * s - 1),
  };
}

EigenvalueEstimates CorrectedEstimates(int64_t inputs, int64_t dimensions, double m) {
  const auto n = static_cast<double>(inputs), d = static_cast<double>(dimensions);
  const double gated_s = std::max(0.0, 1 - std::sqrt(2 * n) / d);
  EigenvalueEstimates estimates = PrintedEstimates(inputs, dimensions, m);
  estimates.gated_max_upper += Coefficients(d, m).gated_beta * d * 2 * std::sqrt(n * d);
  estimates.plain_min -= (m / (4 * pi) + d / (2 * pi)) * (1 - gated_s * gated_s);
  return estimates;
}

double PrintedTraceDifference(int64_t n, int64_t d, double m) {
  const auto width = static_cast<double>(d);
  return TraceDifference(static_cast<double>(n), width, m, PairPart(width) / width);
}

double CorrectedTraceDifference(int64_t n, int64_t d, double m) {
  const auto width = static_cast<double>(d);
  return TraceDifference(static_cast<double>(n), width, m, PairPart(width));
}

}  // namespace elastor
