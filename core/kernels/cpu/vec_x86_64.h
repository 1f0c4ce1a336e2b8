#ifndef ELASTOR_CORE_KERNELS_CPU_VEC_X86_64_H_
#define ELASTOR_CORE_KERNELS_CPU_VEC_X86_64_H_

#include <immintrin.h>

#include <cstdint>

// The part of vec.h for x86-64, which includes it: AVX2, AVX-512 and AVX512-BF16.

namespace elastor {
inline namespace ELASTOR_ISA {

// 32 bytes.
using Float4 [[gnu::vector_size(16)]] = float;  // 16 bytes
using Float8 [[gnu::vector_size(32)]] = float;
using Double4 [[gnu::vector_size(32)]] = double;
using Int8 [[gnu::vector_size(32)]] = int32_t;
using Uint8 [[gnu::vector_size(32)]] = uint32_t;

// Unaligned.
ELASTOR_INLINE Float8 Load8(const float* p) { return _mm256_loadu_ps(p); }
ELASTOR_INLINE Double4 Load4(const double* p) { return _mm256_loadu_pd(p); }
ELASTOR_INLINE void Save(float* p, Float8 v) { _mm256_storeu_ps(p, v); }
ELASTOR_INLINE void Save(double* p, Double4 v) { _mm256_storeu_pd(p, v); }

// a * b + c, one rounding.
ELASTOR_INLINE Float8 Fma(Float8 a, Float8 b, Float8 c) { return _mm256_fmadd_ps(a, b, c); }
ELASTOR_INLINE Double4 Fma(Double4 a, Double4 b, Double4 c) { return _mm256_fmadd_pd(a, b, c); }
// c - a * b, one rounding.
ELASTOR_INLINE Float8 NegativeFma(Float8 a, Float8 b, Float8 c) {
  return _mm256_fnmadd_ps(a, b, c);
}
ELASTOR_INLINE Double4 NegativeFma(Double4 a, Double4 b, Double4 c) {
  return _mm256_fnmadd_pd(a, b, c);
}

ELASTOR_INLINE Float4 Sqrt(Float4 v) { return _mm_sqrt_ps(v); }
ELASTOR_INLINE Float8 Sqrt(Float8 v) { return _mm256_sqrt_ps(v); }
ELASTOR_INLINE Double4 Sqrt(Double4 v) { return _mm256_sqrt_pd(v); }

// Returns the larger (smaller) of a bound and v; v if v is NaN.
ELASTOR_INLINE Float8 AtLeast(Float8 bound, Float8 v) { return _mm256_max_ps(bound, v); }
ELASTOR_INLINE Double4 AtLeast(Double4 bound, Double4 v) { return _mm256_max_pd(bound, v); }
ELASTOR_INLINE Float8 AtMost(Float8 bound, Float8 v) { return _mm256_min_ps(bound, v); }

ELASTOR_INLINE Float8 Abs(Float8 v) { return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), v); }
// Returns `negative` where the sign bit of v is set, else `positive`.
ELASTOR_INLINE Float8 SelectBySign(Float8 v, Float8 negative, Float8 positive) {
  return _mm256_blendv_ps(positive, negative, v);
}
// Returns the magnitude v >= 0 with the sign bit of `sign`.
ELASTOR_INLINE Float8 WithSignOf(Float8 sign, Float8 v) {
  return _mm256_or_ps(v, _mm256_and_ps(_mm256_set1_ps(-0.0f), sign));
}

// Returns whether every lane of a is less than b's; NaN is not.
ELASTOR_INLINE bool AllBelow(Float4 a, Float4 b) {
  return _mm_movemask_ps(_mm_cmp_ps(a, b, _CMP_LT_OQ)) == 0xf;
}
ELASTOR_INLINE bool AllBelow(Float8 a, Float8 b) {
  return _mm256_movemask_ps(_mm256_cmp_ps(a, b, _CMP_LT_OQ)) == 0xff;
}
ELASTOR_INLINE bool AllBelow(Double4 a, Double4 b) {
  return _mm256_movemask_pd(_mm256_cmp_pd(a, b, _CMP_LT_OQ)) == 0xf;
}

// CanonicalProduct of every lane (core/base/canonical_flush.h).
template <typename V>
ELASTOR_INLINE V CanonicalProducts(V a, V b) {
  return a * b;
}

ELASTOR_INLINE Int8 Bits(Float8 v) { return reinterpret_cast<Int8>(v); }
ELASTOR_INLINE Float8 FromBits(Int8 v) { return reinterpret_cast<Float8>(v); }

// Keeps a loaded value in a register for several uses. GCC would otherwise read memory in every
// FMA, and the CPU does at most two loads a cycle.
template <typename V>
ELASTOR_INLINE void KeepInRegister(V& v) {
  asm("" : "+v"(v));
}

// Loads four floats and converts them.
ELASTOR_INLINE Double4 LoadAsDoubles(const float* p) { return _mm256_cvtps_pd(_mm_loadu_ps(p)); }

// Converts the bytes of a word, the lowest first, to as many floats as a vector has (NEON: the four
// lower ones).
ELASTOR_INLINE Float8 FloatsOfBytes(uint64_t bytes) {
  const __m128i lanes = _mm_cvtsi64_si128(static_cast<int64_t>(bytes));
  return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(lanes));
}

// Squares of elements that are transposed in registers (square.h).
using SquareRow = Float8;
inline constexpr int64_t kSquare = 8;
ELASTOR_INLINE SquareRow LoadSquareRow(const float* p) { return Load8(p); }
ELASTOR_INLINE void Transpose(const Float8 (&in)[kSquare], Float8 (&out)[kSquare]) {
  Float8 pairs[kSquare];  // 2 x 2 blocks transposed, then blocks of 2, then of 4
  for (int i = 0; i < kSquare; i += 2) {
    pairs[i] = _mm256_unpacklo_ps(in[i], in[i + 1]);
    pairs[i + 1] = _mm256_unpackhi_ps(in[i], in[i + 1]);
  }
  Float8 quads[kSquare];
  for (int i = 0; i < kSquare; i += 4) {
    quads[i] = _mm256_shuffle_ps(pairs[i], pairs[i + 2], 0x44);
    quads[i + 1] = _mm256_shuffle_ps(pairs[i], pairs[i + 2], 0xee);
    quads[i + 2] = _mm256_shuffle_ps(pairs[i + 1], pairs[i + 3], 0x44);
    quads[i + 3] = _mm256_shuffle_ps(pairs[i + 1], pairs[i + 3], 0xee);
  }
  for (int i = 0; i < 4; ++i) {
    out[i] = _mm256_permute2f128_ps(quads[i], quads[i + 4], 0x20);
    out[i + 4] = _mm256_permute2f128_ps(quads[i], quads[i + 4], 0x31);
  }
}
// Stores the first `count` lanes, 1 to kSquare.
ELASTOR_INLINE void SaveFirst(float* to, int64_t count, Float8 v) {
  if (count == kSquare) return Save(to, v);
  __m128 part = _mm256_castps256_ps128(v);
  if (count & 4) {
    _mm_storeu_ps(to, part);
    part = _mm256_extractf128_ps(v, 1);
    to += 4;
  }
  if (count & 2) {
    _mm_storel_pi(reinterpret_cast<__m64*>(to), part);
    part = _mm_movehl_ps(part, part);
    to += 2;
  }
  if (count & 1) _mm_store_ss(to, part);
}

#ifdef __AVX512F__
// 64 bytes: the same functions.
using Float16 [[gnu::vector_size(64)]] = float;
using Double8 [[gnu::vector_size(64)]] = double;
using Int16 [[gnu::vector_size(64)]] = int32_t;
using Uint16 [[gnu::vector_size(64)]] = uint32_t;

ELASTOR_INLINE void Save(float* p, Float16 v) { _mm512_storeu_ps(p, v); }
ELASTOR_INLINE void Save(double* p, Double8 v) { _mm512_storeu_pd(p, v); }
ELASTOR_INLINE Float16 Fma(Float16 a, Float16 b, Float16 c) { return _mm512_fmadd_ps(a, b, c); }
ELASTOR_INLINE Double8 Fma(Double8 a, Double8 b, Double8 c) { return _mm512_fmadd_pd(a, b, c); }
ELASTOR_INLINE Float16 NegativeFma(Float16 a, Float16 b, Float16 c) {
  return _mm512_fnmadd_ps(a, b, c);
}
ELASTOR_INLINE Double8 NegativeFma(Double8 a, Double8 b, Double8 c) {
  return _mm512_fnmadd_pd(a, b, c);
}
ELASTOR_INLINE Float16 Sqrt(Float16 v) { return _mm512_sqrt_ps(v); }
ELASTOR_INLINE Double8 Sqrt(Double8 v) { return _mm512_sqrt_pd(v); }
ELASTOR_INLINE Float16 AtLeast(Float16 bound, Float16 v) { return _mm512_max_ps(bound, v); }
ELASTOR_INLINE Double8 AtLeast(Double8 bound, Double8 v) { return _mm512_max_pd(bound, v); }
ELASTOR_INLINE Float16 AtMost(Float16 bound, Float16 v) { return _mm512_min_ps(bound, v); }
ELASTOR_INLINE Float16 Abs(Float16 v) { return _mm512_andnot_ps(_mm512_set1_ps(-0.0f), v); }
ELASTOR_INLINE Float16 SelectBySign(Float16 v, Float16 negative, Float16 positive) {
  return _mm512_mask_blend_ps(_mm512_movepi32_mask(_mm512_castps_si512(v)), positive, negative);
}
ELASTOR_INLINE Float16 WithSignOf(Float16 sign, Float16 v) {
  return _mm512_or_ps(v, _mm512_and_ps(_mm512_set1_ps(-0.0f), sign));
}
ELASTOR_INLINE bool AllBelow(Float16 a, Float16 b) {
  return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ) == 0xffff;
}
ELASTOR_INLINE bool AllBelow(Double8 a, Double8 b) {
  return _mm512_cmp_pd_mask(a, b, _CMP_LT_OQ) == 0xff;
}
ELASTOR_INLINE Int16 Bits(Float16 v) { return reinterpret_cast<Int16>(v); }
ELASTOR_INLINE Float16 FromBits(Int16 v) { return reinterpret_cast<Float16>(v); }

using FloatVec = Float16;
using DoubleVec = Double8;
using IntVec = Int16;
using UintVec = Uint16;
ELASTOR_INLINE FloatVec Load(const float* p) { return _mm512_loadu_ps(p); }
ELASTOR_INLINE DoubleVec Load(const double* p) { return _mm512_loadu_pd(p); }
// Loads 32 bytes from each, `low` into the lower lanes.
ELASTOR_INLINE Float16 LoadPair(const float* low, const float* high) {
  return _mm512_insertf32x8(_mm512_castps256_ps512(Load8(low)), Load8(high), 1);
}
// Loads 32 bytes into both halves.
ELASTOR_INLINE Float16 LoadRepeated8(const float* p) { return _mm512_broadcast_f32x8(Load8(p)); }
// Loads the first `count` lanes; the others are zero, and memory beyond is not read.
ELASTOR_INLINE FloatVec LoadFirst(const float* p, int64_t count) {
  return _mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << count) - 1), p);
}
ELASTOR_INLINE DoubleVec LoadFirst(const double* p, int64_t count) {
  return _mm512_maskz_loadu_pd(static_cast<__mmask8>((1u << count) - 1), p);
}
ELASTOR_INLINE void SaveFirst(float* p, int64_t count, FloatVec v) {
  _mm512_mask_storeu_ps(p, static_cast<__mmask16>((1u << count) - 1), v);
}
ELASTOR_INLINE void SaveFirst(double* p, int64_t count, DoubleVec v) {
  _mm512_mask_storeu_pd(p, static_cast<__mmask8>((1u << count) - 1), v);
}
ELASTOR_INLINE FloatVec Broadcast(float s) { return _mm512_set1_ps(s); }
ELASTOR_INLINE DoubleVec Broadcast(double s) { return _mm512_set1_pd(s); }
inline constexpr int kRegisters = 32;

// Philox's words of several counters (philox_vec.h).
using WordVec = Uint16;
ELASTOR_INLINE WordVec WordNumbers() {
  return Uint16{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
}
// The 64-bit products of all lanes: returns the low words.
ELASTOR_INLINE WordVec MultiplyWords(WordVec a, uint32_t factor, WordVec& high) {
  const __m512i f = _mm512_set1_epi64(factor);
  const __m512i lanes = reinterpret_cast<__m512i>(a);
  const __m512i even = _mm512_mul_epu32(lanes, f);
  const __m512i odd = _mm512_mul_epu32(_mm512_srli_epi64(lanes, 32), f);
  high =
      reinterpret_cast<Uint16>(_mm512_mask_blend_epi32(0xaaaa, _mm512_srli_epi64(even, 32), odd));
  return reinterpret_cast<Uint16>(
      _mm512_mask_blend_epi32(0xaaaa, even, _mm512_slli_epi64(odd, 32)));
}

// CombineChains of chains.h.
template <typename Chains>
ELASTOR_INLINE void CombineFloatChains(const Chains (&chains)[8], FloatVec* sums) {
  Float16 halves[4];  // chains c + (c+4) of four features
  for (int i = 0; i < 4; ++i) {
    const Float16 first = chains[2 * i].v[0];
    const Float16 second = chains[2 * i + 1].v[0];
    halves[i] = Float16(_mm512_shuffle_f32x4(first, second, 0x88)) +
                Float16(_mm512_shuffle_f32x4(first, second, 0xdd));
  }
  Float16 quarters[2];  // even and odd chains of feature i, then of i + 4, in every 16 bytes
  for (int i = 0; i < 2; ++i) {
    const __m512d first = _mm512_castps_pd(halves[2 * i]);
    const __m512d second = _mm512_castps_pd(halves[2 * i + 1]);
    quarters[i] =
        Float16(_mm512_unpacklo_pd(first, second)) + Float16(_mm512_unpackhi_pd(first, second));
  }
  const Float16 even = _mm512_shuffle_ps(quarters[0], quarters[1], 0x88);
  const Float16 odd = _mm512_shuffle_ps(quarters[0], quarters[1], 0xdd);
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  sums[0] = _mm512_permutexvar_ps(order, even + odd);
}

// Masks of one vector: a bit each in AVX-512, all bits set where true in AVX2.
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
// Return the larger (smaller) of a and b; b if either is NaN.
ELASTOR_INLINE DoubleVec LargerOf(DoubleVec a, DoubleVec b) { return _mm512_max_pd(a, b); }
ELASTOR_INLINE DoubleVec SmallerOf(DoubleVec a, DoubleVec b) { return _mm512_min_pd(a, b); }
ELASTOR_INLINE DoubleVec AndBits(DoubleVec x, uint64_t bits) {
  return _mm512_and_pd(x, _mm512_castsi512_pd(_mm512_set1_epi64(static_cast<int64_t>(bits))));
}
ELASTOR_INLINE DoubleVec OrBits(DoubleVec a, DoubleVec b) { return _mm512_or_pd(a, b); }
#else
using FloatVec = Float8;
using DoubleVec = Double4;
using IntVec = Int8;
using UintVec = Uint8;
ELASTOR_INLINE FloatVec Load(const float* p) { return Load8(p); }
ELASTOR_INLINE DoubleVec Load(const double* p) { return Load4(p); }
ELASTOR_INLINE FloatVec Broadcast(float s) { return _mm256_set1_ps(s); }
ELASTOR_INLINE DoubleVec Broadcast(double s) { return _mm256_set1_pd(s); }
inline constexpr int kRegisters = 16;

// Philox's words of several counters (philox_vec.h).
using WordVec = Uint8;
ELASTOR_INLINE WordVec WordNumbers() { return Uint8{0, 1, 2, 3, 4, 5, 6, 7}; }
// The 64-bit products of all lanes: returns the low words.
ELASTOR_INLINE WordVec MultiplyWords(WordVec a, uint32_t factor, WordVec& high) {
  const __m256i f = _mm256_set1_epi64x(factor);
  const __m256i lanes = reinterpret_cast<__m256i>(a);
  const __m256i even = _mm256_mul_epu32(lanes, f);
  const __m256i odd = _mm256_mul_epu32(_mm256_srli_epi64(lanes, 32), f);
  high = reinterpret_cast<Uint8>(_mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xaa));
  return reinterpret_cast<Uint8>(_mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xaa));
}

template <typename Chains>
ELASTOR_INLINE void CombineFloatChains(const Chains (&chains)[8], FloatVec* sums) {
  Float8 halves[4];  // chains c + (c+4), in the lower half of feature i, in the upper of i + 4
  for (int i = 0; i < 4; ++i) {
    const __m256 low = chains[i].v[0];
    const __m256 high = chains[i + 4].v[0];
    halves[i] = _mm256_blend_ps(low, high, 0xf0) + _mm256_permute2f128_ps(low, high, 0x21);
  }
  Float8 quarters[2];  // lanes 0, 1: even and odd chains of feature 2i, lanes 2, 3: of 2i + 1
  for (int i = 0; i < 2; ++i) {
    const __m256d first = _mm256_castps_pd(halves[2 * i]);
    const __m256d second = _mm256_castps_pd(halves[2 * i + 1]);
    quarters[i] =
        Float8(_mm256_unpacklo_pd(first, second)) + Float8(_mm256_unpackhi_pd(first, second));
  }
  const Float8 even = _mm256_shuffle_ps(quarters[0], quarters[1], 0x88);
  const Float8 odd = _mm256_shuffle_ps(quarters[0], quarters[1], 0xdd);
  sums[0] = even + odd;
}

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

// One step of a product's chain: c + a * b. The build for AVX512-BF16 multiplies words, each a pair
// of bfloat16 in the memory of a float (core/kernels/cpu/bfloat16.h).
#ifdef __AVX512BF16__
ELASTOR_INLINE Float8 MultiplyAdd(Float8 a, Float8 b, Float8 c) {
  return _mm256_dpbf16_ps(c, reinterpret_cast<__m256bh>(a), reinterpret_cast<__m256bh>(b));
}
ELASTOR_INLINE Float16 MultiplyAdd(Float16 a, Float16 b, Float16 c) {
  return _mm512_dpbf16_ps(c, reinterpret_cast<__m512bh>(a), reinterpret_cast<__m512bh>(b));
}
#else
template <typename V>
ELASTOR_INLINE V MultiplyAdd(V a, V b, V c) {
  return Fma(a, b, c);
}
#endif

}  // namespace ELASTOR_ISA
}  // namespace elastor

#endif  // ELASTOR_CORE_KERNELS_CPU_VEC_X86_64_H_
