#ifndef ELASTOR_CORE_KERNELS_NORM_H_
#define ELASTOR_CORE_KERNELS_NORM_H_

#include "core/kernels/matmul.h"
#include "core/tensor/panels.h"

namespace elastor {

// Normalisation over each of the `groups` = features / width runs of `width` features of a row:
//   layer norm: y = (x - mean) / sqrt(var + eps) * gain + bias   (var biased, as in PyTorch)
//   RMS norm:   y = x / sqrt(mean(x^2) + eps) * gain
// Sums over a run: four interleaved chains, chain c over its features c, c+4, c+8, ... ascending
// from +0, combined (s0+s2)+(s1+s3). gain and bias have `width` elements shared by all groups (bias
// null for RMS norm).
enum class NormKind { kLayer, kRms };

struct NormShape {
  NormKind kind = NormKind::kLayer;
  int64_t width = 0;  // divides the number of features
  double epsilon = 1e-5;
};

// x, y: [rows, features] (y may be x). saved_scale: [rows, groups] receives 1/sqrt(...);
// saved_normalized: [rows, features] receives the value before gain and bias (may be the same
// memory as y only if gain and bias are applied elsewhere; never so here).
template <typename T>
void NormForward(const NormShape& shape, Panels<const T> x, const T* gain, const T* bias,
                 Panels<T> y, Panels<T> saved_normalized, Panels<T> saved_scale);

// dx = gradient with respect to x, plus `residual` when that view is not empty (dx may be residual
// or dy). dgain, dbias: `width` elements, (+)= the sum over rows and groups: per feature in the
// order of WeightGradient, then over groups ascending.
template <typename T>
void NormBackward(const NormShape& shape, Panels<const T> saved_normalized,
                  Panels<const T> saved_scale, const T* gain, Panels<const T> dy,
                  Panels<const T> residual, Panels<T> dx, T* dgain, T* dbias, Store store);

}  // namespace elastor

#endif  // ELASTOR_CORE_KERNELS_NORM_H_
