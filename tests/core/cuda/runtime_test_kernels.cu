#include "core/cuda/launch.h"
#include "tests/core/cuda/runtime_test_kernels.h"

namespace elastor::cuda {
namespace {

// A thread a value.
__global__ void ScaleAndAddKernel(int64_t count, int factor, int addend, int* values) {
  const int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < count) values[i] = factor * values[i] + addend;
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

// A thread a value.
__global__ void ReverseBlocksKernel(int* values) {
  int* const shared = SharedMemory<int>();
  int* const block = values + int64_t{blockIdx.x} * blockDim.x;
  shared[threadIdx.x] = block[threadIdx.x];
  __syncthreads();
  block[threadIdx.x] = shared[blockDim.x - 1 - threadIdx.x];
}

}  // namespace

void ScaleAndAdd(Stream& stream, int64_t count, int factor, int addend, int* values) {
  if (count == 0) return;
  Launch(stream, Blocks(count, 128), 128, ScaleAndAddKernel, count, factor, addend, values);
}

void SumBlocks(Stream& stream, int64_t blocks, const int* values, int* sums) {
  if (blocks == 0) return;
  Launch(stream, Blocks(blocks, 1), kSumThreads, SumBlocksKernel, values, sums);
}

void ReverseBlocks(Stream& stream, int64_t blocks, int* values) {
  if (blocks == 0) return;
  LaunchWithSharedMemory(stream, Blocks(blocks, 1), 1024, 1024 * sizeof(int), ReverseBlocksKernel,
                         values);
}

}  // namespace elastor::cuda
