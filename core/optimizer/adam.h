#ifndef ELASTOR_CORE_OPTIMIZER_ADAM_H_
#define ELASTOR_CORE_OPTIMIZER_ADAM_H_

#include <cmath>
#include <cstdint>

#include "core/base/build_config.h"
#include "core/base/canonical_flush.h"
#include "core/base/canonical_math.h"
#include "core/optimizer/optimizer_options.h"

namespace elastor {

// m = b1 m + (1 - b1) g; v = b2 v + (1 - b2) g^2;
// w -= lr / (1 - b1^t) * m / (sqrt(v) / sqrt(1 - b2^t) + eps), with g = scale * gradient and t the
// global step. Slots: m[width], then v[width].
template <typename T>
struct Adam {
  T beta1, one_minus_beta1;
  T beta2, one_minus_beta2;
  T epsilon;
  T step_size;          // lr / (1 - b1^t)
  T inverse_root_bias;  // 1 / sqrt(1 - b2^t)

  static Adam ForStep(const OptimizerOptions& options, double learning_rate, int64_t step) {
    const double bias1 = 1 - IntegerPower(options.beta1, step);
    const double bias2 = 1 - IntegerPower(options.beta2, step);
    return {static_cast<T>(options.beta1),       static_cast<T>(1 - options.beta1),
            static_cast<T>(options.beta2),       static_cast<T>(1 - options.beta2),
            static_cast<T>(options.epsilon),     static_cast<T>(learning_rate / bias1),
            static_cast<T>(1 / std::sqrt(bias2))};
  }

  // One element: g is scaled.
  ELASTOR_HOST_DEVICE void Element(T g, T* w, T* m, T* v) const {
    *m = CanonicalProduct(beta1, *m) + CanonicalProduct(one_minus_beta1, g);
    *v = CanonicalProduct(beta2, *v) + CanonicalProduct(one_minus_beta2, CanonicalProduct(g, g));
    *w -= CanonicalProduct(step_size, *m) / (std::sqrt(*v) * inverse_root_bias + epsilon);
  }

  void operator()(int64_t width, T scale, const T* __restrict gradient, T* __restrict w,
                  T* __restrict slots) const {
    T* __restrict m = slots;
    T* __restrict v = slots + width;
    for (int64_t i = 0; i < width; ++i) {
      Element(CanonicalProduct(scale, gradient[i]), &w[i], &m[i], &v[i]);
    }
  }
};

}  // namespace elastor

#endif  // ELASTOR_CORE_OPTIMIZER_ADAM_H_
