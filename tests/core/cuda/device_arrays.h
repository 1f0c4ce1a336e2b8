#ifndef ELASTOR_TESTS_CORE_CUDA_DEVICE_ARRAYS_H_
#define ELASTOR_TESTS_CORE_CUDA_DEVICE_ARRAYS_H_

#include <cstdint>
#include <vector>

#include "core/cuda/runtime.h"

namespace elastor::cuda {

// A copy of `values` in device memory, for work of `stream`.
template <typename T>
Buffer<T> Upload(Stream& stream, const std::vector<T>& values) {
  Buffer<T> buffer(&stream, static_cast<int64_t>(values.size()));
  Copy(stream, buffer.data(), values.data(), buffer.size());
  return buffer;
}

// The contents when the stream has done its work so far.
template <typename T>
std::vector<T> Download(Stream& stream, const Buffer<T>& buffer) {
  std::vector<T> values(buffer.size());
  Copy(stream, values.data(), static_cast<const T*>(buffer.data()), buffer.size());
  stream.Synchronize();
  return values;
}

}  // namespace elastor::cuda

#endif  // ELASTOR_TESTS_CORE_CUDA_DEVICE_ARRAYS_H_
