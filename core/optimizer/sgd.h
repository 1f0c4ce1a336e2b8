#ifndef ELASTOR_CORE_OPTIMIZER_SGD_H_
#define ELASTOR_CORE_OPTIMIZER_SGD_H_

#include <cstdint>

#include "core/base/build_config.h"
#include "core/base/canonical_flush.h"
#include "core/optimizer/optimizer_options.h"

namespace elastor {

// w -= lr g, with g = scale * gradient.
template <typename T>
struct Sgd {
  T learning_rate;

  static Sgd ForStep(const OptimizerOptions&, double learning_rate, int64_t /*step*/) {
    return {static_cast<T>(learning_rate)};
  }

  // One element: g is scaled.
  ELASTOR_HOST_DEVICE void Element(T g, T* w) const { *w -= CanonicalProduct(learning_rate, g); }

  void operator()(int64_t width, T scale, const T* __restrict gradient, T* __restrict w,
                  T* /*slots*/) const {
    for (int64_t i = 0; i < width; ++i) Element(CanonicalProduct(scale, gradient[i]), &w[i]);
  }
};

}  // namespace elastor

#endif  // ELASTOR_CORE_OPTIMIZER_SGD_H_
