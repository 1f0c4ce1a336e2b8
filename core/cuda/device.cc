#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "core/cuda/device_error.h"
#include "core/cuda/runtime.h"

namespace elastor::cuda {
namespace {

// The oldest architecture that //third_party/cuda:defs.bzl compiles for.
constexpr int kOldestMajor = 8;

// Set once by OpenDevice.
int opened_index = -1;
std::string opened_name = "CUDA";

std::string Versions() {
  int runtime = 0;
  internal::Check(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
  const size_t blas = cublasLtGetVersion();
  return "cuda-" + std::to_string(runtime / 1000) + "." + std::to_string(runtime % 1000 / 10) +
         " cublas-" + std::to_string(blas / 10000) + "." + std::to_string(blas / 100 % 100) + "." +
         std::to_string(blas % 100);
}

// Freed memory stays in the pool, so that allocation is cheap.
void KeepPool(int index) {
  cudaMemPool_t pool = nullptr;
  internal::Check(cudaDeviceGetDefaultMemPool(&pool, index), "cudaDeviceGetDefaultMemPool");
  uint64_t threshold = UINT64_MAX;
  internal::Check(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold),
                  "cudaMemPoolSetAttribute");
}

}  // namespace

int DeviceCount() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
}

StatusOr<DeviceInfo> OpenDevice(int index) {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess) {
    return UserError(std::string("no CUDA device: ") + cudaGetErrorString(error));
  }
  if (index < 0 || index >= count) {
    return UserError("no CUDA device " + std::to_string(index) + ": this process sees " +
                     std::to_string(count));
  }
  cudaDeviceProp properties;
  if (const cudaError_t failed = cudaGetDeviceProperties(&properties, index);
      failed != cudaSuccess) {
    return UserError("CUDA device " + std::to_string(index) + ": " + cudaGetErrorString(failed));
  }
  DeviceInfo info;
  info.index = index;
  info.name = properties.name;
  info.multiprocessors = properties.multiProcessorCount;
  info.memory_bytes = static_cast<int64_t>(properties.totalGlobalMem);
  info.l2_bytes = properties.l2CacheSize;
  info.capability = std::to_string(properties.major) + "." + std::to_string(properties.minor);
  const std::string name = "CUDA device " + std::to_string(index) + " (" + info.name + ")";
  if (properties.major < kOldestMajor) {
    return UserError(name + ": compute capability " + info.capability + ", this build needs " +
                     std::to_string(kOldestMajor) + ".0");
  }
  if (properties.memoryPoolsSupported == 0) {
    return UserError(name + ": no stream-ordered memory pools");
  }
  if (const cudaError_t failed = cudaSetDevice(index); failed != cudaSuccess) {
    return UserError(name + ": " + cudaGetErrorString(failed));
  }
  opened_index = index;
  opened_name = name;
  info.libraries = Versions();
  KeepPool(index);
  return info;
}

void DieOfDevice(const std::string& what) {
  std::fprintf(stderr, "%s: %s\n", opened_name.c_str(), what.c_str());
  std::fflush(stderr);
  _exit(3);
}

namespace internal {

void UseDevice() {
  static thread_local bool used = false;
  if (used) return;
  if (opened_index < 0) DieOfDevice("used before OpenDevice");
  Check(cudaSetDevice(opened_index), "cudaSetDevice");
  used = true;
}

}  // namespace internal
}  // namespace elastor::cuda
