#ifndef ELASTOR_CORE_OPTIMIZER_ADAGRAD_H_
#define ELASTOR_CORE_OPTIMIZER_ADAGRAD_H_

#include <cmath>
#include <cstdint>

#include "core/base/build_config.h"
#include "core/base/canonical_flush.h"
#include "core/optimizer/optimizer_options.h"

namespace elastor {

// a += g^2; w -= lr g / (sqrt(a) + eps), per element, with g = scale * gradient. Slots: a[width].
template <typename T>
struct Adagrad {
  T learning_rate;
  T epsilon;

  static Adagrad ForStep(const OptimizerOptions& options, double learning_rate, int64_t /*step*/) {
    return {static_cast<T>(learning_rate), static_cast<T>(options.epsilon)};
  }

  // One element: g is scaled.
  ELASTOR_HOST_DEVICE void Element(T g, T* w, T* a) const {
    *a += CanonicalProduct(g, g);
    *w -= CanonicalProduct(learning_rate, g) / (std::sqrt(*a) + epsilon);
  }

  void operator()(int64_t width, T scale, const T* __restrict gradient, T* __restrict w,
                  T* __restrict slots) const {
    T* __restrict a = slots;
    for (int64_t i = 0; i < width; ++i) Element(CanonicalProduct(scale, gradient[i]), &w[i], &a[i]);
  }
};

}  // namespace elastor

#endif  // ELASTOR_CORE_OPTIMIZER_ADAGRAD_H_
