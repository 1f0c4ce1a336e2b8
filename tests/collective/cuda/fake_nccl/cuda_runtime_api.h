#ifndef ELASTOR_TESTS_COLLECTIVE_CUDA_FAKE_NCCL_CUDA_RUNTIME_API_H_
#define ELASTOR_TESTS_COLLECTIVE_CUDA_FAKE_NCCL_CUDA_RUNTIME_API_H_

// CUDA's declarations as far as collective/cuda/nccl.cc uses them.

using cudaStream_t = void*;
enum cudaError_t { cudaSuccess = 0 };
struct cudaDeviceProp {
  struct {
    char bytes[16];
  } uuid;
};

cudaError_t cudaGetDevice(int* device);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device);
const char* cudaGetErrorString(cudaError_t error);
const char* cudaGetErrorName(cudaError_t error);

#endif  // ELASTOR_TESTS_COLLECTIVE_CUDA_FAKE_NCCL_CUDA_RUNTIME_API_H_
