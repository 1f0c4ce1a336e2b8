#ifndef ELASTOR_TESTS_CORE_CUDA_EXACT_SUM_TEST_KERNELS_H_
#define ELASTOR_TESTS_CORE_CUDA_EXACT_SUM_TEST_KERNELS_H_

#include <cstdint>

#include "core/cuda/exact_sum.h"
#include "core/cuda/runtime.h"

namespace elastor::cuda {

// values[i] = ExactSumValue of sums[i], computed on the device.
void ExactSumValues(Stream& stream, const DeviceExactSum* sums, int64_t count, double* values);

}  // namespace elastor::cuda

#endif  // ELASTOR_TESTS_CORE_CUDA_EXACT_SUM_TEST_KERNELS_H_
