#ifndef ELASTOR_LAUNCHER_COMPARISON_SIGNIFICANCE_H_
#define ELASTOR_LAUNCHER_COMPARISON_SIGNIFICANCE_H_

#include <vector>

namespace elastor {

// Quantiles and p-values of the tests that the programs share.

// Returns the 97.5 % quantile of Student's distribution with at least one degree of freedom;
// infinity gives the normal distribution's. Exact to 0.1 %.
double StudentQuantile(double degrees_of_freedom);

// Returns the probability of |t| or more by Student's distribution; NaN if t is. REQUIRES:
// degrees_of_freedom >= 1; infinity is allowed.
double StudentP(double t, double degrees_of_freedom);

// Returns the probability of f or more, by Fisher's distribution. REQUIRES: both degrees of freedom
// are positive and finite.
double FisherP(double f, double between, double within);

// Returns Holm's adjusted p-values (Scand. J. Statist. 6, 1979): whatever is true, the probability
// that any true hypothesis has an adjusted p of at most a is at most a.
std::vector<double> HolmAdjusted(const std::vector<double>& p_values);

}  // namespace elastor

#endif  // ELASTOR_LAUNCHER_COMPARISON_SIGNIFICANCE_H_
