#ifndef ELASTOR_CORE_CUDA_EMULATION_QUEUE_H_
#define ELASTOR_CORE_CUDA_EMULATION_QUEUE_H_

#include <cstdint>
#include <functional>
#include <type_traits>

#include "core/cuda/runtime.h"

namespace elastor::cuda::emulation {

// Enqueues `work` in place of a library's call on the device. It runs in the order of the stream,
// when the schedule says so, possibly on another host thread, with denormals flushed. Captured work
// runs at every launch of the graph. It must not call core/cuda/runtime.h, nor wait for another
// thread.
void Enqueue(Stream& stream, std::function<void()> work);

// Returns how many of the stream's calls have not run yet: under a lazy schedule, all since the
// last wait for the stream.
int64_t Waiting(Stream& stream);

// Checks that the device can reach the memory: null, or in (or just behind) a Buffer or
// PinnedBuffer. Otherwise it is a program error.
void CheckReachable(const void* address);

template <typename T>
void CheckKernelArgument(const T& argument) {
  if constexpr (std::is_pointer_v<T> && !std::is_function_v<std::remove_pointer_t<T>>) {
    CheckReachable(argument);
  }
}

}  // namespace elastor::cuda::emulation

#endif  // ELASTOR_CORE_CUDA_EMULATION_QUEUE_H_
