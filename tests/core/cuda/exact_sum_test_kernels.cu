#include "core/cuda/exact_sum_words.h"
#include "core/cuda/launch.h"
#include "tests/core/cuda/exact_sum_test_kernels.h"

namespace elastor::cuda {
namespace {

__global__ void ExactSumValuesKernel(const DeviceExactSum* sums, int64_t count, double* values) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count) values[i] = ExactSumValue(sums[i].words);
}

}  // namespace

void ExactSumValues(Stream& stream, const DeviceExactSum* sums, int64_t count, double* values) {
  Launch(stream, Blocks(count, 64), 64, ExactSumValuesKernel, sums, count, values);
}

}  // namespace elastor::cuda
