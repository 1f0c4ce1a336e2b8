#ifndef ELASTOR_TESTS_CORE_CUDA_RUNTIME_TEST_KERNELS_H_
#define ELASTOR_TESTS_CORE_CUDA_RUNTIME_TEST_KERNELS_H_

#include <cstdint>

#include "core/cuda/runtime.h"

namespace elastor::cuda {

// values[i] = factor * values[i] + addend.
void ScaleAndAdd(Stream& stream, int64_t count, int factor, int addend, int* values);

// sums[block] = sum of the block's 256 values, through warp shuffles and static shared memory.
void SumBlocks(Stream& stream, int64_t blocks, const int* values, int* sums);

// Reverses every block of 1024 values through dynamic shared memory.
void ReverseBlocks(Stream& stream, int64_t blocks, int* values);

}  // namespace elastor::cuda

#endif  // ELASTOR_TESTS_CORE_CUDA_RUNTIME_TEST_KERNELS_H_
