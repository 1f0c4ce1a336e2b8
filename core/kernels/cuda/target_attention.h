#ifndef ELASTOR_CORE_KERNELS_CUDA_TARGET_ATTENTION_H_
#define ELASTOR_CORE_KERNELS_CUDA_TARGET_ATTENTION_H_

#include <cstdint>

#include "core/cuda/bfloat16.h"
#include "core/cuda/runtime.h"
#include "core/kernels/cuda/activations.h"
#include "core/kernels/cuda/device_lengths.h"

namespace elastor::cuda {

// The parts of target attention (core/ops/target_attention.h) around its MLP. A is float or
// BFloat16; everything is computed in float and rounded once to A. The views x and dx are [rows, 1,
// (n + L) k], y and dy [rows, 1, n k]. Positions are rows of the MLP, L for each device row.
// Positions that a row lacks are included: they hold finite values, and their weights and gradients
// are 0.
struct TargetAttentionShape {
  int64_t fields = 0;     // n
  int64_t positions = 0;  // L
  int64_t width = 0;      // k
  int64_t target = 0;
  int64_t field = 0;  // index of the field whose place the result takes
  DeviceLengths lengths;
};

// inputs [rows, L, 4k] = [a, h_t, a - h_t, a * h_t].
template <typename A>
void TargetAttentionInputs(Stream& stream, const TargetAttentionShape& shape,
                           Activations<const A> x, Activations<A> inputs);
// Computes weights [rows][L] from scores [rows][L].
void TargetAttentionWeights(Stream& stream, const TargetAttentionShape& shape, int64_t rows,
                            bool softmax, const float* scores, float* weights);
// Computes y from x and the weights.
template <typename A>
void TargetAttentionOutput(Stream& stream, const TargetAttentionShape& shape,
                           Activations<const A> x, const float* weights, Activations<A> y);
// Computes dscores [rows, L, 1]. dweights: scratch, [rows][L].
template <typename A>
void TargetAttentionScoreGradients(Stream& stream, const TargetAttentionShape& shape, bool softmax,
                                   Activations<const A> x, const float* weights,
                                   Activations<const A> dy, float* dweights,
                                   Activations<A> dscores);
// Computes dx from dy and the gradient of `inputs`.
template <typename A>
void TargetAttentionInputGradients(Stream& stream, const TargetAttentionShape& shape,
                                   Activations<const A> x, const float* weights,
                                   Activations<const A> dy, Activations<const A> dinputs,
                                   Activations<A> dx);

}  // namespace elastor::cuda

#endif  // ELASTOR_CORE_KERNELS_CUDA_TARGET_ATTENTION_H_
