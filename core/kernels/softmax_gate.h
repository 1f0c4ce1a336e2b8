#ifndef ELASTOR_CORE_KERNELS_SOFTMAX_GATE_H_
#define ELASTOR_CORE_KERNELS_SOFTMAX_GATE_H_

#include <cstdint>

#include "core/tensor/panels.h"

namespace elastor {

// core/ops/softmax_gate.h. x, y: tokens * width features; scores, shares: tokens.

// shares = softmax(scores), y = shares * x.
template <typename T>
void SoftmaxGate(int64_t tokens, int64_t width, Panels<const T> x, Panels<const T> scores,
                 Panels<T> shares, Panels<T> y);
template <typename T>
void SoftmaxGateBackward(int64_t tokens, int64_t width, Panels<const T> x, Panels<const T> shares,
                         Panels<const T> dy, Panels<T> dx, Panels<T> dscores);

}  // namespace elastor

#endif  // ELASTOR_CORE_KERNELS_SOFTMAX_GATE_H_
