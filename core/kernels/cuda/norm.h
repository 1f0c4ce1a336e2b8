#ifndef ELASTOR_CORE_KERNELS_CUDA_NORM_H_
#define ELASTOR_CORE_KERNELS_CUDA_NORM_H_

#include "core/kernels/cuda/activations.h"
#include "core/kernels/cuda/elementwise.h"
#include "core/kernels/norm.h"

namespace elastor::cuda {

// Normalisation over the features of each token (core/kernels/norm.h: the same formulas, and with A
// = float the same bits except for sums over a run. These have a warp's order: lane i sums features
// i, i + 32, ... in order from +0, then lanes by halves 16, 8, 4, 2, 1). gain, bias: [features],
// shared by tokens; bias null for RMS norm. shape.width == features of a token.

// sum = x + residual (empty: x); y = norm(sum). Saved for the backward pass: normalized (as y,
// before gain and bias; view of y's shape) and scale [rows][tokens] = 1/sqrt(...). residual, sum:
// views of x's shape. sum is rounded to A before it is normalised, and stored unless that view is
// empty. y and sum may be x or residual.
template <typename A>
void NormForward(Stream& stream, const NormShape& shape, Activations<const A> x,
                 Activations<const A> residual, Activations<A> sum, const float* gain,
                 const float* bias, Activations<A> y, Activations<A> normalized, float* scale);

// dx = gradient with respect to x, plus residual (empty: none; dx may be residual or dy). Per leaf:
// dgain[l * leaf_stride + f], dbias likewise (null: none): sums over the leaf's rows and tokens, in
// chunks of kSumRows rows, the chunks' sums in order. Within a chunk its runs are counted row by
// row, a row's tokens in order: eight interleaved chains, chain c over runs c, c + 8, ... from +0
// (FMAs for dgain), combined in order. scratch: 2 * ColumnSumScratch(leaves, features).
template <typename A>
void NormBackward(Stream& stream, const NormShape& shape, const LeafShape& leaves,
                  Activations<const A> normalized, const float* scale, const float* gain,
                  Activations<const A> dy, Activations<const A> residual, Activations<A> dx,
                  float* dgain, float* dbias, int64_t leaf_stride, float* scratch);

// Ghost batch norm (core/kernels/batch_norm.h): statistics of every leaf's rows. x: [rows, 1,
// features]. counts: device, real rows of every leaf (0: absent). mean, variance (biased), scale:
// [leaves] [features]. Sums in double as on the CPU: the same bits.
template <typename A>
void BatchStatistics(Stream& stream, double epsilon, const LeafShape& leaves, const int32_t* counts,
                     Activations<const A> x, float* mean, float* variance, float* scale);
// scale[f] = 1 / sqrt(variance[f] + epsilon), of running statistics.
void BatchNormScale(Stream& stream, double epsilon, int64_t features, const float* variance,
                    float* scale);
// statistics_stride: features, or 0 where all leaves share one (running values).
template <typename A>
void BatchNormForward(Stream& stream, const LeafShape& leaves, Activations<const A> x,
                      const float* mean, const float* scale, int64_t statistics_stride,
                      const float* gain, const float* bias, Activations<A> y);
// dx is 0 in padding; dgain and dbias are sums per leaf.
template <typename A>
void BatchNormBackward(Stream& stream, const LeafShape& leaves, const int32_t* counts,
                       Activations<const A> x, const float* mean, const float* scale,
                       const float* gain, Activations<const A> dy, Activations<A> dx, float* dgain,
                       float* dbias, int64_t leaf_stride);
// Computes a leaf's contribution to the running values: out[l * leaf_stride + f] = values[l][f] *
// factor_l, with factor_l = counts[l] / *batch_rows, times counts[l] / (counts[l] - 1) for
// variances (unbiased; of a single row: 1).
void BatchNormDeliver(Stream& stream, const LeafShape& leaves, const int32_t* counts,
                      const int64_t* batch_rows, int64_t features, bool unbiased,
                      const float* values, float* out, int64_t leaf_stride);

}  // namespace elastor::cuda

#endif  // ELASTOR_CORE_KERNELS_CUDA_NORM_H_
