#include "core/conditioning/two_layer.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <span>

#include "core/base/log.h"
#include "core/base/random.h"

namespace elastor {
namespace {

using Eigen::ArrayXXd;
using Eigen::MatrixXd;
using Eigen::VectorXd;
using std::numbers::pi;

uint64_t Key(const char* what, uint64_t seed) {
  return MakeRandomKey(seed, RandomPurpose::kTheory, HashName(what));
}

// Independent N(0, stddev^2).
MatrixXd NormalMatrix(int64_t rows, int64_t columns, double stddev, uint64_t key) {
  MatrixXd matrix(rows, columns);
  FillNormal(key, /*stream=*/0, stddev, matrix.size(), matrix.data());
  return matrix;
}

// Cosines of all pairs, [-1, 1]; exactly 1 on the diagonal.
MatrixXd Cosines(const MatrixXd& gram) {
  const VectorXd norms = gram.diagonal().cwiseSqrt();
  MatrixXd cosines =
      (gram.array() / (norms * norms.transpose()).array()).max(-1.0).min(1.0).matrix();
  cosines.diagonal().setOnes();
  return cosines;
}

// The Hermite series of phi(r z) and phi'(r z), r a row's norm. A smooth integrand under the
// Gaussian needs no more than equal steps: the trapezoidal rule is exact to rounding here.
class HermiteSeries {
 public:
  explicit HermiteSeries(const VectorXd& norms) : norms_(norms), points_(kPoints) {
    MatrixXd polynomials(kPoints, kTerms);  // orthonormal, times the density and the step
    for (int64_t q = 0; q < kPoints; ++q) {
      const double z = -kReach + static_cast<double>(q) * kStep;
      points_[q] = z;
      double previous = 0, current = 1;
      const double weight = kStep * std::exp(-z * z / 2) / std::sqrt(2 * pi);
      for (int64_t k = 0; k < kTerms; ++k) {
        polynomials(q, k) = current * weight;
        const auto degree = static_cast<double>(k);
        const double next = (z * current - std::sqrt(degree) * previous) / std::sqrt(degree + 1);
        previous = current;
        current = next;
      }
    }
    polynomials_ = std::move(polynomials);
  }

  // E[f(r_i u) f(r_j v)] for all i, j, (u, v) standard normal of correlation cosines(i, j).
  template <typename Function>
  MatrixXd Expect(const Function& f, const MatrixXd& cosines) const {
    MatrixXd values(norms_.size(), kPoints);
    for (int64_t q = 0; q < kPoints; ++q) {
      for (int64_t i = 0; i < norms_.size(); ++i) values(i, q) = f(norms_[i] * points_[q]);
    }
    const MatrixXd coefficients = values * polynomials_;
    ArrayXXd sum = ArrayXXd::Zero(norms_.size(), norms_.size());
    for (int64_t k = kTerms - 1; k >= 0; --k) {
      sum = sum * cosines.array() + (coefficients.col(k) * coefficients.col(k).transpose()).array();
    }
    // On the diagonal the series may converge slowly; its value is one integral.
    MatrixXd result = sum.matrix();
    result.diagonal() = values.array().square().matrix() * polynomials_.col(0);
    return result;
  }

 private:
  static constexpr int64_t kTerms = 200;
  static constexpr double kReach = 13, kStep = 1.0 / 16;
  static constexpr auto kPoints = static_cast<int64_t>(2 * kReach / kStep) + 1;

  VectorXd norms_;
  VectorXd points_;
  MatrixXd polynomials_;
};

// Sum over hidden units of a(x) a(x'), a [n, units].
void AddGram(const MatrixXd& a, MatrixXd* sum) {
  sum->selfadjointView<Eigen::Lower>().rankUpdate(a);
}
MatrixXd Whole(const MatrixXd& lower) { return lower.selfadjointView<Eigen::Lower>(); }

std::span<const double> Elements(const MatrixXd& matrix) {
  return {matrix.data(), static_cast<size_t>(matrix.size())};
}

}  // namespace

MatrixXd DrawInputs(Inputs inputs, int64_t n, int64_t d, uint64_t seed) {
  MatrixXd x = NormalMatrix(d, n, 1, Key("inputs", seed)).transpose();
  if (inputs == Inputs::kNormalised) {
    x = x.rowwise().normalized() * std::sqrt(static_cast<double>(d));
  }
  return x;
}

double Activate(Activation activation, double x) {
  switch (activation) {
    case Activation::kRelu:
      return std::max(x, 0.0);
    case Activation::kGelu:
      return x / 2 * std::erfc(-x / std::numbers::sqrt2);
    case Activation::kSwish:
      return x / (1 + std::exp(-x));
    default:
      LOG(FATAL) << "activation " << static_cast<int>(activation);
  }
}

double ActivationDerivative(Activation activation, double x) {
  switch (activation) {
    case Activation::kRelu:
      return x > 0 ? 1 : 0;
    case Activation::kGelu:
      return std::erfc(-x / std::numbers::sqrt2) / 2 + x * std::exp(-x * x / 2) / std::sqrt(2 * pi);
    case Activation::kSwish: {
      const double share = 1 / (1 + std::exp(-x));
      return share * (1 + x * (1 - share));
    }
    default:
      LOG(FATAL) << "activation " << static_cast<int>(activation);
  }
}

PairExpectations ExpectPairs(const MatrixXd& x, Activation activation) {
  PairExpectations pairs;
  pairs.gram = x * x.transpose() / static_cast<double>(x.cols());
  const MatrixXd cosines = Cosines(pairs.gram);
  const VectorXd norms = pairs.gram.diagonal().cwiseSqrt();  // of w x, standard deviations
  if (activation == Activation::kRelu) {
    const ArrayXXd angle = pi - cosines.array().acos();
    const ArrayXXd sine = (1 - cosines.array().square()).sqrt();
    pairs.derivatives = angle / (2 * pi);
    pairs.values =
        (norms * norms.transpose()).array() * (sine + angle * cosines.array()) / (2 * pi);
    return pairs;
  }
  const HermiteSeries series(norms);
  pairs.values = series.Expect([&](double z) { return Activate(activation, z); }, cosines);
  pairs.derivatives =
      series.Expect([&](double z) { return ActivationDerivative(activation, z); }, cosines);
  return pairs;
}

KernelPair ExpectedKernels(const PairExpectations& pairs, int64_t d, double m) {
  const auto width = static_cast<double>(d);
  const auto gram = pairs.gram.array();
  const auto values = pairs.values.array(), derivatives = pairs.derivatives.array();
  return {(m * values + width * derivatives * gram).matrix(),
          ((m + width) * values * gram + width * derivatives * gram.square()).matrix()};
}

KernelPair OutputCovariances(const PairExpectations& pairs) {
  return {pairs.values, pairs.values.cwiseProduct(pairs.gram)};
}

Weights DrawWeights(int64_t d, int64_t m, uint64_t seed) {
  const double stddev = 1 / std::sqrt(static_cast<double>(d));
  return {NormalMatrix(d, m, stddev, Key("W", seed)), NormalMatrix(d, m, stddev, Key("P", seed)),
          NormalMatrix(m, 1, 1 / std::sqrt(static_cast<double>(m)), Key("V", seed))};
}

KernelPair FiniteKernels(const MatrixXd& x, Activation activation, int64_t m, uint64_t seed) {
  constexpr int64_t kUnits = 1024;  // at a time
  const int64_t n = x.rows();
  const Weights weights = DrawWeights(x.cols(), m, seed);
  // Over hidden units, plain and gated: of the outputs by V, and by W and P less x^T x'.
  const MatrixXd zero = MatrixXd::Zero(n, n);
  MatrixXd plain_v = zero, plain_w = zero, gated_v = zero, gated_inner = zero;
  for (int64_t begin = 0; begin < m; begin += kUnits) {
    const int64_t units = std::min(kUnits, m - begin);
    const MatrixXd w_x = x * weights.w.middleCols(begin, units);
    const MatrixXd p_x = x * weights.p.middleCols(begin, units);
    const MatrixXd value = w_x.unaryExpr([&](double z) { return Activate(activation, z); });
    const MatrixXd slope =
        w_x.unaryExpr([&](double z) { return ActivationDerivative(activation, z); });
    const auto scale = weights.v.segment(begin, units).asDiagonal();
    AddGram(value, &plain_v);
    AddGram(slope * scale, &plain_w);
    AddGram(p_x.cwiseProduct(value), &gated_v);
    AddGram(value * scale, &gated_inner);
    AddGram(p_x.cwiseProduct(slope) * scale, &gated_inner);
  }
  const MatrixXd inner = x * x.transpose();
  return {Whole(plain_v) + inner.cwiseProduct(Whole(plain_w)),
          Whole(gated_v) + inner.cwiseProduct(Whole(gated_inner))};
}

Conditioning ConditioningOf(const MatrixXd& kernel) {
  return ConditioningOf(EigenvaluesOf(Elements(kernel), kernel.rows()));
}

Eigendecomposition Decompose(const MatrixXd& kernel) {
  return Decompose(Elements(kernel), kernel.rows());
}

}  // namespace elastor
