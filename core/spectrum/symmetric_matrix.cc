#include "core/spectrum/symmetric_matrix.h"

#include <Eigen/Eigenvalues>
#include <algorithm>
#include <limits>

#include "core/base/log.h"

namespace elastor {
namespace {

using Solver = Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd>;

// Eigen reads the lower triangle.
Solver Solve(std::span<const double> matrix, int64_t n, int options) {
  CHECK_EQ(static_cast<int64_t>(matrix.size()), n * n);
  using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const Eigen::Map<const RowMajor> view(matrix.data(), n, n);
  Solver solver(view, options);
  CHECK(solver.info() == Eigen::Success) << "no convergence, n = " << n;
  return solver;
}

std::vector<double> Values(const Solver& solver) {
  const auto& values = solver.eigenvalues();
  return {values.data(), values.data() + values.size()};
}

}  // namespace

std::vector<double> EigenvaluesOf(std::span<const double> matrix, int64_t n) {
  return Values(Solve(matrix, n, Eigen::EigenvaluesOnly));
}

Eigendecomposition Decompose(std::span<const double> matrix, int64_t n) {
  const Solver solver = Solve(matrix, n, Eigen::ComputeEigenvectors);
  const auto& vectors = solver.eigenvectors();
  return {Values(solver), {vectors.data(), vectors.data() + vectors.size()}};
}

double Conditioning::condition_number() const {
  return resolved() ? lambda_max / lambda_min : std::numeric_limits<double>::quiet_NaN();
}

Conditioning ConditioningOf(std::span<const double> eigenvalues) {
  CHECK(!eigenvalues.empty());
  constexpr double kUnit = std::numeric_limits<double>::epsilon() / 2;
  Conditioning result = {.lambda_max = eigenvalues.back(), .lambda_min = eigenvalues.front()};
  result.floor = 10 * static_cast<double>(eigenvalues.size()) * kUnit * result.lambda_max;
  if (result.lambda_max > 0) {
    result.rank = std::ranges::count_if(eigenvalues, [&](double x) { return x >= result.floor; });
  }
  return result;
}

}  // namespace elastor
