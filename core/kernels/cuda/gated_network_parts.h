#ifndef ELASTOR_CORE_KERNELS_CUDA_GATED_NETWORK_PARTS_H_
#define ELASTOR_CORE_KERNELS_CUDA_GATED_NETWORK_PARTS_H_

#include <cstdint>

#include "core/kernels/cuda/activations.h"
#include "core/kernels/cuda/fast_divisor.h"
#include "core/kernels/cuda/gated_network.h"
#include "core/kernels/cuda/values.h"

// For the sources of gated_network.h: a token's rows between device and shared memory, where
// feature f of the row at place i is at f * feature_step + i * place_step, and the sums of the
// parts of a leaf.

namespace elastor::cuda {

// Blocks share a leaf where there are fewer than so many in all, about two for each of an H200's
// multiprocessors.
inline constexpr int kEnoughBlocks = 256;
inline constexpr int kMostParts = 8;  // of a leaf

__host__ __device__ constexpr int DivideUp(int a, int b) { return (a + b - 1) / b; }
__host__ __device__ constexpr int RoundUp(int a, int b) { return DivideUp(a, b) * b; }

// Of a token.
__host__ __device__ constexpr int GatedWeightCount(int width, int hidden) {
  return (3 * hidden + width) * width;
}

// Of a token, from or to `data`, features kCount at a time. REQUIRES: rows begin at multiples of
// kCount elements, and are as many.
template <int kCount, typename A, typename To, typename RowOf, typename Factor>
__device__ inline void LoadPacks(const FastDivisor& by_width, const A* data, int64_t row_stride,
                                 int places, const RowOf& row_of, int feature_step, int place_step,
                                 const Factor& factor, To* to) {
  const int width = static_cast<int>(by_width.divisor());
  const int threads = static_cast<int>(blockDim.x);
  for (int i = kCount * static_cast<int>(threadIdx.x); i < places * width; i += kCount * threads) {
    const int place = static_cast<int>(by_width.Divide(i));
    const int feature = i - place * width;
    const int64_t row = row_of(place);
    Pack<A, kCount> pack = {};
    if (row >= 0) {
      pack = *reinterpret_cast<const Pack<A, kCount>*>(data + row * row_stride + feature);
    }
    for (int j = 0; j < kCount; ++j) {
      to[(feature + j) * feature_step + place * place_step] = factor(pack.v[j]);
    }
  }
}
template <int kCount, typename A, typename RowOf>
__device__ inline void StorePacks(const FastDivisor& by_width, const A* from, int feature_step,
                                  int place_step, int places, const RowOf& row_of, A* data,
                                  int64_t row_stride) {
  const int width = static_cast<int>(by_width.divisor());
  const int threads = static_cast<int>(blockDim.x);
  for (int i = kCount * static_cast<int>(threadIdx.x); i < places * width; i += kCount * threads) {
    const int place = static_cast<int>(by_width.Divide(i));
    const int feature = i - place * width;
    const int64_t row = row_of(place);
    if (row < 0) continue;
    Pack<A, kCount> pack;
    for (int j = 0; j < kCount; ++j) {
      pack.v[j] = from[(feature + j) * feature_step + place * place_step];
    }
    *reinterpret_cast<Pack<A, kCount>*>(data + row * row_stride + feature) = pack;
  }
}
template <typename A>
__device__ inline bool HavePairs(const A* data, int64_t row_stride, int width) {
  return width % 2 == 0 && row_stride % 2 == 0 &&
         reinterpret_cast<uintptr_t>(data) % (2 * sizeof(A)) == 0;
}

// row_of(i) is the row at place i, -1 for none, which has zeros; factor(x) what shared memory holds
// of a number, of 0 too. By the whole block, neighbouring threads taking neighbouring features, two
// of them at a time where rows allow it.
template <typename A, typename To, typename RowOf, typename Factor>
__device__ inline void LoadRows(const FastDivisor& by_width, const Activations<const A>& from,
                                int64_t token, int places, const RowOf& row_of, int feature_step,
                                int place_step, const Factor& factor, To* to) {
  const A* const data = from.data + token * from.token_stride;
  if (HavePairs(data, from.row_stride, static_cast<int>(by_width.divisor()))) {
    LoadPacks<2>(by_width, data, from.row_stride, places, row_of, feature_step, place_step, factor,
                 to);
  } else {
    LoadPacks<1>(by_width, data, from.row_stride, places, row_of, feature_step, place_step, factor,
                 to);
  }
}
template <typename A, typename RowOf>
__device__ inline void StoreRows(const FastDivisor& by_width, const A* from, int feature_step,
                                 int place_step, int64_t token, int places, const RowOf& row_of,
                                 const Activations<A>& to) {
  A* const data = to.data + token * to.token_stride;
  if (HavePairs(data, to.row_stride, static_cast<int>(by_width.divisor()))) {
    StorePacks<2>(by_width, from, feature_step, place_step, places, row_of, data, to.row_stride);
  } else {
    StorePacks<1>(by_width, from, feature_step, place_step, places, row_of, data, to.row_stride);
  }
}

// GatedNetworkForward and GatedNetworkBackward by tensor cores: with floats in TF32, with BFloat16.
// They write every row of z and dx.
template <typename A>
void TensorGatedForward(Stream& stream, const GatedNetwork& network, const GatedWeights<A>& weights,
                        Activations<const A> x, Activations<A> z);
template <typename A>
void TensorGatedBackward(Stream& stream, const GatedNetwork& network,
                         const GatedWeights<A>& weights, const LeafShape& leaves,
                         int64_t canonical_leaves, Activations<const A> x, Activations<const A> dz,
                         Activations<A> dx, const GatedGradients& gradients, float* scratch);
// The shared memory that they take; 0: not for this network.
template <typename A>
int TensorGatedBytes(const GatedNetwork& network);

// Where the gradients of parts go before AddGatedParts: those of a token, leaf and part together,
// in the order W1, W2, W3, Wr.
GatedGradients GatedPartTargets(const GatedNetwork& network, int64_t leaves, int parts,
                                float* scratch);
// to = the sums of a leaf's parts, as the leaves of a tree. REQUIRES: parts is a power of two.
void AddGatedParts(Stream& stream, const GatedNetwork& network, int64_t leaves, int parts,
                   const float* scratch, const GatedGradients& to);

}  // namespace elastor::cuda

#endif  // ELASTOR_CORE_KERNELS_CUDA_GATED_NETWORK_PARTS_H_
