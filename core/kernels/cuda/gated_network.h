#ifndef ELASTOR_CORE_KERNELS_CUDA_GATED_NETWORK_H_
#define ELASTOR_CORE_KERNELS_CUDA_GATED_NETWORK_H_

#include <cstdint>

#include "core/base/precision.h"
#include "core/cuda/bfloat16.h"
#include "core/cuda/runtime.h"
#include "core/kernels/cuda/activations.h"
#include "core/kernels/matmul.h"

namespace elastor::cuda {

// The gated per-token network of RankElastor's eq. 4 (core/ops/gated_feed_forward.h) as one kernel
// forward and one backward. Values between x and z stay on the multiprocessor, and Backward
// computes them again. T tokens of width D, H hidden; token t of x [rows, T, D] has weights of its
// own:
//   p = W1 x, q = W2 x, h = act(p) * q, z = [W3 Wr] [h; x]
//   dh = W3^T dz, dp = dh * (q * act'(p)), dq = dh * act(p), dx = [W1^T W2^T Wr^T] [dp; dq; dz]
//   and for every leaf dW12 = [dp; dq] x^T, dW3 = dz h^T, dWr = dz x^T
// In FLOAT32 all is computed in the orders of core/kernels/matmul.h: every product is one FMA chain
// an element over the inputs in the order written, and weight gradients are WeightGradient's eight
// chains over the rows of a leaf. So z, dx and all gradients have the CPU's bits. In TF32 and
// BFLOAT16 tensor cores compute the products: factors, h, dp and dq among them, are rounded once,
// sums are floats in the device's order, which is taken to be the same for a row wherever it lies,
// and is for a leaf on any number of ranks.
struct GatedNetwork {
  int64_t tokens = 1;
  int64_t width = 0;   // D
  int64_t hidden = 0;  // H
  Activation activation = Activation::kGelu;
  Precision precision = Precision::kFloat32;
};

// Returns whether this process's device fits the network. A multiprocessor must hold a token's
// weights beside the rows that are computed at once, and a block's threads must hold all of the
// weights' gradients. D = 26 and H = 78 need 107 KiB in FLOAT32, 195 in TF32 and 102 in BFLOAT16.
// The second form asks about a device that gives a block so many bytes of shared memory.
bool FitsMultiprocessor(const GatedNetwork& network);
bool FitsMultiprocessor(const GatedNetwork& network, int shared_bytes);

// The weights of all tokens, in device memory.
template <typename A>
struct GatedWeights {
  const A* up = nullptr;        // [T, 2, H, D]: W1, W2
  const A* down = nullptr;      // [T, D, H]: W3
  const A* residual = nullptr;  // [T, D, D]: Wr
};
// The destination of a weight's gradient: token t's gradient of leaf l goes to data + t map_stride
// + l leaf_stride.
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

// REQUIRES: FitsMultiprocessor, and the network's precision is A's: kFloat32 or kTf32 for float.
template <typename A>
void GatedNetworkForward(Stream& stream, const GatedNetwork& network,
                         const GatedWeights<A>& weights, Activations<const A> x, Activations<A> z);
// A block computes one token of one leaf or, if there are few of these, a part of it; the parts'
// sums are then added. In FLOAT32 parts are one, two or four of the eight chains, and the bits are
// the same. In other precisions their number is a function of canonical_leaves, the leaves of the
// whole job, and of the leaves' rows. scratch: GatedScratchFloats, for the parts' sums.
int64_t GatedScratchFloats(const GatedNetwork& network);
template <typename A>
void GatedNetworkBackward(Stream& stream, const GatedNetwork& network,
                          const GatedWeights<A>& weights, const LeafShape& leaves,
                          int64_t canonical_leaves, Activations<const A> x, Activations<const A> dz,
                          Activations<A> dx, const GatedGradients& gradients, float* scratch);

}  // namespace elastor::cuda

#endif  // ELASTOR_CORE_KERNELS_CUDA_GATED_NETWORK_H_
