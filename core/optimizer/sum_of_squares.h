#ifndef ELASTOR_CORE_OPTIMIZER_SUM_OF_SQUARES_H_
#define ELASTOR_CORE_OPTIMIZER_SUM_OF_SQUARES_H_

#include <cstdint>

namespace elastor {

// Returns the sum of x^2 in double: lane i % 4 sums its elements in order, then (0 + 1) + (2 + 3).
// Four lanes, because one chain of additions would wait for itself.
template <typename T>
inline double SumOfSquares(const T* x, int64_t length) {
  double lanes[4] = {0, 0, 0, 0};
  const int64_t whole = length / 4 * 4;
  for (int64_t i = 0; i < whole; i += 4) {
    for (int64_t lane = 0; lane < 4; ++lane) {
      const double value = static_cast<double>(x[i + lane]);
      lanes[lane] += value * value;
    }
  }
  for (int64_t lane = 0; lane < length - whole; ++lane) {
    const double value = static_cast<double>(x[whole + lane]);
    lanes[lane] += value * value;
  }
  return (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]);
}

}  // namespace elastor

#endif  // ELASTOR_CORE_OPTIMIZER_SUM_OF_SQUARES_H_
