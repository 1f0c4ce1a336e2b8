#include <cuda_runtime_api.h>

#include <cstdint>
#include <string>

#include "core/cuda/device_error.h"
#include "core/cuda/runtime.h"

namespace elastor::cuda::internal {
namespace {

// Host memory that CUDA does not know: not page-locked.
bool Pageable(const void* address) {
  cudaPointerAttributes attributes;
  Check(cudaPointerGetAttributes(&attributes, address), "cudaPointerGetAttributes");
  return attributes.type == cudaMemoryTypeUnregistered;
}

bool Capturing(cudaStream_t stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  Check(cudaStreamIsCapturing(stream, &status), "cudaStreamIsCapturing");
  return status != cudaStreamCaptureStatusNone;
}

// CUDA leaves open when it reads or writes pageable memory: it does so now.
void FinishPageable(cudaStream_t stream, const void* to, const void* from) {
  if (!Pageable(to) && !Pageable(from)) return;
  if (Capturing(stream)) DieOfDevice("a captured copy needs page-locked host memory");
  Check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
}

cudaMemPool_t Pool() {
  int device = 0;
  Check(cudaGetDevice(&device), "cudaGetDevice");
  cudaMemPool_t pool = nullptr;
  Check(cudaDeviceGetDefaultMemPool(&pool, device), "cudaDeviceGetDefaultMemPool");
  return pool;
}

// Free on the device, and in the pool.
uint64_t FreeBytes(cudaMemPool_t pool) {
  size_t free = 0, total = 0;
  Check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  uint64_t reserved = 0, used = 0;
  Check(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent, &reserved),
        "cudaMemPoolGetAttribute");
  Check(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used),
        "cudaMemPoolGetAttribute");
  return free + (reserved - used);
}

}  // namespace

void* AllocateDevice(Stream& stream, size_t bytes) {
  const cudaStream_t handle = Handle(stream);
  if (Capturing(handle)) DieOfDevice("allocation during a capture");
  void* memory = nullptr;
  cudaError_t error = cudaMallocAsync(&memory, bytes, handle);
  if (error == cudaErrorMemoryAllocation) {
    // The pool may hold what earlier work frees, in pieces that do not fit.
    const cudaMemPool_t pool = Pool();
    static_cast<void>(cudaGetLastError());
    Check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    Check(cudaMemPoolTrimTo(pool, 0), "cudaMemPoolTrimTo");
    error = cudaMallocAsync(&memory, bytes, handle);
    if (error == cudaErrorMemoryAllocation) {
      DieOfDevice("out of memory: needs " + std::to_string(bytes) + " bytes, " +
                  std::to_string(FreeBytes(pool)) + " free");
    }
  }
  Check(error, "cudaMallocAsync");
  return memory;
}

void FreeDevice(Stream& stream, void* memory) {
  const cudaError_t error = cudaFreeAsync(memory, Handle(stream));
  // At the process's end CUDA may be gone before a static object.
  if (error != cudaErrorCudartUnloading) Check(error, "cudaFreeAsync");
}

void* AllocatePinned(size_t bytes) {
  UseDevice();
  void* memory = nullptr;
  const cudaError_t error =
      cudaHostAlloc(&memory, bytes, cudaHostAllocPortable | cudaHostAllocMapped);
  if (error == cudaErrorMemoryAllocation) {
    DieOfDevice("no page-locked host memory: needs " + std::to_string(bytes) + " bytes");
  }
  Check(error, "cudaHostAlloc");
  return memory;
}

void FreePinned(void* memory) {
  UseDevice();
  const cudaError_t error = cudaFreeHost(memory);
  if (error != cudaErrorCudartUnloading) Check(error, "cudaFreeHost");
}

void CopyBytes(Stream& stream, void* to, const void* from, size_t bytes) {
  const cudaStream_t handle = Handle(stream);
  Check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, handle), "cudaMemcpyAsync");
  FinishPageable(handle, to, from);
}

void Copy2DBytes(Stream& stream, void* to, size_t to_pitch, const void* from, size_t from_pitch,
                 size_t row_bytes, size_t rows) {
  const cudaStream_t handle = Handle(stream);
  Check(
      cudaMemcpy2DAsync(to, to_pitch, from, from_pitch, row_bytes, rows, cudaMemcpyDefault, handle),
      "cudaMemcpy2DAsync");
  FinishPageable(handle, to, from);
}

void FillBytes(Stream& stream, void* to, int byte, size_t bytes) {
  Check(cudaMemsetAsync(to, byte, bytes, Handle(stream)), "cudaMemsetAsync");
}

}  // namespace elastor::cuda::internal
