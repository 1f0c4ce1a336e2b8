#ifndef ELASTOR_CORE_SPECTRUM_ISA_LANES_H_
#define ELASTOR_CORE_SPECTRUM_ISA_LANES_H_

#include <cstdint>

#include "core/kernels/cpu/vec.h"

namespace elastor {
inline namespace ELASTOR_ISA {

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
