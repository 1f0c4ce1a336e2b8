#ifndef ELASTOR_EMBEDDING_ROW_WISE_ADAGRAD_H_
#define ELASTOR_EMBEDDING_ROW_WISE_ADAGRAD_H_

#include <cmath>
#include <cstdint>

#include "embedding/row_math.h"
#include "embedding/sparse_optimizer.h"

namespace elastor {

// a += mean of g^2 over the row; w -= lr g / (sqrt(a) + eps), with g = scale * gradient.
// Slots: one a for the row. The mean is scale^2 * SumOfSquares(gradient) / width, in double.
template <typename T>
struct RowWiseAdagrad {
  T learning_rate;
  T epsilon;

  static RowWiseAdagrad ForStep(const SparseOptimizerOptions& options, double learning_rate,
                                int64_t /*step*/) {
    return {static_cast<T>(learning_rate), static_cast<T>(options.epsilon)};
  }

  void operator()(int64_t width, T scale, const T* __restrict gradient, T* __restrict w,
                  T* __restrict slots) const {
    const double squared_scale = static_cast<double>(scale) * static_cast<double>(scale);
    const double mean = squared_scale * SumOfSquares(gradient, width) / static_cast<double>(width);
    slots[0] += static_cast<T>(mean);
    const T rate = learning_rate / (std::sqrt(slots[0]) + epsilon);
    for (int64_t i = 0; i < width; ++i) w[i] -= rate * (scale * gradient[i]);
  }
};

}  // namespace elastor

#endif  // ELASTOR_EMBEDDING_ROW_WISE_ADAGRAD_H_
