#include "core/spectrum/spectrum.h"

#include <Eigen/Eigenvalues>
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/canonical_math.h"
#include "glog/logging.h"

namespace elastor {
namespace {

// exp(-sum p log p) with p = s / sum s; sum log-free where p = 0.
double EntropyRank(std::span<const double> singular_values) {
  double sum = 0;
  for (const double s : singular_values) sum += s;
  double entropy = 0;
  for (const double s : singular_values) {
    if (s > 0) entropy -= s / sum * CanonicalLog(s / sum);
  }
  return CanonicalExp(entropy);
}

}  // namespace

Spectrum::Spectrum(int64_t tokens, int64_t width)
    : tokens_(tokens),
      width_(width),
      matrix_(tokens * width),
      singular_values_(std::min(tokens, width)) {
  CHECK_GE(tokens, 1);
  CHECK_GE(width, 1);
}

template <typename T>
EffectiveRank Spectrum::Measure(Panels<const T> x, int64_t row) {
  CHECK_EQ(x.features, tokens_ * width_);
  CHECK_LT(row, x.rows);
  // matrix_ is X or its transpose, the smaller side first: [short_side, long_side].
  const int64_t short_side = std::min(tokens_, width_);
  const int64_t long_side = std::max(tokens_, width_);
  for (int64_t t = 0; t < tokens_; ++t) {
    for (int64_t d = 0; d < width_; ++d) {
      const int64_t index = tokens_ <= width_ ? t * width_ + d : d * tokens_ + t;
      matrix_[index] = x.At(row, t * width_ + d);
    }
  }

  // The Gram matrix in our own order of additions; only the solver is Eigen's. The solver reads the
  // lower triangle.
  Eigen::MatrixXd gram(short_side, short_side);
  for (int64_t i = 0; i < short_side; ++i) {
    for (int64_t j = 0; j <= i; ++j) {
      double dot = 0;
      for (int64_t k = 0; k < long_side; ++k) {
        dot = std::fma(matrix_[i * long_side + k], matrix_[j * long_side + k], dot);
      }
      gram(i, j) = dot;
    }
  }
  double frobenius = 0;  // squared
  for (int64_t i = 0; i < short_side; ++i) frobenius += gram(i, i);

  if (!std::isfinite(frobenius)) {
    constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
    std::fill(singular_values_.begin(), singular_values_.end(), kNan);
    return {kNan, kNan};
  }
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(gram, Eigen::EigenvaluesOnly);
  const Eigen::VectorXd& eigenvalues = solver.eigenvalues();  // ascending
  const double largest = eigenvalues(short_side - 1);
  const double threshold = std::numeric_limits<double>::epsilon() * largest;
  for (int64_t i = 0; i < short_side; ++i) {
    const double value = eigenvalues(short_side - 1 - i);
    singular_values_[i] = value > threshold ? std::sqrt(value) : 0;
  }
  if (largest <= 0) return {0, 0};
  return {frobenius / largest, EntropyRank(singular_values_)};
}

template EffectiveRank Spectrum::Measure(Panels<const float> x, int64_t row);
template EffectiveRank Spectrum::Measure(Panels<const double> x, int64_t row);

}  // namespace elastor
