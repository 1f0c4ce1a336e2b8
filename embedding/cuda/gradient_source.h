#ifndef ELASTOR_EMBEDDING_CUDA_GRADIENT_SOURCE_H_
#define ELASTOR_EMBEDDING_CUDA_GRADIENT_SOURCE_H_

// For kernel sources (.cu) only: the gradients of occurrences, and of owned rows, in registers.

#include <cstdint>

#include "embedding/cuda/columns.h"
#include "embedding/cuda/gradient_kernels.h"

namespace elastor::cuda {

// The gradient of sorted occurrence i, columns [column, column + kColumns): that of its bag, of a
// mean times 1/length.
template <typename A, int kColumns>
__device__ void LoadOccurrence(const BagGradients<A>& bags, int64_t i, int column,
                               float (&to)[kColumns]) {
  const Source source = bags.sources[i];
  const int64_t place = bags.row_place[source.row];
  const A* const from = bags.de + place * bags.row_stride + source.feature + column;
  if (kColumns == 1 || bags.aligned) {  // alike for all threads
    LoadColumns(from, to);
  } else {
#pragma unroll
    for (int c = 0; c < kColumns; ++c) {
      float one[1];
      LoadColumns(from + c, one);
      to[c] = one[0];
    }
  }
  if (bags.scales == nullptr) return;
  const float scale = bags.scales[i];
#pragma unroll
  for (int c = 0; c < kColumns; ++c) to[c] *= scale;
}

// Where owned key j's gradient lies: an offset in the gradient array, or ~i of the one occurrence.
inline __device__ int64_t SourceOf(const GradientArray& array, int64_t j) {
  if (array.direct != nullptr) {
    const int64_t listed = array.direct[j];
    return listed < 0 ? listed : listed * array.stride;
  }
  return array.node_gradients[array.node_begin[j]];
}

// The summed gradient of an owned key, without L2.
template <typename A, int kColumns>
__device__ void LoadGradient(const BagGradients<A>& bags, const GradientArray& array,
                             int64_t source, int column, float (&to)[kColumns]) {
  if (source >= 0) {
    LoadColumns(array.vectors + source + column, to);
    return;
  }
  LoadOccurrence(bags, ~source, column, to);
#pragma unroll
  for (int c = 0; c < kColumns; ++c) to[c] = 0.0f + to[c];  // sums start at +0: no -0
}

// g = gradient + l2 * w.
template <int kColumns>
__device__ void AddL2(float l2, const float (&w)[kColumns], float (&g)[kColumns]) {
  if (l2 == 0) return;
#pragma unroll
  for (int c = 0; c < kColumns; ++c) g[c] += l2 * w[c];
}

}  // namespace elastor::cuda

#endif  // ELASTOR_EMBEDDING_CUDA_GRADIENT_SOURCE_H_
