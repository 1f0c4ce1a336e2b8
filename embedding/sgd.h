#ifndef ELASTOR_EMBEDDING_SGD_H_
#define ELASTOR_EMBEDDING_SGD_H_

#include <cstdint>

#include "embedding/sparse_optimizer.h"

namespace elastor {

// w -= lr g, with g = scale * gradient.
template <typename T>
struct Sgd {
  T learning_rate;

  static Sgd ForStep(const SparseOptimizerOptions&, double learning_rate, int64_t /*step*/) {
    return {static_cast<T>(learning_rate)};
  }

  void operator()(int64_t width, T scale, const T* __restrict gradient, T* __restrict w,
                  T* /*slots*/) const {
    for (int64_t i = 0; i < width; ++i) w[i] -= learning_rate * (scale * gradient[i]);
  }
};

}  // namespace elastor

#endif  // ELASTOR_EMBEDDING_SGD_H_
