#ifndef ELASTOR_CORE_KERNELS_CUDA_SINKHORN_H_
#define ELASTOR_CORE_KERNELS_CUDA_SINKHORN_H_

#include <cstdint>

#include "core/cuda/bfloat16.h"
#include "core/cuda/runtime.h"
#include "core/kernels/sinkhorn.h"

namespace elastor::cuda {

// core/kernels/sinkhorn.h on a device, in its order of additions, hence with its bits.

// Logits [count][size][size], or with rank > 0 the product of left [rows, rank] and right [rank,
// columns], rows * columns being their number.
struct SinkhornLogits {
  const float* left = nullptr;
  const float* right = nullptr;
  int64_t rows = 0;
  int64_t rank = 0;
  int64_t columns = 0;
};

// What is computed of a step's logits: float [count][size][size], [count][vectors()][size],
// [count][size][size].
struct SinkhornState {
  float* scores = nullptr;
  float* vectors = nullptr;
  float* matrices = nullptr;
};

// Numbers of every matrix of every leaf.
struct SinkhornLeaves {
  float* data = nullptr;
  int64_t map_stride = 0;
  int64_t leaf_stride = 0;
};

// factors: the matrices rounded to A, or null.
template <typename A>
void SinkhornMatrices(Stream& stream, const SinkhornShape& shape, const SinkhornLogits& logits,
                      const SinkhornState& state, A* factors);
// dlogits = the gradients of `leaves` leaves. dmatrices are changed. vectors: scratch, float
// [count][leaves][2][size].
void SinkhornGradients(Stream& stream, const SinkhornShape& shape, const SinkhornState& state,
                       int64_t leaves, const SinkhornLeaves& dmatrices, float* vectors,
                       const SinkhornLeaves& dlogits);
// The gradients of the factors of every leaf. dlogits: [leaves][rows * columns].
void SinkhornFactorGradients(Stream& stream, const SinkhornLogits& logits, int64_t leaves,
                             const float* dlogits, float* dleft, int64_t left_stride, float* dright,
                             int64_t right_stride);

}  // namespace elastor::cuda

#endif  // ELASTOR_CORE_KERNELS_CUDA_SINKHORN_H_
