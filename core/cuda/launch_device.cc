#include "core/cuda/device_error.h"
#include "core/cuda/launch_kernel.h"

namespace elastor::cuda {

int MostSharedBytes() {
  internal::UseDevice();
  int device = 0;
  internal::Check(cudaGetDevice(&device), "cudaGetDevice");
  int bytes = 0;
  internal::Check(cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device),
                  "cudaDeviceGetAttribute");
  return bytes;
}

namespace internal {
namespace {

// What every kernel may use without asking.
constexpr size_t kDefaultSharedBytes = 48 << 10;

}  // namespace

void LaunchKernel(Stream& stream, dim3 grid, dim3 threads, size_t shared_bytes, const void* kernel,
                  void** arguments) {
  if (shared_bytes > kDefaultSharedBytes) {
    Check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               static_cast<int>(shared_bytes)),
          "cudaFuncSetAttribute");
  }
  Check(cudaLaunchKernel(kernel, grid, threads, arguments, shared_bytes, Handle(stream)),
        "cudaLaunchKernel");
}

}  // namespace internal
}  // namespace elastor::cuda
