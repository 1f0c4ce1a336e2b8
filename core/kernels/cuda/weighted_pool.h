#ifndef ELASTOR_CORE_KERNELS_CUDA_WEIGHTED_POOL_H_
#define ELASTOR_CORE_KERNELS_CUDA_WEIGHTED_POOL_H_

#include <cstdint>

#include "core/cuda/bfloat16.h"
#include "core/cuda/runtime.h"
#include "core/kernels/cuda/activations.h"

namespace elastor::cuda {

// Weighted sums of tokens (core/ops/weighted_pool.h): x [rows, G T, K], y [rows, G, K], U [K][T].
// Everything is computed in float.

// y(r, g, k) = sum over t of U[k][t] x(r, g T + t, k): an FMA chain from +0 over ascending t.
template <typename A>
void WeightedPool(Stream& stream, const A* u, Activations<const A> x, Activations<A> y);
// dx(r, g T + t, k) = U[k][t] dy(r, g, k).
template <typename A>
void WeightedPoolBackward(Stream& stream, const A* u, Activations<const A> dy, Activations<A> dx);
// Per leaf l: du[l * leaf_stride + k * T + t] = sum over the leaf's rows r and then g of
// dy(r, g, k) x(r, g T + t, k): an FMA chain from +0.
template <typename A>
void WeightedPoolGradient(Stream& stream, const LeafShape& shape, Activations<const A> dy,
                          Activations<const A> x, float* du, int64_t leaf_stride);

}  // namespace elastor::cuda

#endif  // ELASTOR_CORE_KERNELS_CUDA_WEIGHTED_POOL_H_
