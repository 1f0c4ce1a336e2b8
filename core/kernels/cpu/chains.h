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
// a feature takes several vectors where they have fewer lanes than chains.
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

template <typename T>
ELASTOR_INLINE void KeepInRegister(Chains<T>& c) {
  for (int i = 0; i < kChainVectors<T>; ++i) KeepInRegister(c.v[i]);
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

ELASTOR_INLINE ChainSums<float> CombineChains(const Chains<float> (&chains)[8]) {
  ChainSums<float> sums;
  CombineFloatChains(chains, sums.v);
  return sums;
}
ELASTOR_INLINE ChainSums<double> CombineChains(const Chains<double> (&chains)[8]) {
  constexpr int kWidth = kLanes<double>;
  ChainSums<double> sums;
  for (int i = 0; i < 8; ++i) {
    const auto at = [&](int c) { return chains[i].v[c / kWidth][c % kWidth]; };
    sums.v[i / kWidth][i % kWidth] =
        ((at(0) + at(4)) + (at(2) + at(6))) + ((at(1) + at(5)) + (at(3) + at(7)));
  }
  return sums;
}

// Stores the first `count` sums.
#ifdef __AVX512F__
template <typename T>
ELASTOR_INLINE void SaveSums(const ChainSums<T>& sums, int64_t count, Store store, T* out) {
  SaveFirst(out, count, store == Store::kAdd ? LoadFirst(out, count) + sums.v[0] : sums.v[0]);
}
#else
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
