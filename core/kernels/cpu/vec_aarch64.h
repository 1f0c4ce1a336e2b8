#ifndef ELASTOR_CORE_KERNELS_CPU_VEC_AARCH64_H_
#define ELASTOR_CORE_KERNELS_CPU_VEC_AARCH64_H_

#include <arm_neon.h>

#include <cstdint>

// The part of vec.h for aarch64, which includes it: NEON, with the results of vec_x86_64.h, which
// documents the functions.

namespace elastor {
inline namespace ELASTOR_ISA {

// 16 bytes.
using FloatVec [[gnu::vector_size(16)]] = float;
using DoubleVec [[gnu::vector_size(16)]] = double;
using IntVec [[gnu::vector_size(16)]] = int32_t;
using UintVec [[gnu::vector_size(16)]] = uint32_t;
inline constexpr int kRegisters = 32;

ELASTOR_INLINE FloatVec Load(const float* p) { return vld1q_f32(p); }
ELASTOR_INLINE DoubleVec Load(const double* p) { return vld1q_f64(p); }
ELASTOR_INLINE void Save(float* p, FloatVec v) { vst1q_f32(p, v); }
ELASTOR_INLINE void Save(double* p, DoubleVec v) { vst1q_f64(p, v); }
ELASTOR_INLINE FloatVec Broadcast(float s) { return vdupq_n_f32(s); }
ELASTOR_INLINE DoubleVec Broadcast(double s) { return vdupq_n_f64(s); }
template <typename V>
ELASTOR_INLINE void KeepInRegister(V& v) {
  asm("" : "+w"(v));
}

ELASTOR_INLINE FloatVec Fma(FloatVec a, FloatVec b, FloatVec c) { return vfmaq_f32(c, a, b); }
ELASTOR_INLINE DoubleVec Fma(DoubleVec a, DoubleVec b, DoubleVec c) { return vfmaq_f64(c, a, b); }
ELASTOR_INLINE FloatVec NegativeFma(FloatVec a, FloatVec b, FloatVec c) {
  return vfmsq_f32(c, a, b);
}
ELASTOR_INLINE DoubleVec NegativeFma(DoubleVec a, DoubleVec b, DoubleVec c) {
  return vfmsq_f64(c, a, b);
}
template <typename V>
ELASTOR_INLINE V MultiplyAdd(V a, V b, V c) {
  return Fma(a, b, c);
}

ELASTOR_INLINE FloatVec Sqrt(FloatVec v) { return vsqrtq_f32(v); }
ELASTOR_INLINE DoubleVec Sqrt(DoubleVec v) { return vsqrtq_f64(v); }

// Maxima and minima choose by a comparison, because fmax treats NaN and zeros otherwise. Where
// denormals are flushed, x86-64 returns a zero with the sign of a chosen one: so does fmax(v, v).
ELASTOR_INLINE FloatVec Flushed(FloatVec v) { return vmaxq_f32(v, v); }
ELASTOR_INLINE DoubleVec Flushed(DoubleVec v) { return vmaxq_f64(v, v); }
ELASTOR_INLINE FloatVec AtLeast(FloatVec bound, FloatVec v) {
  return Flushed(bound > v ? bound : v);
}
ELASTOR_INLINE DoubleVec AtLeast(DoubleVec bound, DoubleVec v) {
  return Flushed(bound > v ? bound : v);
}
ELASTOR_INLINE FloatVec AtMost(FloatVec bound, FloatVec v) {
  return Flushed(bound < v ? bound : v);
}

ELASTOR_INLINE IntVec Bits(FloatVec v) { return reinterpret_cast<IntVec>(v); }
ELASTOR_INLINE FloatVec FromBits(IntVec v) { return reinterpret_cast<FloatVec>(v); }
ELASTOR_INLINE FloatVec Abs(FloatVec v) { return FromBits(Bits(v) & INT32_MAX); }
ELASTOR_INLINE FloatVec SelectBySign(FloatVec v, FloatVec negative, FloatVec positive) {
  return Bits(v) < 0 ? negative : positive;
}
ELASTOR_INLINE FloatVec WithSignOf(FloatVec sign, FloatVec v) {
  return FromBits(Bits(v) | (Bits(sign) & INT32_MIN));
}

ELASTOR_INLINE FloatVec FloatsOfBytes(uint64_t bytes) {
  const uint16x8_t words = vmovl_u8(vcreate_u8(bytes));
  return vcvtq_f32_u32(vmovl_u16(vget_low_u16(words)));
}

ELASTOR_INLINE bool AllBelow(FloatVec a, FloatVec b) { return vminvq_u32(vcltq_f32(a, b)) != 0; }
ELASTOR_INLINE bool AllBelow(DoubleVec a, DoubleVec b) {
  return vminvq_u32(vreinterpretq_u32_u64(vcltq_f64(a, b))) != 0;
}

ELASTOR_INLINE FloatVec CanonicalProducts(FloatVec a, FloatVec b) {
  const FloatVec flushed = a * b, scaled = a * 0x1p64f * b;
  const IntVec lost = (flushed == 0.0f) & (Abs(scaled) >= 0x1p-62f);
  return lost ? WithSignOf(scaled, Broadcast(0x1p-126f)) : flushed;
}
ELASTOR_INLINE DoubleVec CanonicalProducts(DoubleVec a, DoubleVec b) {
  const DoubleVec flushed = a * b, scaled = a * 0x1p64 * b;
  const auto lost = (flushed == 0.0) & (vabsq_f64(scaled) >= 0x1p-958);
  const DoubleVec least = vbslq_f64(vdupq_n_u64(uint64_t{1} << 63), scaled, Broadcast(0x1p-1022));
  return lost ? least : flushed;
}

using SquareRow = FloatVec;
inline constexpr int64_t kSquare = 4;
ELASTOR_INLINE SquareRow LoadSquareRow(const float* p) { return Load(p); }
ELASTOR_INLINE void Transpose(const FloatVec (&in)[kSquare], FloatVec (&out)[kSquare]) {
  FloatVec pairs[kSquare];  // 2 x 2 blocks transposed
  for (int i = 0; i < kSquare; i += 2) {
    pairs[i] = vtrn1q_f32(in[i], in[i + 1]);
    pairs[i + 1] = vtrn2q_f32(in[i], in[i + 1]);
  }
  for (int i = 0; i < 2; ++i) {
    const auto upper = reinterpret_cast<DoubleVec>(pairs[i]);
    const auto lower = reinterpret_cast<DoubleVec>(pairs[i + 2]);
    out[i] = reinterpret_cast<FloatVec>(vtrn1q_f64(upper, lower));
    out[i + 2] = reinterpret_cast<FloatVec>(vtrn2q_f64(upper, lower));
  }
}
ELASTOR_INLINE void SaveFirst(float* to, int64_t count, FloatVec v) {
  if (count == kSquare) return Save(to, v);
  for (int64_t i = 0; i < count; ++i) to[i] = v[i];
}

using WordVec = UintVec;
ELASTOR_INLINE WordVec WordNumbers() { return UintVec{0, 1, 2, 3}; }
ELASTOR_INLINE WordVec MultiplyWords(WordVec a, uint32_t factor, WordVec& high) {
  const uint32x2_t f = vdup_n_u32(factor);
  const auto first = vreinterpretq_u32_u64(vmull_u32(vget_low_u32(a), f));
  const auto last = vreinterpretq_u32_u64(vmull_u32(vget_high_u32(a), f));
  high = vuzp2q_u32(first, last);
  return vuzp1q_u32(first, last);
}

template <typename Chains>
ELASTOR_INLINE void CombineFloatChains(const Chains (&chains)[8], FloatVec* sums) {
  for (int i = 0; i < 8; i += 4) {
    DoubleVec halves[4];  // chains c + (c+4) of a feature, in pairs
    for (int j = 0; j < 4; ++j) {
      halves[j] = reinterpret_cast<DoubleVec>(chains[i + j].v[0] + chains[i + j].v[1]);
    }
    FloatVec quarters[2];  // even and odd chains of two features
    for (int j = 0; j < 2; ++j) {
      const DoubleVec first = halves[2 * j], second = halves[2 * j + 1];
      quarters[j] = reinterpret_cast<FloatVec>(vtrn1q_f64(first, second)) +
                    reinterpret_cast<FloatVec>(vtrn2q_f64(first, second));
    }
    sums[i / 4] = vuzp1q_f32(quarters[0], quarters[1]) + vuzp2q_f32(quarters[0], quarters[1]);
  }
}

// All bits set where true.
using VecMask [[gnu::vector_size(16)]] = int64_t;
ELASTOR_INLINE VecMask IsGreater(DoubleVec a, DoubleVec b) { return a > b; }
ELASTOR_INLINE VecMask IsEqual(DoubleVec a, DoubleVec b) { return a == b; }
ELASTOR_INLINE VecMask BothOf(VecMask a, VecMask b) { return a & b; }
ELASTOR_INLINE VecMask EitherOf(VecMask a, VecMask b) { return a | b; }
ELASTOR_INLINE bool AnyOf(VecMask mask) { return (mask[0] | mask[1]) != 0; }
ELASTOR_INLINE DoubleVec Select(VecMask mask, DoubleVec yes, DoubleVec no) {
  return mask ? yes : no;
}
ELASTOR_INLINE DoubleVec LargerOf(DoubleVec a, DoubleVec b) { return Flushed(a > b ? a : b); }
ELASTOR_INLINE DoubleVec SmallerOf(DoubleVec a, DoubleVec b) { return Flushed(a < b ? a : b); }
ELASTOR_INLINE DoubleVec AndBits(DoubleVec x, uint64_t bits) {
  return reinterpret_cast<DoubleVec>(reinterpret_cast<VecMask>(x) & static_cast<int64_t>(bits));
}
ELASTOR_INLINE DoubleVec OrBits(DoubleVec a, DoubleVec b) {
  return reinterpret_cast<DoubleVec>(reinterpret_cast<VecMask>(a) | reinterpret_cast<VecMask>(b));
}

// Four doubles in two registers, in the order of batch norm's chains.
using Double4 [[gnu::vector_size(32)]] = double;
ELASTOR_INLINE Double4 TwoHalves(DoubleVec low, DoubleVec high) {
  return Double4{low[0], low[1], high[0], high[1]};
}
ELASTOR_INLINE Double4 Load4(const double* p) { return TwoHalves(Load(p), Load(p + 2)); }
ELASTOR_INLINE Double4 LoadAsDoubles(const float* p) {
  const float32x4_t v = Load(p);
  return TwoHalves(vcvt_f64_f32(vget_low_f32(v)), vcvt_high_f64_f32(v));
}
ELASTOR_INLINE Double4 Fma(Double4 a, Double4 b, Double4 c) {
  for (int i = 0; i < 4; ++i) c[i] = __builtin_fma(a[i], b[i], c[i]);
  return c;
}

}  // namespace ELASTOR_ISA
}  // namespace elastor

#endif  // ELASTOR_CORE_KERNELS_CPU_VEC_AARCH64_H_
