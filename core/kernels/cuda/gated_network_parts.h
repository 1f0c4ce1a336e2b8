#ifndef ELASTOR_CORE_KERNELS_CUDA_GATED_NETWORK_PARTS_H_
#define ELASTOR_CORE_KERNELS_CUDA_GATED_NETWORK_PARTS_H_

#include "core/kernels/cuda/activations.h"
#include "core/kernels/cuda/fast_divisor.h"
#include "core/kernels/cuda/gated_network.h"

// For the sources of gated_network.h: a token's rows between device and shared memory, where
// feature f of the row at place i is at f * feature_step + i * place_step, and the sums of the
// parts of a leaf.

namespace elastor::cuda {

// Several blocks share a leaf if there would otherwise be fewer than this many blocks, about two
// for each of an H200's multiprocessors.
inline constexpr int kEnoughBlocks = 256;
inline constexpr int kMostParts = 8;  // most parts of a leaf

__host__ __device__ constexpr int DivideUp(int a, int b) { return (a + b - 1) / b; }
__host__ __device__ constexpr int RoundUp(int a, int b) { return DivideUp(a, b) * b; }

// Returns the number of weights of one token's network.
__host__ __device__ constexpr int GatedWeightCount(int width, int hidden) {
  return (3 * hidden + width) * width;
}

// Loads rows into shared memory. row_of(i) is the row at place i; -1 means no row and stores zeros.
// factor(x) converts a number to its form in shared memory. The whole block must call it;
// neighbouring threads take neighbouring features.
template <typename A, typename To, typename RowOf, typename Factor>
__device__ inline void LoadRows(const FastDivisor& by_width, const Activations<const A>& from,
                                int64_t token, int places, const RowOf& row_of, int feature_step,
                                int place_step, const Factor& factor, To* to) {
  const A* const data = from.data + token * from.token_stride;
  const int width = static_cast<int>(by_width.divisor());
  for (int i = static_cast<int>(threadIdx.x); i < places * width; i += blockDim.x) {
    const int place = static_cast<int>(by_width.Divide(i));
    const int feature = i - place * width;
    const int64_t row = row_of(place);
    to[feature * feature_step + place * place_step] =
        row < 0 ? To{} : factor(data[row * from.row_stride + feature]);
  }
}
template <typename A, typename RowOf>
__device__ inline void StoreRows(const FastDivisor& by_width, const A* from, int feature_step,
                                 int place_step, int64_t token, int places, const RowOf& row_of,
                                 const Activations<A>& to) {
  A* const data = to.data + token * to.token_stride;
  const int width = static_cast<int>(by_width.divisor());
  for (int i = static_cast<int>(threadIdx.x); i < places * width; i += blockDim.x) {
    const int place = static_cast<int>(by_width.Divide(i));
    const int feature = i - place * width;
    const int64_t row = row_of(place);
    if (row >= 0) {
      data[row * to.row_stride + feature] = from[feature * feature_step + place * place_step];
    }
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
// Returns the bytes of shared memory that these kernels take; 0 if they cannot compute this
// network.
template <typename A>
int TensorGatedBytes(const GatedNetwork& network);

// Returns where the parts' gradients go before AddGatedParts. The gradients of a token, leaf and
// part lie together, in the order W1, W2, W3, Wr.
GatedGradients GatedPartTargets(const GatedNetwork& network, int64_t leaves, int parts,
                                float* scratch);
// to = the sums of a leaf's parts, as the leaves of a tree. REQUIRES: parts is a power of two.
void AddGatedParts(Stream& stream, const GatedNetwork& network, int64_t leaves, int parts,
                   const float* scratch, const GatedGradients& to);

}  // namespace elastor::cuda

#endif  // ELASTOR_CORE_KERNELS_CUDA_GATED_NETWORK_PARTS_H_
