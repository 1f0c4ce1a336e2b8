#ifndef ELASTOR_CORE_BASE_STUDENT_T_H_
#define ELASTOR_CORE_BASE_STUDENT_T_H_

#include <cmath>
#include <cstdint>
#include <iterator>

namespace elastor {

// The 97.5 % quantile of Student's t: in 95 % of cases, a mean of n normal values with standard
// deviation s lies within this times s / sqrt(n) of the true mean. freedom is n - 1. Accurate to
// 1e-5. REQUIRES: freedom >= 1.
inline double StudentT975(int64_t freedom) {
  constexpr double kTable[] = {12.706205, 4.302653, 3.182446, 2.776445, 2.570582,
                               2.446912,  2.364624, 2.306004, 2.262157, 2.228139,
                               2.200985,  2.178813, 2.160369, 2.144787, 2.131450,
                               2.119905,  2.109816, 2.100922, 2.093024, 2.085963};
  if (freedom <= static_cast<int64_t>(std::size(kTable))) return kTable[freedom - 1];
  // Cornish and Fisher's series around the normal quantile (Abramowitz and Stegun, 26.7.5).
  constexpr double z = 1.959963984540054, z2 = z * z;
  const double n = static_cast<double>(freedom);
  return z + z * (z2 + 1) / (4 * n) + z * ((5 * z2 + 16) * z2 + 3) / (96 * n * n) +
         z * (((3 * z2 + 19) * z2 + 17) * z2 - 15) / (384 * n * n * n);
}

// Returns half the width of the 95 % interval of a mean of n values; infinite for fewer than two.
inline double MeanHalfWidth(double stddev, int64_t n) {
  if (n < 2) return HUGE_VAL;
  return StudentT975(n - 1) * stddev / std::sqrt(static_cast<double>(n));
}

}  // namespace elastor

#endif  // ELASTOR_CORE_BASE_STUDENT_T_H_
