#ifndef ELASTOR_CORE_SPECTRUM_ISA_LANES_H_
#define ELASTOR_CORE_SPECTRUM_ISA_LANES_H_

#include <immintrin.h>

#include <cstdint>

#include "core/kernels/cpu/vec.h"

namespace elastor {
inline namespace ELASTOR_ISA {

// Masks of one vector: all bits set where true in AVX2, a bit each in AVX-512.
#ifdef __AVX512F__
using VecMask = __mmask8;
ELASTOR_INLINE VecMask IsGreater(DoubleVec a, DoubleVec b) {
  return _mm512_cmp_pd_mask(a, b, _CMP_GT_OQ);
}
ELASTOR_INLINE VecMask IsEqual(DoubleVec a, DoubleVec b) {
  return _mm512_cmp_pd_mask(a, b, _CMP_EQ_OQ);
}
ELASTOR_INLINE VecMask BothOf(VecMask a, VecMask b) { return a & b; }
ELASTOR_INLINE VecMask EitherOf(VecMask a, VecMask b) { return a | b; }
ELASTOR_INLINE bool AnyOf(VecMask mask) { return mask != 0; }
ELASTOR_INLINE DoubleVec Select(VecMask mask, DoubleVec yes, DoubleVec no) {
  return _mm512_mask_blend_pd(mask, no, yes);
}
ELASTOR_INLINE DoubleVec LargerOf(DoubleVec a, DoubleVec b) { return _mm512_max_pd(a, b); }
ELASTOR_INLINE DoubleVec SmallerOf(DoubleVec a, DoubleVec b) { return _mm512_min_pd(a, b); }
ELASTOR_INLINE DoubleVec AndBits(DoubleVec x, uint64_t bits) {
  return _mm512_and_pd(x, _mm512_castsi512_pd(_mm512_set1_epi64(static_cast<int64_t>(bits))));
}
ELASTOR_INLINE DoubleVec OrBits(DoubleVec a, DoubleVec b) { return _mm512_or_pd(a, b); }
#else
using VecMask = __m256d;
ELASTOR_INLINE VecMask IsGreater(DoubleVec a, DoubleVec b) {
  return _mm256_cmp_pd(a, b, _CMP_GT_OQ);
}
ELASTOR_INLINE VecMask IsEqual(DoubleVec a, DoubleVec b) { return _mm256_cmp_pd(a, b, _CMP_EQ_OQ); }
ELASTOR_INLINE VecMask BothOf(VecMask a, VecMask b) { return _mm256_and_pd(a, b); }
ELASTOR_INLINE VecMask EitherOf(VecMask a, VecMask b) { return _mm256_or_pd(a, b); }
ELASTOR_INLINE bool AnyOf(VecMask mask) { return _mm256_movemask_pd(mask) != 0; }
ELASTOR_INLINE DoubleVec Select(VecMask mask, DoubleVec yes, DoubleVec no) {
  return _mm256_blendv_pd(no, yes, mask);
}
ELASTOR_INLINE DoubleVec LargerOf(DoubleVec a, DoubleVec b) { return _mm256_max_pd(a, b); }
ELASTOR_INLINE DoubleVec SmallerOf(DoubleVec a, DoubleVec b) { return _mm256_min_pd(a, b); }
ELASTOR_INLINE DoubleVec AndBits(DoubleVec x, uint64_t bits) {
  return _mm256_and_pd(x, _mm256_castsi256_pd(_mm256_set1_epi64x(static_cast<int64_t>(bits))));
}
ELASTOR_INLINE DoubleVec OrBits(DoubleVec a, DoubleVec b) { return _mm256_or_pd(a, b); }
#endif

// Doubles in kVecs vectors, one a matrix: several vectors, because the operations on one wait for
// each other. Every operation is exactly defined by IEEE 754 (vec.h), so a lane has the same bits
// at every width.
template <int kVectors>
struct Lanes {
  static constexpr int kVecs = kVectors;
  static constexpr int64_t kCount = kVecs * kLanes<double>;
  DoubleVec vec[kVecs];

  ELASTOR_INLINE static Lanes Load(const double* p) {
    Lanes x;
    for (int v = 0; v < kVecs; ++v) x.vec[v] = ELASTOR_ISA::Load(p + v * kLanes<double>);
    return x;
  }
  ELASTOR_INLINE static Lanes Of(double s) {
    Lanes x;
    for (int v = 0; v < kVecs; ++v) x.vec[v] = Broadcast(s);
    return x;
  }
  ELASTOR_INLINE void SaveTo(double* p) const {
    for (int v = 0; v < kVecs; ++v) Save(p + v * kLanes<double>, vec[v]);
  }

  ELASTOR_INLINE friend Lanes operator+(Lanes a, Lanes b) {
    for (int v = 0; v < kVecs; ++v) a.vec[v] += b.vec[v];
    return a;
  }
  ELASTOR_INLINE friend Lanes operator-(Lanes a, Lanes b) {
    for (int v = 0; v < kVecs; ++v) a.vec[v] -= b.vec[v];
    return a;
  }
  ELASTOR_INLINE friend Lanes operator*(Lanes a, Lanes b) {
    for (int v = 0; v < kVecs; ++v) a.vec[v] *= b.vec[v];
    return a;
  }
  ELASTOR_INLINE friend Lanes operator/(Lanes a, Lanes b) {
    for (int v = 0; v < kVecs; ++v) a.vec[v] /= b.vec[v];
    return a;
  }
  ELASTOR_INLINE friend Lanes Fma(Lanes a, Lanes b, Lanes c) {
    for (int v = 0; v < kVecs; ++v) c.vec[v] = Fma(a.vec[v], b.vec[v], c.vec[v]);
    return c;
  }
  ELASTOR_INLINE friend Lanes NegativeFma(Lanes a, Lanes b, Lanes c) {
    for (int v = 0; v < kVecs; ++v) c.vec[v] = NegativeFma(a.vec[v], b.vec[v], c.vec[v]);
    return c;
  }
  ELASTOR_INLINE friend Lanes Sqrt(Lanes x) {
    for (int v = 0; v < kVecs; ++v) x.vec[v] = Sqrt(x.vec[v]);
    return x;
  }
  // Returns the larger of a and b; b where a is NaN.
  ELASTOR_INLINE friend Lanes Max(Lanes a, Lanes b) {
    for (int v = 0; v < kVecs; ++v) a.vec[v] = LargerOf(a.vec[v], b.vec[v]);
    return a;
  }
  ELASTOR_INLINE friend Lanes Min(Lanes a, Lanes b) {
    for (int v = 0; v < kVecs; ++v) a.vec[v] = SmallerOf(a.vec[v], b.vec[v]);
    return a;
  }
  ELASTOR_INLINE friend Lanes Abs(Lanes x) {
    for (int v = 0; v < kVecs; ++v) x.vec[v] = AndBits(x.vec[v], ~kSign);
    return x;
  }
  // Returns the magnitude x >= 0 with the sign of `sign`.
  ELASTOR_INLINE friend Lanes WithSignOf(Lanes sign, Lanes x) {
    for (int v = 0; v < kVecs; ++v) x.vec[v] = OrBits(x.vec[v], AndBits(sign.vec[v], kSign));
    return x;
  }
  // Returns the largest power of two not above x. REQUIRES: x positive and normal.
  ELASTOR_INLINE friend Lanes PowerOfTwoOf(Lanes x) {
    for (int v = 0; v < kVecs; ++v) x.vec[v] = AndBits(x.vec[v], kExponent);
    return x;
  }

  struct Mask {
    VecMask vec[kVecs];
    ELASTOR_INLINE friend Mask operator&(Mask a, Mask b) {
      for (int v = 0; v < kVecs; ++v) a.vec[v] = BothOf(a.vec[v], b.vec[v]);
      return a;
    }
    ELASTOR_INLINE friend Mask operator|(Mask a, Mask b) {
      for (int v = 0; v < kVecs; ++v) a.vec[v] = EitherOf(a.vec[v], b.vec[v]);
      return a;
    }
    ELASTOR_INLINE friend bool Any(Mask mask) {
      VecMask any = mask.vec[0];
      for (int v = 1; v < kVecs; ++v) any = EitherOf(any, mask.vec[v]);
      return AnyOf(any);
    }
    ELASTOR_INLINE friend Lanes Select(Mask mask, Lanes yes, Lanes no) {
      for (int v = 0; v < kVecs; ++v) no.vec[v] = Select(mask.vec[v], yes.vec[v], no.vec[v]);
      return no;
    }
  };
  ELASTOR_INLINE friend Mask operator>(Lanes a, Lanes b) {
    Mask mask;
    for (int v = 0; v < kVecs; ++v) mask.vec[v] = IsGreater(a.vec[v], b.vec[v]);
    return mask;
  }
  ELASTOR_INLINE friend Mask operator==(Lanes a, Lanes b) {
    Mask mask;
    for (int v = 0; v < kVecs; ++v) mask.vec[v] = IsEqual(a.vec[v], b.vec[v]);
    return mask;
  }

 private:
  static constexpr uint64_t kSign = uint64_t{1} << 63;
  static constexpr uint64_t kExponent = uint64_t{0x7ff} << 52;
};

}  // namespace ELASTOR_ISA
}  // namespace elastor

#endif  // ELASTOR_CORE_SPECTRUM_ISA_LANES_H_
