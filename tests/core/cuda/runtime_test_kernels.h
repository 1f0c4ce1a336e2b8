#ifndef ELASTOR_TESTS_CORE_CUDA_RUNTIME_TEST_KERNELS_H_
#define ELASTOR_TESTS_CORE_CUDA_RUNTIME_TEST_KERNELS_H_

#include <cstdint>

#include "core/cuda/runtime.h"

namespace elastor::cuda {

// values[i] = factor * values[i] + addend.
void ScaleAndAdd(Stream& stream, int64_t count, int factor, int addend, int* values);

// out[i] = a[i] * b[i] + c[i], rounded twice.
void MultiplyAndAdd(Stream& stream, int64_t count, const float* a, const float* b, const float* c,
                    float* out);

// sums[block] = sum of the block's 256 values, through warp shuffles and static shared memory.
void SumBlocks(Stream& stream, int64_t blocks, const int* values, int* sums);

// Reverses every run of `length` values (<= 50000, a multiple of 1024) through dynamic shared
// memory.
void ReverseRuns(Stream& stream, int64_t runs, int length, int* values);

}  // namespace elastor::cuda

#endif  // ELASTOR_TESTS_CORE_CUDA_RUNTIME_TEST_KERNELS_H_
