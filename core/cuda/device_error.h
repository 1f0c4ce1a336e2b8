#ifndef ELASTOR_CORE_CUDA_DEVICE_ERROR_H_
#define ELASTOR_CORE_CUDA_DEVICE_ERROR_H_

#include <cuda_runtime_api.h>

#include <string>

#include "core/cuda/runtime.h"

namespace elastor::cuda::internal {

// Makes the opened device the calling thread's current device, which CUDA keeps per thread.
void UseDevice();

// Calls DieOfDevice unless the call succeeded.
inline void Check(cudaError_t error, const char* call) {
  if (error == cudaSuccess) return;
  DieOfDevice(std::string(call) + ": " + cudaGetErrorString(error) + " (" +
              cudaGetErrorName(error) + ")");
}

inline cudaStream_t Handle(const Stream& stream) {
  return static_cast<cudaStream_t>(stream.handle());
}

}  // namespace elastor::cuda::internal

#endif  // ELASTOR_CORE_CUDA_DEVICE_ERROR_H_
