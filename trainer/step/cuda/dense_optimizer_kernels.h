#ifndef ELASTOR_TRAINER_STEP_CUDA_DENSE_OPTIMIZER_KERNELS_H_
#define ELASTOR_TRAINER_STEP_CUDA_DENSE_OPTIMIZER_KERNELS_H_

#include <cstdint>

#include "core/cuda/runtime.h"
#include "core/optimizer/optimizer_options.h"
#include "embedding/cuda/update_gate.h"

namespace elastor::cuda {

// Kind of an element that is a running statistic. Other elements have a value of Decay as their
// kind.
inline constexpr uint8_t kStatisticElement = 3;

// The blocks of the flat array that this rank owns. The arrays are in device memory.
struct OwnedBlocks {
  int64_t count = 0;
  const int64_t* begin = nullptr;  // [count] first element of every block, in the flat array
  const uint8_t* decay = nullptr;  // [count][kParameterBlock]
};

// Adds the L2 term: g += lambda w. sums[b] becomes the sum of g^2 over block b, and sums[count + b]
// the sum of lambda / 2 w^2. Statistics count in neither.
void AddDenseL2(Stream& stream, const OwnedBlocks& blocks, float dense_lambda,
                float embedding_lambda, const float* weights, float* gradient, double* sums);

// Applies the rule of `options` to every element. An element with Decay::kDense is multiplied by
// `kept` first. Statistics move towards their gradient instead. Shape: slots [count][slots per
// element][kParameterBlock].
void UpdateDense(Stream& stream, const OwnedBlocks& blocks, const OptimizerOptions& options,
                 double learning_rate, int64_t step, float kept, const UpdateGate* gate,
                 const float* gradient, float* weights, float* slots);

// Sets values[i] = value for i < count, in device memory.
void SetValues(Stream& stream, float value, int64_t count, float* values);

}  // namespace elastor::cuda

#endif  // ELASTOR_TRAINER_STEP_CUDA_DENSE_OPTIMIZER_KERNELS_H_
