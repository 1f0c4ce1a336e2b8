#include "launcher/scaling_law/law_fit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "core/base/canonical_math.h"
#include "core/base/log.h"

namespace elastor {
namespace {

// Reweighting ends when no prediction moves by more than this share of delta; Q errs by its square.
// Nodes of the grid are only told apart.
constexpr double kReweightingTolerance = 1e-4, kNodeTolerance = 1e-2;
constexpr int kMostReweightings = 30;
// A descent ends when its simplex is this small in log(exponent).
constexpr double kDescentTolerance = 1e-6;
constexpr int kMostDescentSteps = 400;
// Optima whose exponents all differ by less than this share are one.
constexpr double kSameOptimum = 0.01;
// A column of which no more than this share is its own is a sum of the others.
constexpr double kCollinear = 1e-13;
constexpr int kNoneFixed = -1;

double HuberLoss(double residual, double delta) {
  const double size = std::abs(residual);
  return size <= delta ? 0.5 * residual * residual : delta * (size - 0.5 * delta);
}

// Columns of a least-squares problem, the target as the last one.
constexpr int kMostColumns = kMostLawSizes + 2;
using Columns = std::vector<double>;  // [columns][rows]
using Triangle = std::array<std::array<double, kMostColumns>, kMostColumns>;

// R of the QR factorisation, by modified Gram-Schmidt, which is as stable as Householder's method
// for least squares when the target is one of the columns. Overwrites the columns by Q.
Triangle Factorise(int rows, int columns, double* at) {
  Triangle r = {};
  for (int i = 0; i < columns; ++i) {
    double* const q = at + i * rows;
    r[i][i] = std::sqrt(std::inner_product(q, q + rows, q, 0.0));
    if (r[i][i] == 0) continue;
    for (int row = 0; row < rows; ++row) q[row] /= r[i][i];
    for (int j = i + 1; j < columns; ++j) {
      double* const column = at + j * rows;
      r[i][j] = std::inner_product(q, q + rows, column, 0.0);
      for (int row = 0; row < rows; ++row) column[row] -= r[i][j] * q[row];
    }
  }
  return r;
}

using Solution = std::array<double, kMostColumns>;

// Solves R x = the last column. False when a column is one of the others but for rounding, or an
// element of x is negative.
bool SolveNonNegative(const Triangle& r, int unknowns, Solution* x) {
  for (int i = unknowns - 1; i >= 0; --i) {
    double norm = 0;
    for (int k = 0; k <= i; ++k) norm += r[k][i] * r[k][i];
    if (r[i][i] <= kCollinear * std::sqrt(norm)) return false;
    double sum = r[i][unknowns];
    for (int j = i + 1; j < unknowns; ++j) sum -= r[i][j] * (*x)[j];
    (*x)[i] = sum / r[i][i];
    if (!((*x)[i] >= 0)) return false;
  }
  return true;
}

// The least-squares solution with x >= 0. Few columns: of all sets of columns whose unrestricted
// solution is not negative, the one with the least residual has the minimum.
Solution NonNegativeLeastSquares(int rows, int unknowns, Columns* columns) {
  const Triangle r = Factorise(rows, unknowns + 1, columns->data());
  Solution best = {};
  if (SolveNonNegative(r, unknowns, &best)) return best;
  best = {};
  double least = std::numeric_limits<double>::infinity();
  for (int subset = (1 << unknowns) - 2; subset > 0; --subset) {
    // R has all that the subsets need.
    std::array<double, kMostColumns * kMostColumns> part;
    std::array<int, kMostColumns> chosen;
    int count = 0;
    for (int column = 0; column <= unknowns; ++column) {
      if (column < unknowns && !(subset >> column & 1)) continue;
      for (int row = 0; row <= unknowns; ++row) {
        part[count * (unknowns + 1) + row] = row <= column ? r[row][column] : 0;
      }
      chosen[count++] = column;
    }
    const Triangle of_part = Factorise(unknowns + 1, count, part.data());
    Solution x = {};
    if (of_part[count - 1][count - 1] >= least) continue;
    if (!SolveNonNegative(of_part, count - 1, &x)) continue;
    least = of_part[count - 1][count - 1];
    best = {};
    for (int i = 0; i + 1 < count; ++i) best[chosen[i]] = x[i];
  }
  return best;
}

// The minimum of a function of one number between `low` and `high`, from `middle`, where it is
// lower than at both, by Brent's method (Algorithms for Minimization without Derivatives, 1973,
// 5.8): parabolas through the three lowest points, golden sections where these go astray.
template <typename Function>
double MinimumBetween(const Function& function, double low, double middle, double high) {
  constexpr double kGolden = 0.3819660112501051;
  struct Point {
    double at, value;
  };
  Point best = {middle, function(middle)}, second = best, third = best;
  double step = 0, step_before = 0;
  for (int steps = 0; steps < kMostDescentSteps; ++steps) {
    const double centre = 0.5 * (low + high);
    if (std::abs(best.at - centre) + 0.5 * (high - low) <= 2 * kDescentTolerance) break;
    const double r = (best.at - second.at) * (best.value - third.value);
    const double q = (best.at - third.at) * (best.value - second.value);
    const double numerator = (best.at - third.at) * q - (best.at - second.at) * r;
    const double parabola = numerator / (2 * (r - q));
    const double next = best.at + parabola;
    // NaN and infinity, of points on a line, fail too.
    if (std::abs(parabola) < 0.5 * std::abs(step_before) && next > low && next < high) {
      step_before = std::exchange(step, parabola);
    } else {
      step_before = (best.at < centre ? high : low) - best.at;
      step = kGolden * step_before;
    }
    if (std::abs(step) < kDescentTolerance) {
      step = best.at < centre ? kDescentTolerance : -kDescentTolerance;
    }
    const Point tried = {best.at + step, function(best.at + step)};
    if (tried.value <= best.value) {
      (tried.at < best.at ? high : low) = best.at;
      third = std::exchange(second, std::exchange(best, tried));
    } else {
      (tried.at < best.at ? low : high) = tried.at;
      if (tried.value <= second.value || second.at == best.at) {
        third = std::exchange(second, tried);
      } else if (tried.value <= third.value || third.at == best.at || third.at == second.at) {
        third = tried;
      }
    }
  }
  return best.at;
}

struct Descent {
  std::vector<double> at;  // log(exponent) of the searched sizes
  double value = 0;
};

// Nelder and Mead's method with their coefficients, from a simplex of side `step`.
template <typename Function>
Descent Descend(const Function& function, const std::vector<double>& start, double step) {
  const size_t n = start.size();
  std::vector<Descent> simplex(n + 1, {start, 0});
  for (size_t i = 0; i < n; ++i) simplex[i + 1].at[i] += step;
  for (Descent& vertex : simplex) vertex.value = function(vertex.at);
  const auto by_value = [](const Descent& a, const Descent& b) { return a.value < b.value; };
  for (int steps = 0; steps < kMostDescentSteps; ++steps) {
    std::stable_sort(simplex.begin(), simplex.end(), by_value);
    double side = 0;
    for (size_t i = 1; i <= n; ++i) {
      for (size_t k = 0; k < n; ++k) {
        side = std::max(side, std::abs(simplex[i].at[k] - simplex[0].at[k]));
      }
    }
    if (side < kDescentTolerance) break;
    // The point at centre + factor * (centre - worst), the centre that of all but the worst.
    const auto along = [&](double factor) {
      Descent point = {std::vector<double>(n), 0};
      for (size_t k = 0; k < n; ++k) {
        double centre = 0;
        for (size_t i = 0; i < n; ++i) centre += simplex[i].at[k] / static_cast<double>(n);
        point.at[k] = centre + factor * (centre - simplex[n].at[k]);
      }
      point.value = function(point.at);
      return point;
    };
    const Descent reflected = along(1);
    if (reflected.value < simplex[0].value) {
      const Descent expanded = along(2);
      simplex[n] = expanded.value < reflected.value ? expanded : reflected;
      continue;
    }
    if (reflected.value < simplex[n - 1].value) {
      simplex[n] = reflected;
      continue;
    }
    const bool outside = reflected.value < simplex[n].value;
    const Descent contracted = along(outside ? 0.5 : -0.5);
    if (contracted.value < std::min(reflected.value, simplex[n].value)) {
      simplex[n] = contracted;
      continue;
    }
    for (size_t i = 1; i <= n; ++i) {
      for (size_t k = 0; k < n; ++k) {
        simplex[i].at[k] = 0.5 * (simplex[0].at[k] + simplex[i].at[k]);
      }
      simplex[i].value = function(simplex[i].at);
    }
  }
  std::stable_sort(simplex.begin(), simplex.end(), by_value);
  return simplex[0];
}

bool SameOptimum(const Law& a, const Law& b) {
  for (size_t k = 0; k < a.exponents.size(); ++k) {
    const double ratio = a.exponents[k] / b.exponents[k];
    if (ratio > 1 + kSameOptimum || ratio < 1 / (1 + kSameOptimum)) return false;
  }
  return true;
}

}  // namespace

double Law::At(std::span<const double> sizes) const {
  double value = limit;
  for (size_t k = 0; k < exponents.size(); ++k) {
    value += coefficients[k] * CanonicalExp(-exponents[k] * CanonicalLog(sizes[k] / references[k]));
  }
  return value;
}

std::optional<double> SeedSpread(std::span<const Configuration> configurations) {
  double squares = 0;
  size_t freedom = 0;
  for (const Configuration& configuration : configurations) {
    double mean = 0;
    for (double value : configuration.values) {
      mean += CanonicalLog(value) / static_cast<double>(configuration.values.size());
    }
    for (double value : configuration.values) {
      const double deviation = CanonicalLog(value) - mean;
      squares += deviation * deviation;
    }
    freedom += configuration.values.size() - 1;
  }
  if (freedom == 0) return std::nullopt;
  return std::sqrt(squares / static_cast<double>(freedom));
}

LawFitter::LawFitter(std::span<const Configuration> configurations, double delta,
                     std::span<const double> weights)
    : sizes_(static_cast<int>(configurations.front().sizes.size())),
      weights_(weights.begin(), weights.end()) {
  CHECK_LE(sizes_, kMostLawSizes);
  weights_.resize(configurations.size(), 1);
  std::vector<double> mean_logs(sizes_, 0);
  std::vector<std::vector<double>> log_values;
  for (const Configuration& configuration : configurations) {
    std::vector<double> logs;
    for (double size : configuration.sizes) logs.push_back(CanonicalLog(size));
    for (int k = 0; k < sizes_; ++k) {
      mean_logs[k] += logs[k] / static_cast<double>(configurations.size());
    }
    log_sizes_.push_back(logs);
    std::vector<double>& values = log_values.emplace_back();
    for (double value : configuration.values) values.push_back(CanonicalLog(value));
  }
  for (std::vector<double>& logs : log_sizes_) {
    for (int k = 0; k < sizes_; ++k) logs[k] -= mean_logs[k];
  }
  for (double mean : mean_logs) references_.push_back(CanonicalExp(mean));
  Replace(std::move(log_values), delta);
}

void LawFitter::Replace(std::vector<std::vector<double>> log_values, double delta) {
  CHECK_GT(delta, 0);
  delta_ = delta;
  log_values_ = std::move(log_values);
  mean_values_.clear();
  for (const std::vector<double>& values : log_values_) {
    mean_values_.push_back(CanonicalExp(std::accumulate(values.begin(), values.end(), 0.0) /
                                        static_cast<double>(values.size())));
  }
}

LawFitter::Fit LawFitter::AtExponents(std::span<const double> exponents) const {
  return Reweight(exponents, kReweightingTolerance);
}

LawFitter::Fit LawFitter::Reweight(std::span<const double> exponents, double tolerance) const {
  const int rows = static_cast<int>(log_sizes_.size());
  const int unknowns = sizes_ + 1;
  Columns terms(rows * unknowns, 1.0);
  std::vector<double> predicted = mean_values_;
  for (int k = 0; k < sizes_; ++k) {
    for (int c = 0; c < rows; ++c) {
      terms[(k + 1) * rows + c] = CanonicalExp(-exponents[k] * log_sizes_[c][k]);
    }
  }
  // log L is taken as linear about the last prediction P: log L = log P + (L - P) / P.
  Solution linear = {};
  Columns weighted(rows * (unknowns + 1));
  for (int pass = 0; pass < kMostReweightings; ++pass) {
    for (int c = 0; c < rows; ++c) {
      const double log_predicted = CanonicalLog(predicted[c]);
      double weights = 0, residuals = 0;
      for (double log_value : log_values_[c]) {
        const double residual = log_value - log_predicted;
        const double weight =
            weights_[c] * (std::abs(residual) <= delta_ ? 1 : delta_ / std::abs(residual));
        weights += weight;
        residuals += weight * residual;
      }
      const double root = std::sqrt(weights);
      for (int column = 0; column < unknowns; ++column) {
        weighted[column * rows + c] = terms[column * rows + c] * (root / predicted[c]);
      }
      weighted[unknowns * rows + c] = root * (1 + residuals / weights);
    }
    linear = NonNegativeLeastSquares(rows, unknowns, &weighted);
    double moved = 0;
    for (int c = 0; c < rows; ++c) {
      double next = 0;
      for (int column = 0; column < unknowns; ++column) {
        next += linear[column] * terms[column * rows + c];
      }
      moved = std::max(moved, std::abs(next - predicted[c]) / predicted[c]);
      predicted[c] = next;
    }
    if (moved < tolerance * delta_) break;
  }
  Fit fit;
  for (int c = 0; c < rows; ++c) {
    const double log_predicted = CanonicalLog(predicted[c]);
    for (double log_value : log_values_[c]) {
      fit.objective += weights_[c] * HuberLoss(log_value - log_predicted, delta_);
    }
  }
  fit.law.limit = linear[0];
  fit.law.coefficients.assign(linear.begin() + 1, linear.begin() + unknowns);
  fit.law.exponents.assign(exponents.begin(), exponents.end());
  fit.law.references = references_;
  return fit;
}

LawFitter::Fit LawFitter::Minimise(int nodes) const { return Search(kNoneFixed, 0, nodes); }

LawFitter::Fit LawFitter::MinimiseWithFixed(int fixed, double value, int nodes) const {
  return Search(fixed, value, nodes);
}

LawFitter::Fit LawFitter::Search(int fixed, double value, int nodes) const {
  const double low = CanonicalLog(kLeastExponent), high = CanonicalLog(kMostExponent);
  const double step = (high - low) / (nodes - 1);
  const int searched = sizes_ - (fixed != kNoneFixed);
  const auto exponents_at = [&](const std::vector<double>& logs) {
    std::vector<double> exponents;
    for (double log : logs) exponents.push_back(CanonicalExp(std::clamp(log, low, high)));
    if (fixed != kNoneFixed) exponents.insert(exponents.begin() + fixed, value);
    return exponents;
  };
  if (searched == 0) return AtExponents(std::vector<double>{value});
  const auto objective = [&](const std::vector<double>& logs) {
    return AtExponents(exponents_at(logs)).objective;
  };

  // Node i has the digits of i, to the base `nodes`, as its places on the axes.
  std::vector<int> strides(searched, 1);
  for (int k = 1; k < searched; ++k) strides[k] = strides[k - 1] * nodes;
  const int count = strides.back() * nodes;
  const auto logs_of = [&](int node) {
    std::vector<double> logs;
    for (int stride : strides) logs.push_back(low + step * (node / stride % nodes));
    return logs;
  };
  std::vector<double> values(count);
  for (int node = 0; node < count; ++node) {
    values[node] = Reweight(exponents_at(logs_of(node)), kNodeTolerance).objective;
  }

  std::vector<Fit> optima;
  for (int node = 0; node < count; ++node) {
    bool lowest = true;
    for (int stride : strides) {
      const int digit = node / stride % nodes;
      // If two neighbours are equal, the first counts as the lower one.
      if (digit > 0 && values[node - stride] <= values[node]) lowest = false;
      if (digit + 1 < nodes && values[node + stride] < values[node]) lowest = false;
    }
    if (!lowest) continue;
    const std::vector<double> start = logs_of(node);
    Fit fit;
    if (searched == 1) {
      const auto along = [&](double log) { return objective({log}); };
      const double at = MinimumBetween(along, std::max(low, start[0] - step), start[0],
                                       std::min(high, start[0] + step));
      fit = AtExponents(exponents_at({at}));
    } else {
      fit = AtExponents(exponents_at(Descend(objective, start, 0.5 * step).at));
    }
    const auto same = std::ranges::find_if(
        optima, [&](const Fit& other) { return SameOptimum(fit.law, other.law); });
    if (same == optima.end()) {
      optima.push_back(std::move(fit));
    } else if (fit.objective < same->objective) {
      *same = std::move(fit);
    }
  }
  Fit best = *std::ranges::min_element(optima, {}, &Fit::objective);
  best.starts = count;
  best.optima = static_cast<int>(optima.size());
  return best;
}

}  // namespace elastor
