#include "core/cuda/exact_sum.h"
#include "core/cuda/exact_sum_device.h"
#include "core/cuda/launch.h"

namespace elastor::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kValuesPerThread = 4;

// A block: kThreads * kValuesPerThread neighbouring values, thread t every kThreads-th.
__global__ void __launch_bounds__(kThreads)
    AddToExactSumKernel(const double* values, int64_t count, DeviceExactSum* sum) {
  const int64_t begin = static_cast<int64_t>(blockIdx.x) * kThreads * kValuesPerThread;
  ThreadExactSum thread_sum;
  double own[kValuesPerThread];  // all under way before the first is added
#pragma unroll
  for (int64_t i = 0; i < kValuesPerThread; ++i) {
    const int64_t at = begin + i * kThreads + threadIdx.x;
    own[i] = at < count ? values[at] : 0.0;
  }
#pragma unroll
  for (int64_t i = 0; i < kValuesPerThread; ++i) thread_sum.Add(own[i]);
  thread_sum.AddWarpTo(sum);
}

}  // namespace

void AddToExactSum(Stream& stream, const double* values, int64_t count, DeviceExactSum* sum) {
  if (count == 0) return;
  Launch(stream, Blocks(count, kThreads * kValuesPerThread), kThreads, AddToExactSumKernel, values,
         count, sum);
}

}  // namespace elastor::cuda
