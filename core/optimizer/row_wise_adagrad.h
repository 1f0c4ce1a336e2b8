#ifndef ELASTOR_CORE_OPTIMIZER_ROW_WISE_ADAGRAD_H_
#define ELASTOR_CORE_OPTIMIZER_ROW_WISE_ADAGRAD_H_

#include <cmath>
#include <cstdint>

#include "core/base/build_config.h"
#include "core/base/canonical_flush.h"
#include "core/optimizer/optimizer_options.h"
#include "core/optimizer/sum_of_squares.h"

namespace elastor {

// a += mean of g^2 over the row; w -= lr g / (sqrt(a) + eps), with g = scale * gradient.
// Slots: one a for the row. The mean is scale^2 * SumOfSquares(gradient) / width, in double.
template <typename T>
struct RowWiseAdagrad {
  T learning_rate;
  T epsilon;

  static RowWiseAdagrad ForStep(const OptimizerOptions& options, double learning_rate,
                                int64_t /*step*/) {
    return {static_cast<T>(learning_rate), static_cast<T>(options.epsilon)};
  }

  // Updates a of a row; returns lr / (sqrt(a) + eps).
  ELASTOR_HOST_DEVICE T Rate(int64_t width, T scale, double sum_of_squares, T* a) const {
    const double squared_scale = static_cast<double>(scale) * static_cast<double>(scale);
    const double mean = squared_scale * sum_of_squares / static_cast<double>(width);
    *a += CanonicalCast<T>(mean);
    return learning_rate / (std::sqrt(*a) + epsilon);
  }
  // One element: g is scaled.
  ELASTOR_HOST_DEVICE void Element(T rate, T g, T* w) const { *w -= CanonicalProduct(rate, g); }

  void operator()(int64_t width, T scale, const T* __restrict gradient, T* __restrict w,
                  T* __restrict slots) const {
    Row(width, scale, SumOfSquares(gradient, width), gradient, w, slots);
  }

  // Does the same. sum_of_squares: the gradient's.
  void Row(int64_t width, T scale, double sum_of_squares, const T* __restrict gradient,
           T* __restrict w, T* __restrict slots) const {
    const T rate = Rate(width, scale, sum_of_squares, &slots[0]);
    for (int64_t i = 0; i < width; ++i) {
      Element(rate, CanonicalProduct(scale, gradient[i]), &w[i]);
    }
  }
};

}  // namespace elastor

#endif  // ELASTOR_CORE_OPTIMIZER_ROW_WISE_ADAGRAD_H_
