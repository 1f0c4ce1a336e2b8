#include "core/cuda/emulation/launch_emulated.h"
#include "tests/core/cuda/emulation/hazard_kernels.h"

namespace elastor::cuda {
namespace {

constexpr int kThreads = 128;

__global__ void RotateKernel(Barrier barrier, int shift, const int* in, int* out) {
  __shared__ int values[kThreads];
  const int i = threadIdx.x;
  values[i] = in[i];
  if (barrier == Barrier::kWarp) __syncwarp();
  if (barrier == Barrier::kBlock) __syncthreads();
  out[i] = values[(i + shift) % kThreads];
}

__global__ void WriteIndicesKernel(int count, int* out) {
  for (int i = threadIdx.x; i < count; i += blockDim.x) out[i] = i;
}

__global__ void AddOneKernel(const int* in, int* out) { out[0] = in[0] + 1; }

__global__ void CopyFourKernel(const float* in, float* out) {
  *reinterpret_cast<float4*>(out) = *reinterpret_cast<const float4*>(in);
}

__global__ void ReadUnwrittenKernel(float* out) {
  __shared__ float values[kThreads];
  const int i = threadIdx.x;
  out[blockIdx.x * kThreads + i] = values[i];
  values[i] = 1;
}

__global__ void WriteSharedKernel(int index, int* out) {
  __shared__ int values[kThreads];
  values[threadIdx.x] = 0;
  __syncthreads();
  values[index] = 1;
  __syncthreads();
  out[threadIdx.x] = values[threadIdx.x];
}

__global__ void SynchronizeHalfKernel() {
  if (threadIdx.x >= kThreads / 2) return;
  __syncthreads();
}

__global__ void ShuffleHalfKernel(int* out) {
  if (threadIdx.x % 2 == 0) out[threadIdx.x] = __shfl_xor_sync(0xffffffffu, 1, 2);
}

}  // namespace

void Rotate(Stream& stream, Barrier barrier, int shift, const int* in, int* out) {
  Launch(stream, 1, kThreads, RotateKernel, barrier, shift, in, out);
}
void WriteIndices(Stream& stream, int count, int* out) {
  Launch(stream, 1, kThreads, WriteIndicesKernel, count, out);
}
void AddOne(Stream& stream, const int* in, int* out) {
  Launch(stream, 1, 1, AddOneKernel, in, out);
}
void CopyFour(Stream& stream, const float* in, float* out) {
  Launch(stream, 1, 1, CopyFourKernel, in, out);
}
void ReadUnwritten(Stream& stream, float* out) {
  Launch(stream, 2, kThreads, ReadUnwrittenKernel, out);
}
void WriteShared(Stream& stream, int index, int* out) {
  Launch(stream, 1, kThreads, WriteSharedKernel, index, out);
}
void SynchronizeHalf(Stream& stream) { Launch(stream, 1, kThreads, SynchronizeHalfKernel); }
void ShuffleHalf(Stream& stream, int* out) { Launch(stream, 1, kThreads, ShuffleHalfKernel, out); }

}  // namespace elastor::cuda
