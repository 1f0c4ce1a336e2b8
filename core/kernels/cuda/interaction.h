#ifndef ELASTOR_CORE_KERNELS_CUDA_INTERACTION_H_
#define ELASTOR_CORE_KERNELS_CUDA_INTERACTION_H_

#include <cstdint>

#include "core/cuda/bfloat16.h"
#include "core/cuda/runtime.h"
#include "core/kernels/cuda/activations.h"

namespace elastor::cuda {

// Sums over the products of two vectors of tokens, column by column: the compressed interaction of
// xDeepFM (core/ops/compressed_interaction.h) and its gradients. Everything is computed in float.

// A tensor W of which element (o, u, v) is data[o * strides[0] + u * strides[1] + v * strides[2]].
template <typename A>
struct InteractionWeights {
  const A* data = nullptr;
  int64_t strides[3] = {};
};

// y(r, o, d) = sum over u, then v, of W(o, u, v) a(r, u, d) b(r, v, d) (+ bias[o]) (+ addend(r, o,
// d)): an FMA chain from +0 over u of a and the chain over v. bias may be null, addend empty or y.
template <typename A>
void Interaction(Stream& stream, const InteractionWeights<A>& w, Activations<const A> a,
                 Activations<const A> b, const float* bias, Activations<const A> addend,
                 Activations<A> y);

// Per leaf l: dw[l * weight_stride + (o * a.tokens + u) * b.tokens + v] = sum over the leaf's rows
// and their columns of dy(r, o, d) (a(r, u, d) b(r, v, d)); dbias[l * bias_stride + o] = the same
// sum of dy(r, o, d). FMA chains from +0 over rows, then columns.
template <typename A>
void InteractionGradients(Stream& stream, const LeafShape& shape, Activations<const A> dy,
                          Activations<const A> a, Activations<const A> b, float* dw,
                          int64_t weight_stride, float* dbias, int64_t bias_stride);

}  // namespace elastor::cuda

#endif  // ELASTOR_CORE_KERNELS_CUDA_INTERACTION_H_
