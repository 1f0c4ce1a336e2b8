#ifndef ELASTOR_CORE_BASE_FLOATING_POINT_H_
#define ELASTOR_CORE_BASE_FLOATING_POINT_H_

#include <cstdint>

#ifndef __aarch64__
#include <xmmintrin.h>
#endif

namespace elastor {

// The calling thread's control of floating point: rounding, exceptions, and whether denormals count
// as 0. kDefault is the state a process starts with: to nearest, no traps, denormals as they are.
// kCanonical also takes denormal operands and results for 0, as canonical arithmetic needs.
#ifdef __aarch64__
struct FloatingPoint {
  static constexpr uint32_t kDefault = 0;
  static constexpr uint32_t kCanonical = 1 << 24;  // FZ
  static uint32_t Get() { return __builtin_aarch64_get_fpcr(); }
  static void Set(uint32_t control) { __builtin_aarch64_set_fpcr(control); }
};
#else
struct FloatingPoint {
  static constexpr uint32_t kDefault = 0x1f80;                        // exceptions masked
  static constexpr uint32_t kCanonical = kDefault | 0x8000 | 0x0040;  // FTZ and DAZ
  static uint32_t Get() { return _mm_getcsr(); }
  static void Set(uint32_t control) { _mm_setcsr(control); }
};
#endif

}  // namespace elastor

#endif  // ELASTOR_CORE_BASE_FLOATING_POINT_H_
