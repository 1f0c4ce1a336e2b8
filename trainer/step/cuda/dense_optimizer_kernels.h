#ifndef ELASTOR_TRAINER_STEP_CUDA_DENSE_OPTIMIZER_KERNELS_H_
#define ELASTOR_TRAINER_STEP_CUDA_DENSE_OPTIMIZER_KERNELS_H_

#include <cstdint>

#include "core/cuda/runtime.h"
#include "embedding/cuda/update_gate.h"
#include "embedding/sparse_optimizer.h"

namespace elastor::cuda {

// What becomes of an element: Decay's values, or a running statistic.
inline constexpr uint8_t kStatisticElement = 3;

// Owned blocks of the flat array; arrays in device memory.
struct OwnedBlocks {
  int64_t count = 0;
  const int64_t* begin = nullptr;  // of every block, in the flat array
  const uint8_t* decay = nullptr;  // [count][kParameterBlock]
};

// g += lambda w; sums[b] = sum g^2 and sums[count + b] = sum lambda / 2 w^2 of block b, statistics
// left out of both.
void AddDenseL2(Stream& stream, const OwnedBlocks& blocks, float dense_lambda,
                float embedding_lambda, const float* weights, float* gradient, double* sums);

// The rule of `options` on every element, statistics moved towards their gradient instead. slots:
// [count][slots of an element][kParameterBlock].
void UpdateDense(Stream& stream, const OwnedBlocks& blocks, const SparseOptimizerOptions& options,
                 double learning_rate, int64_t step, const UpdateGate* gate, const float* gradient,
                 float* weights, float* slots);

// values[i] = value.
void SetValues(Stream& stream, float value, int64_t count, float* values);

}  // namespace elastor::cuda

#endif  // ELASTOR_TRAINER_STEP_CUDA_DENSE_OPTIMIZER_KERNELS_H_
