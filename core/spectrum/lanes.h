#ifndef ELASTOR_CORE_SPECTRUM_LANES_H_
#define ELASTOR_CORE_SPECTRUM_LANES_H_

#include <immintrin.h>

#include <bit>
#include <cstdint>

#include "core/kernels/cpu/vec.h"

namespace elastor {

// Eight doubles, one a matrix: two vectors, because the operations on one wait for each other.
// Every operation is exactly defined by IEEE 754 (vec.h).
struct Lanes {
  static constexpr int64_t kCount = 8;
  DoubleVec low;
  DoubleVec high;
};
// All bits set where true.
struct LaneMask {
  __m256d low;
  __m256d high;
};

inline Lanes LoadLanes(const double* p) { return {Load(p), Load(p + 4)}; }
inline void SaveLanes(double* p, Lanes x) {
  Save(p, x.low);
  Save(p + 4, x.high);
}
inline Lanes Splat(double s) { return {Broadcast(s), Broadcast(s)}; }

inline Lanes operator+(Lanes a, Lanes b) { return {a.low + b.low, a.high + b.high}; }
inline Lanes operator-(Lanes a, Lanes b) { return {a.low - b.low, a.high - b.high}; }
inline Lanes operator*(Lanes a, Lanes b) { return {a.low * b.low, a.high * b.high}; }
inline Lanes operator/(Lanes a, Lanes b) { return {a.low / b.low, a.high / b.high}; }

inline Lanes Fma(Lanes a, Lanes b, Lanes c) {
  return {Fma(a.low, b.low, c.low), Fma(a.high, b.high, c.high)};
}
inline Lanes NegativeFma(Lanes a, Lanes b, Lanes c) {
  return {NegativeFma(a.low, b.low, c.low), NegativeFma(a.high, b.high, c.high)};
}
inline Lanes Sqrt(Lanes x) { return {Sqrt(x.low), Sqrt(x.high)}; }
// b where a is NaN.
inline Lanes Max(Lanes a, Lanes b) {
  return {_mm256_max_pd(a.low, b.low), _mm256_max_pd(a.high, b.high)};
}
inline Lanes Min(Lanes a, Lanes b) {
  return {_mm256_min_pd(a.low, b.low), _mm256_min_pd(a.high, b.high)};
}

namespace lanes_internal {
inline DoubleVec And(DoubleVec x, uint64_t bits) {
  return _mm256_and_pd(x, _mm256_castsi256_pd(_mm256_set1_epi64x(std::bit_cast<int64_t>(bits))));
}
inline constexpr uint64_t kSign = uint64_t{1} << 63;
inline constexpr uint64_t kExponent = uint64_t{0x7ff} << 52;
}  // namespace lanes_internal

inline Lanes Abs(Lanes x) {
  using namespace lanes_internal;
  return {And(x.low, ~kSign), And(x.high, ~kSign)};
}
// The sign of `sign` on the magnitude x >= 0.
inline Lanes WithSignOf(Lanes sign, Lanes x) {
  using namespace lanes_internal;
  return {_mm256_or_pd(x.low, And(sign.low, kSign)), _mm256_or_pd(x.high, And(sign.high, kSign))};
}
// The largest power of two not above x. REQUIRES: x positive and normal.
inline Lanes PowerOfTwoOf(Lanes x) {
  using namespace lanes_internal;
  return {And(x.low, kExponent), And(x.high, kExponent)};
}

inline LaneMask operator>(Lanes a, Lanes b) {
  return {_mm256_cmp_pd(a.low, b.low, _CMP_GT_OQ), _mm256_cmp_pd(a.high, b.high, _CMP_GT_OQ)};
}
inline bool Any(LaneMask mask) {
  return _mm256_movemask_pd(_mm256_or_pd(mask.low, mask.high)) != 0;
}
inline Lanes Select(LaneMask mask, Lanes yes, Lanes no) {
  return {_mm256_blendv_pd(no.low, yes.low, mask.low),
          _mm256_blendv_pd(no.high, yes.high, mask.high)};
}

}  // namespace elastor

#endif  // ELASTOR_CORE_SPECTRUM_LANES_H_
