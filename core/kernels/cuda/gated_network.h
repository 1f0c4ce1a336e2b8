#ifndef ELASTOR_CORE_KERNELS_CUDA_GATED_NETWORK_H_
#define ELASTOR_CORE_KERNELS_CUDA_GATED_NETWORK_H_

#include <cstdint>

#include "core/cuda/runtime.h"
#include "core/kernels/cuda/activations.h"
#include "core/kernels/matmul.h"

namespace elastor::cuda {

// The gated per-token network of RankElastor's eq. 4 (core/ops/gated_feed_forward.h) as one kernel
// forward and one backward: what lies between x and z stays on the multiprocessor, and Backward
// computes it again. T tokens of width D, H hidden; token t of x [rows, T, D] has weights of its
// own:
//   p = W1 x, q = W2 x, h = act(p) * q, z = [W3 Wr] [h; x]
//   dh = W3^T dz, dp = dh * (q * act'(p)), dq = dh * act(p), dx = [W1^T W2^T Wr^T] [dp; dq; dz]
//   and for every leaf dW12 = [dp; dq] x^T, dW3 = dz h^T, dWr = dz x^T
// All is computed in float, in the orders of core/kernels/matmul.h: every product is one FMA chain
// an element over the inputs in the order written, and weight gradients are WeightGradient's eight
// chains over the rows of a leaf. So z, dx and all gradients have the CPU's bits.
struct GatedNetwork {
  int64_t tokens = 1;
  int64_t width = 0;   // D
  int64_t hidden = 0;  // H
  Activation activation = Activation::kGelu;
};

// Whether this process's device can hold a token's weights beside the rows that are computed at
// once, and a block's threads all of their gradients: D = 26 and H = 78 need 107 KiB. And the
// same of a device that gives a block so many bytes of shared memory.
bool FitsMultiprocessor(const GatedNetwork& network);
bool FitsMultiprocessor(const GatedNetwork& network, int shared_bytes);

// In device memory.
struct GatedWeights {
  const float* up = nullptr;        // [T, 2, H, D]: W1, W2
  const float* down = nullptr;      // [T, D, H]: W3
  const float* residual = nullptr;  // [T, D, D]: Wr
};
// Where the gradient of a weight goes: token t's of leaf l to data + t map_stride + l leaf_stride.
struct LeafTarget {
  float* data = nullptr;
  int64_t map_stride = 0;
  int64_t leaf_stride = 0;
};
struct GatedGradients {
  LeafTarget up;
  LeafTarget down;
  LeafTarget residual;
};

// REQUIRES: FitsMultiprocessor.
void GatedNetworkForward(Stream& stream, const GatedNetwork& network, const GatedWeights& weights,
                         Activations<const float> x, Activations<float> z);
// A block computes a token of a leaf or, where these are few, one, two or four of the eight chains,
// which are then added up: the bits are the same. scratch: GatedScratchFloats, for the chains'
// sums.
int64_t GatedScratchFloats(const GatedNetwork& network);
void GatedNetworkBackward(Stream& stream, const GatedNetwork& network, const GatedWeights& weights,
                          const LeafShape& leaves, Activations<const float> x,
                          Activations<const float> dz, Activations<float> dx,
                          const GatedGradients& gradients, float* scratch);

}  // namespace elastor::cuda

#endif  // ELASTOR_CORE_KERNELS_CUDA_GATED_NETWORK_H_
