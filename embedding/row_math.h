#ifndef ELASTOR_EMBEDDING_ROW_MATH_H_
#define ELASTOR_EMBEDDING_ROW_MATH_H_

#include <cstdint>

namespace elastor {

// Brings a row that will be read or written soon into the cache.
template <typename T>
inline void PrefetchRow(const T* row, int64_t elements) {
  constexpr int64_t kLineElements = 64 / sizeof(T);
  for (int64_t i = 0; i < elements; i += kLineElements) __builtin_prefetch(row + i, 1);
}

// y += x.
template <typename T>
inline void AddTo(int64_t length, const T* __restrict x, T* __restrict y) {
  for (int64_t i = 0; i < length; ++i) y[i] += x[i];
}

// Sum of x^2 in double: lane i % 4 sums its elements in order, then (0 + 1) + (2 + 3). Four lanes,
// because one chain of additions would wait for itself.
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

// base^exponent by repeated squaring: the same bits everywhere, unlike libm's pow. exponent >= 0.
inline double IntegerPower(double base, int64_t exponent) {
  double power = 1;
  for (; exponent > 0; exponent >>= 1, base *= base) {
    if (exponent & 1) power *= base;
  }
  return power;
}

}  // namespace elastor

#endif  // ELASTOR_EMBEDDING_ROW_MATH_H_
