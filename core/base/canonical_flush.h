#ifndef ELASTOR_CORE_BASE_CANONICAL_FLUSH_H_
#define ELASTOR_CORE_BASE_CANONICAL_FLUSH_H_

#include <cmath>
#include <limits>

#include "core/base/build_config.h"

namespace elastor {

// Products and conversions that underflow alike on every machine, in canonical floating point. Let
// m be the least normal number. x86-64 rounds first and flushes what is then below m. Arm flushes
// what is below m before it is rounded: where rounding would give m, it gives 0. These functions
// give m. They are for what decays, as optimizers' slots do: its values pass that window, a
// relative 2^-25 wide, once in their life. Sums, quotients and roots never lie in it.

#if defined(__aarch64__) && !defined(__CUDA_ARCH__)
namespace canonical_internal {

// Returns `flushed`, or m with the sign of `scaled` where only rounding makes the result m.
// scaled: the result times kScale, which has no underflow there.
template <typename T>
inline constexpr T kScale = T(0x1p64);
template <typename T>
ELASTOR_HOST_DEVICE inline T Unflushed(T flushed, T scaled) {
  constexpr T kLeast = std::numeric_limits<T>::min();
  const bool lost = flushed == 0 && std::abs(scaled) >= kLeast * kScale<T>;
  return lost ? std::copysign(kLeast, scaled) : flushed;
}

}  // namespace canonical_internal

template <typename T>
ELASTOR_HOST_DEVICE inline T CanonicalProduct(T a, T b) {
  using namespace canonical_internal;
  return Unflushed(a * b, a * kScale<T> * b);
}
template <typename T>
ELASTOR_HOST_DEVICE inline T CanonicalCast(double value) {
  using namespace canonical_internal;
  if constexpr (sizeof(T) == sizeof(double)) return value;
  return Unflushed(static_cast<T>(value), static_cast<T>(value * 0x1p64));
}
#else
// a b and T(value).
template <typename T>
ELASTOR_HOST_DEVICE inline T CanonicalProduct(T a, T b) {
  return a * b;
}
template <typename T>
ELASTOR_HOST_DEVICE inline T CanonicalCast(double value) {
  return static_cast<T>(value);
}
#endif

}  // namespace elastor

#endif  // ELASTOR_CORE_BASE_CANONICAL_FLUSH_H_
