#ifndef ELASTOR_CORE_CUDA_BFLOAT16_ROUNDING_H_
#define ELASTOR_CORE_CUDA_BFLOAT16_ROUNDING_H_

#include <cstdint>

#include "core/cuda/bfloat16.h"
#include "core/cuda/runtime.h"

namespace elastor::cuda {

// rounded[i] = BFloat16(values[i]) for i in [0, count), both in device memory.
void RoundToBFloat16(Stream& stream, const float* values, int64_t count, BFloat16* rounded);

}  // namespace elastor::cuda

#endif  // ELASTOR_CORE_CUDA_BFLOAT16_ROUNDING_H_
