#include "launcher/comparison/significance.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "core/base/log.h"

namespace elastor {
namespace {

constexpr double kNormalQuantile = 1.959963984540054;  // 97.5 %
constexpr std::array<double, 8> kStudentTable = {12.7062, 4.30265, 3.18245, 2.77645,
                                                 2.57058, 2.44691, 2.36462, 2.30600};
// Beyond so many degrees of freedom Student's distribution is the normal one to six digits.
constexpr double kNormalFrom = 1e6;
constexpr double kTail = 0.05;  // both sides of the 97.5 % quantile
constexpr int kBisections = 50;

// The continued fraction of the incomplete beta function (Abramowitz and Stegun, 26.5.8), by
// Lentz's method. It converges fast for x < (a + 1) / (a + b + 2).
double BetaFraction(double x, double a, double b) {
  constexpr double kTiny = 1e-300, kPrecision = 1e-15;
  constexpr int kMostTerms = 10'000;
  const auto away_from_0 = [](double value) { return std::abs(value) < kTiny ? kTiny : value; };
  double c = 1, d = 1 / away_from_0(1 - (a + b) * x / (a + 1)), fraction = d;
  for (int m = 1; m <= kMostTerms; ++m) {
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / away_from_0(1 + even * d);
    c = away_from_0(1 + even / c);
    fraction *= d * c;
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / away_from_0(1 + odd * d);
    c = away_from_0(1 + odd / c);
    fraction *= d * c;
    if (std::abs(d * c - 1) < kPrecision) break;
  }
  return fraction;
}

// The regularised incomplete beta function I_x(a, b).
double Beta(double x, double a, double b) {
  if (!(x > 0)) return 0;
  if (x >= 1) return 1;
  const double front = std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) +
                                a * std::log(x) + b * std::log1p(-x));
  if (x < (a + 1) / (a + b + 2)) return front * BetaFraction(x, a, b) / a;
  return 1 - front * BetaFraction(1 - x, b, a) / b;
}

}  // namespace

// Below the table's end between whole numbers by bisection, beyond it Cornish and Fisher's
// expansion.
double StudentQuantile(double degrees_of_freedom) {
  CHECK_GE(degrees_of_freedom, 1 - 1e-9);
  const double n = std::max(1.0, degrees_of_freedom);
  if (n < static_cast<double>(kStudentTable.size())) {
    const auto below = static_cast<size_t>(n);
    double high = kStudentTable[below - 1], low = kStudentTable[below];
    if (n == std::floor(n)) return high;
    for (int i = 0; i < kBisections; ++i) {
      const double middle = (low + high) / 2;
      (StudentP(middle, n) > kTail ? low : high) = middle;
    }
    return (low + high) / 2;
  }
  const double z = kNormalQuantile;
  const double z3 = z * z * z, z5 = z3 * z * z, z7 = z5 * z * z;
  return z + (z3 + z) / (4 * n) + (5 * z5 + 16 * z3 + 3 * z) / (96 * n * n) +
         (3 * z7 + 19 * z5 + 17 * z3 - 15 * z) / (384 * n * n * n);
}

double StudentP(double t, double degrees_of_freedom) {
  if (std::isnan(t)) return t;
  if (degrees_of_freedom > kNormalFrom) return std::erfc(std::abs(t) / std::sqrt(2.0));
  const double n = std::max(1.0, degrees_of_freedom);
  return Beta(n / (n + t * t), n / 2, 0.5);
}

double FisherP(double f, double between, double within) {
  return Beta(within / (within + between * f), within / 2, between / 2);
}

std::vector<double> HolmAdjusted(const std::vector<double>& p_values) {
  std::vector<size_t> order(p_values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, {}, [&](size_t i) { return p_values[i]; });
  std::vector<double> adjusted(p_values.size());
  double largest = 0;
  for (size_t rank = 0; rank < order.size(); ++rank) {
    const auto left = static_cast<double>(order.size() - rank);
    largest = std::max(largest, std::min(1.0, left * p_values[order[rank]]));
    adjusted[order[rank]] = largest;
  }
  return adjusted;
}

}  // namespace elastor
