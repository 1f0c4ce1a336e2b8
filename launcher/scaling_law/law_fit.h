#ifndef ELASTOR_LAUNCHER_SCALING_LAW_LAW_FIT_H_
#define ELASTOR_LAUNCHER_SCALING_LAW_LAW_FIT_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace elastor {

// The scaling law of d sizes (d = 1: parameters; d = 2: width and depth; ...),
//
//   L(x) = E + sum_k A_k (x_k / r_k)^-alpha_k,   E, A_k >= 0,
//
// with r_k the geometric mean of the sizes it was fitted to, so that A_k is a loss.
struct Law {
  double limit = 0;                  // E
  std::vector<double> coefficients;  // [d] A_k
  std::vector<double> exponents;     // [d] alpha_k
  std::vector<double> references;    // [d] r_k

  double At(std::span<const double> sizes) const;
  // Number of parameters, 1 + 2 d.
  int parameters() const { return static_cast<int>(1 + 2 * exponents.size()); }
};

// All runs of the same sizes; they differ in their seeds.
struct Configuration {
  std::vector<double> sizes;   // [d], positive
  std::vector<double> values;  // [seeds] losses, positive
};

inline constexpr int kMostLawSizes = 3;

// Exponents are searched between these bounds; a loss that falls with another one is not told from
// log(size), or falls within the smallest size.
inline constexpr double kLeastExponent = 0.02;
inline constexpr double kMostExponent = 4;

// Standard deviation of log(value) over the seeds of a configuration, pooled over configurations;
// none when every configuration has one seed.
std::optional<double> SeedSpread(std::span<const Configuration> configurations);

// Minimises Q = sum over runs of weight * Huber_delta(log value - log L(sizes)) by variable
// projection: for given exponents, E and A_k are the solution of a non-negative least-squares
// problem (reweighted until Huber's weights and the logarithm's slope are those of the solution),
// so that only the d exponents are searched. Everything is a pure function of its arguments, to the
// last bit.
class LawFitter {
 public:
  // `weights` are those of a run of every configuration; empty: all 1. REQUIRES: configurations not
  // empty, all with the same d sizes, 1 to kMostLawSizes, and a value; delta > 0; weights > 0.
  LawFitter(std::span<const Configuration> configurations, double delta,
            std::span<const double> weights = {});

  // Takes other values, log(value) of every run, and another delta.
  void Replace(std::vector<std::vector<double>> log_values, double delta);

  struct Fit {
    Law law;
    double objective = 0;  // Q
    int starts = 0;        // nodes of the grid
    int optima = 0;        // distinct optima that the descents from the grid's lowest nodes reach
  };

  // Fits the law. Searches a grid with `nodes` exponents per size, in equal ratios, and starts one
  // descent at every node that is lower than its neighbours: by Brent's method along one exponent,
  // by Nelder and Mead's over several. REQUIRES: nodes >= 3.
  Fit Minimise(int nodes) const;
  // Fits with exponent `fixed` held at `value`, which gives a point of its profile.
  Fit MinimiseWithFixed(int fixed, double value, int nodes) const;
  // Returns the best law with these exponents.
  Fit AtExponents(std::span<const double> exponents) const;

 private:
  Fit Search(int fixed, double value, int nodes) const;
  Fit Reweight(std::span<const double> exponents, double tolerance) const;

  int sizes_;  // d
  double delta_;
  std::vector<double> weights_;  // [configuration]
  std::vector<double> references_;
  std::vector<std::vector<double>> log_sizes_;   // [configuration][d] log(size / reference)
  std::vector<std::vector<double>> log_values_;  // [configuration][seed]
  std::vector<double> mean_values_;              // [configuration] geometric means
};

}  // namespace elastor

#endif  // ELASTOR_LAUNCHER_SCALING_LAW_LAW_FIT_H_
