#include "core/conditioning/dynamics.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/base/log.h"

namespace elastor {

using Eigen::MatrixXd;
using Eigen::VectorXd;

ExpectedLoss::ExpectedLoss(const Eigendecomposition& kernel, const MatrixXd& covariance,
                           const VectorXd& y)
    : eigenvalues_(VectorXd::Map(kernel.values.data(), y.size())) {
  const int64_t n = y.size();
  CHECK_EQ(covariance.rows(), n);
  const auto vectors = MatrixXd::Map(kernel.vectors.data(), n, n);  // as columns
  weights_ = (vectors.cwiseProduct(covariance * vectors).colwise().sum().transpose() +
              (vectors.transpose() * y).cwiseAbs2()) /
             (2 * static_cast<double>(n));
}

double ExpectedLoss::At(double eta, int64_t step) const {
  const auto factors = (1 - eta * eigenvalues_.array()).square();
  return (weights_.array() * factors.pow(static_cast<double>(step))).sum();
}

std::vector<int64_t> Crossings(const ExpectedLoss& plain, const ExpectedLoss& gated, double eta,
                               int64_t most) {
  const auto plain_leads = [&](int64_t step) { return plain.At(eta, step) < gated.At(eta, step); };
  std::vector<int64_t> crossings;
  int64_t before = 0;
  bool led = plain_leads(0);
  while (before < most) {
    int64_t after = std::min(most, before + 1 + before / 100);
    const int64_t next = after;
    if (const bool leads = plain_leads(after); leads != led) {
      while (after - before > 1) {
        const int64_t middle = before + (after - before) / 2;
        (plain_leads(middle) == led ? before : after) = middle;
      }
      crossings.push_back(after);
      led = leads;
    }
    before = next;
  }
  return crossings;
}

std::vector<double> TrainingLosses(const MatrixXd& x, const VectorXd& y, Network network,
                                   Activation activation, int64_t m, double eta, int64_t steps,
                                   uint64_t seed) {
  Weights weights = DrawWeights(x.cols(), m, seed);
  const bool gated = network == Network::kGated;
  std::vector<double> losses;
  // [n, m]: W x, phi and phi' of it, P x, the hidden layer, and the gradients there, whose memory
  // the steps share.
  MatrixXd w_x, value, slope, gate, hidden, blame, of_w;
  for (int64_t step = 0;; ++step) {
    w_x.noalias() = x * weights.w;
    value = w_x.unaryExpr([&](double z) { return Activate(activation, z); });
    slope = w_x.unaryExpr([&](double z) { return ActivationDerivative(activation, z); });
    hidden = value;
    if (gated) {
      gate.noalias() = x * weights.p;
      hidden.array() *= gate.array();
    }
    const VectorXd error = hidden * weights.v - y;
    losses.push_back(error.squaredNorm() / (2 * static_cast<double>(x.rows())));
    if (step == steps) return losses;
    blame.noalias() = error * weights.v.transpose();
    of_w = blame.cwiseProduct(slope);
    if (gated) {
      of_w.array() *= gate.array();
      blame.array() *= value.array();
      weights.p.noalias() -= eta * x.transpose() * blame;
    }
    weights.w.noalias() -= eta * x.transpose() * of_w;
    weights.v.noalias() -= eta * hidden.transpose() * error;
  }
}

MatrixXd OutputTrajectory(const MatrixXd& kernel, const VectorXd& y, double eta, int64_t steps) {
  MatrixXd outputs = MatrixXd::Zero(y.size(), steps + 1);
  for (int64_t k = 0; k < steps; ++k) {
    outputs.col(k + 1) = outputs.col(k) - eta * kernel * (outputs.col(k) - y);
  }
  return outputs;
}

}  // namespace elastor
