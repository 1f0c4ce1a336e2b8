#include "core/cuda/launch.h"
#include "tests/core/cuda/runtime_test_kernels.h"

namespace elastor::cuda {
namespace {

// A thread a value.
__global__ void ScaleAndAddKernel(int64_t count, int factor, int addend, int* values) {
  const int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < count) values[i] = factor * values[i] + addend;
}

// A thread a value.
__global__ void MultiplyAndAddKernel(int64_t count, const float* a, const float* b, const float* c,
                                     float* out) {
  const int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < count) out[i] = a[i] * b[i] + c[i];
}

constexpr int kSumThreads = 256;

// A thread a value.
__global__ void __launch_bounds__(kSumThreads) SumBlocksKernel(const int* values, int* sums) {
  __shared__ int of_warp[kSumThreads / kWarp];
  int sum = values[int64_t{blockIdx.x} * kSumThreads + threadIdx.x];
  for (int delta = kWarp / 2; delta > 0; delta /= 2) {
    sum += __shfl_down_sync(0xffffffffu, sum, delta);
  }
  if (threadIdx.x % kWarp == 0) of_warp[threadIdx.x / kWarp] = sum;
  __syncthreads();
  if (threadIdx.x != 0) return;
  int total = 0;
  for (int warp = 0; warp < kSumThreads / kWarp; ++warp) total += of_warp[warp];
  sums[blockIdx.x] = total;
}

// A block a run; a thread every 1024th value.
__global__ void ReverseRunsKernel(int length, int* values) {
  int* const shared = SharedMemory<int>();
  int* const run = values + int64_t{blockIdx.x} * length;
  for (int i = threadIdx.x; i < length; i += blockDim.x) shared[i] = run[i];
  __syncthreads();
  for (int i = threadIdx.x; i < length; i += blockDim.x) run[i] = shared[length - 1 - i];
}

}  // namespace

void ScaleAndAdd(Stream& stream, int64_t count, int factor, int addend, int* values) {
  if (count == 0) return;
  Launch(stream, Blocks(count, 128), 128, ScaleAndAddKernel, count, factor, addend, values);
}

void MultiplyAndAdd(Stream& stream, int64_t count, const float* a, const float* b, const float* c,
                    float* out) {
  if (count == 0) return;
  Launch(stream, Blocks(count, 128), 128, MultiplyAndAddKernel, count, a, b, c, out);
}

void SumBlocks(Stream& stream, int64_t blocks, const int* values, int* sums) {
  if (blocks == 0) return;
  Launch(stream, Blocks(blocks, 1), kSumThreads, SumBlocksKernel, values, sums);
}

void ReverseRuns(Stream& stream, int64_t runs, int length, int* values) {
  if (runs == 0) return;
  LaunchWithSharedMemory(stream, Blocks(runs, 1), 1024, length * sizeof(int), ReverseRunsKernel,
                         length, values);
}

}  // namespace elastor::cuda
