#ifndef ELASTOR_CORE_KERNELS_BATCH_NORM_H_
#define ELASTOR_CORE_KERNELS_BATCH_NORM_H_

#include "core/kernels/matmul.h"
#include "core/tensor/panels.h"

namespace elastor {

// Batch normalisation: every feature by itself, over the real rows of a view (those of one leaf):
//   n = (x - mean) * scale,  y = fma(n, gain, bias),  scale = 1 / sqrt(var + epsilon), var biased.
// Sums over rows are in double, whatever T: four interleaved chains, chain c over rows c, c + 4,
// ... ascending from +0, combined (s0 + s2) + (s1 + s3). The variance is summed in a second pass,
// from fma(x - mean, x - mean, s) with the mean in double. Results are rounded to T once. mean,
// variance, scale, gain, bias, dgain, dbias: one element a feature.

// x: [rows, features], rows > 0.
template <typename T>
void BatchStatistics(double epsilon, Panels<const T> x, T* mean, T* variance, T* scale);

// scale[f] = 1 / sqrt(variance[f] + epsilon), in double.
template <typename T>
void BatchNormScale(double epsilon, int64_t features, const T* variance, T* scale);

// x, y: [rows, features] (y may be x). With a batch's own statistics, or with running ones.
template <typename T>
void BatchNormForward(Panels<const T> x, const T* mean, const T* scale, const T* gain,
                      const T* bias, Panels<T> y);

// The gradient through y and through mean and scale, which are x's own:
//   dbias (+)= sum dy,  dgain (+)= sum fma(dy, n, .)
//   dx = fnma(n, mean(dy n), dy - mean(dy)) * (gain * scale), 0 in padded rows (may be dy)
template <typename T>
void BatchNormBackward(Panels<const T> x, const T* mean, const T* scale, const T* gain,
                       Panels<const T> dy, Panels<T> dx, T* dgain, T* dbias, Store store);

}  // namespace elastor

#endif  // ELASTOR_CORE_KERNELS_BATCH_NORM_H_
