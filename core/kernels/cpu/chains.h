#ifndef ELASTOR_CORE_KERNELS_CPU_CHAINS_H_
#define ELASTOR_CORE_KERNELS_CPU_CHAINS_H_

#include <cstdint>

#include "core/kernels/cpu/vec.h"
#include "core/kernels/matmul.h"
#include "core/tensor/panels.h"

namespace elastor {
inline namespace ELASTOR_ISA {

// Sums over rows run in eight interleaved chains, chain c over rows c, c + 8, ... The widest
// vectors hold them. One vector holds one feature's chains, or two features' if it has 16 floats;
// chains of doubles in vectors of 32 bytes take two vectors a feature.
inline constexpr int kChains = 8;
inline constexpr int kChainSteps = kPanelRows / kChains;  // in one panel
template <typename T>
inline constexpr int kChainFeatures = kLanes<T> > kChains ? kLanes<T> / kChains : 1;
template <typename T>
inline constexpr int kChainVectors = kLanes<T> < kChains ? kChains / kLanes<T> : 1;

// The chains of kChainFeatures features, one after the other.
template <typename T>
struct Chains {
  Vec<T> v[kChainVectors<T>];
};

// Chains as they lie in memory, kChains * kChainFeatures elements.
template <typename T>
ELASTOR_INLINE Chains<T> LoadWholeChains(const T* in) {
  Chains<T> chains;
  for (int i = 0; i < kChainVectors<T>; ++i) chains.v[i] = Load(in + i * kLanes<T>);
  return chains;
}
template <typename T>
ELASTOR_INLINE void SaveChains(const Chains<T>& chains, T* out) {
  for (int i = 0; i < kChainVectors<T>; ++i) Save(out + i * kLanes<T>, chains.v[i]);
}

// Loads eight rows of kChainFeatures features that lie `stride` elements apart.
template <typename T>
ELASTOR_INLINE Chains<T> LoadChains(const T* rows, [[maybe_unused]] int64_t stride) {
  if constexpr (kChainFeatures<T> == 2) return {{LoadPair(rows, rows + stride)}};
  return LoadWholeChains(rows);
}

// Loads eight rows of one feature and repeats them for every feature of the chains.
template <typename T>
ELASTOR_INLINE Chains<T> RepeatChains(const T* rows) {
  if constexpr (kChainFeatures<T> == 2) return {{LoadRepeated8(rows)}};
  return LoadWholeChains(rows);
}

// Keeps a loaded value in a register for several uses. GCC would otherwise read memory in every
// FMA, and the CPU does at most two loads a cycle.
template <typename T>
ELASTOR_INLINE void KeepInRegister(Chains<T>& c) {
  for (int i = 0; i < kChainVectors<T>; ++i) asm("" : "+v"(c.v[i]));
}

template <typename T>
ELASTOR_INLINE void FmaChains(const Chains<T>& a, const Chains<T>& b, Chains<T>& sum) {
  for (int i = 0; i < kChainVectors<T>; ++i) sum.v[i] = Fma(a.v[i], b.v[i], sum.v[i]);
}

template <typename T>
ELASTOR_INLINE void MultiplyAddChains(const Chains<T>& a, const Chains<T>& b, Chains<T>& sum) {
  for (int i = 0; i < kChainVectors<T>; ++i) sum.v[i] = MultiplyAdd(a.v[i], b.v[i], sum.v[i]);
}

template <typename T>
ELASTOR_INLINE void AddChains(const Chains<T>& a, Chains<T>& sum) {
  for (int i = 0; i < kChainVectors<T>; ++i) sum.v[i] += a.v[i];
}

// The combined chains ((c0+c4)+(c2+c6)) + ((c1+c5)+(c3+c7)) of eight Chains, features ascending.
template <typename T>
inline constexpr int kSums = 8 * kChainFeatures<T>;
template <typename T>
struct ChainSums {
  Vec<T> v[kSums<T> / kLanes<T>];

  ELASTOR_INLINE void operator+=(const ChainSums& other) {
    for (int i = 0; i < kSums<T> / kLanes<T>; ++i) v[i] += other.v[i];
  }
};

#ifdef __AVX512F__
ELASTOR_INLINE ChainSums<float> CombineChains(const Chains<float> (&chains)[8]) {
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
  return {{_mm512_permutexvar_ps(order, even + odd)}};
}
ELASTOR_INLINE ChainSums<double> CombineChains(const Chains<double> (&chains)[8]) {
  ChainSums<double> sums;
  for (int i = 0; i < 8; ++i) {
    const Double8 c = chains[i].v[0];
    sums.v[0][i] = ((c[0] + c[4]) + (c[2] + c[6])) + ((c[1] + c[5]) + (c[3] + c[7]));
  }
  return sums;
}

// Stores the first `count` sums.
template <typename T>
ELASTOR_INLINE void SaveSums(const ChainSums<T>& sums, int64_t count, Store store, T* out) {
  SaveFirst(out, count, store == Store::kAdd ? LoadFirst(out, count) + sums.v[0] : sums.v[0]);
}
#else
ELASTOR_INLINE ChainSums<float> CombineChains(const Chains<float> (&chains)[8]) {
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
  return {{even + odd}};
}
ELASTOR_INLINE ChainSums<double> CombineChains(const Chains<double> (&chains)[8]) {
  ChainSums<double> sums;
  for (int i = 0; i < 8; ++i) {
    const Double4 halves = chains[i].v[0] + chains[i].v[1];
    sums.v[i / 4][i % 4] = (halves[0] + halves[2]) + (halves[1] + halves[3]);
  }
  return sums;
}

template <typename T>
ELASTOR_INLINE void SaveSums(const ChainSums<T>& sums, int64_t count, Store store, T* out) {
  T values[kSums<T>];
  for (int i = 0; i < kSums<T> / kLanes<T>; ++i) Save(values + i * kLanes<T>, sums.v[i]);
  for (int64_t i = 0; i < count; ++i)
    out[i] = store == Store::kAdd ? out[i] + values[i] : values[i];
}
#endif

}  // namespace ELASTOR_ISA
}  // namespace elastor

#endif  // ELASTOR_CORE_KERNELS_CPU_CHAINS_H_
