#ifndef ELASTOR_CORE_KERNELS_CPU_ACTIVATE_H_
#define ELASTOR_CORE_KERNELS_CPU_ACTIVATE_H_

#include "core/kernels/cpu/vec_math.h"
#include "core/kernels/matmul.h"

namespace elastor {
inline namespace ELASTOR_ISA {

// Calls body(function), where function(v) gives value and slope of the activation at a vector v.
// The activation is tested once, outside of the loop in `body`.
template <typename Body>
ELASTOR_INLINE void WithActivation(Activation activation, Body body) {
  switch (activation) {
    case Activation::kGelu:
      return body([](auto v) { return Gelu(v); });
    case Activation::kSwish:
      return body([](auto v) { return Swish(v); });
    case Activation::kTanh:
      return body([](auto v) { return TanhAndSlope(v); });
    case Activation::kSigmoid:
      return body([](auto v) { return SigmoidAndSlope(v); });
    case Activation::kLeakyRelu:
      return body([](auto v) { return LeakyReluAndSlope(v, kLeakySlope); });
    case Activation::kRelu:
      return body([](auto v) { return ReluAndSlope(v); });
    case Activation::kIdentity:
      return body([](auto v) { return ValueAndSlope<decltype(v)>{v, decltype(v){} + 1}; });
  }
}

}  // namespace ELASTOR_ISA
}  // namespace elastor

#endif  // ELASTOR_CORE_KERNELS_CPU_ACTIVATE_H_
