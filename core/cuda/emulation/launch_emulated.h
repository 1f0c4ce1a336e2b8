#ifndef ELASTOR_CORE_CUDA_EMULATION_LAUNCH_EMULATED_H_
#define ELASTOR_CORE_CUDA_EMULATION_LAUNCH_EMULATED_H_

#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

#include "core/cuda/emulation/block.h"
#include "core/cuda/emulation/fragments.h"
#include "core/cuda/emulation/language.h"
#include "core/cuda/emulation/queue.h"
#include "core/cuda/runtime.h"

namespace elastor::cuda {

template <typename... Parameters, typename... Arguments>
void LaunchWithSharedMemory(Stream& stream, dim3 grid, dim3 threads, size_t bytes,
                            void (*kernel)(Parameters...), Arguments&&... arguments) {
  static_assert((std::is_trivially_copyable_v<Parameters> && ...));
  (emulation::CheckKernelArgument(static_cast<Parameters>(arguments)), ...);
  auto call = [kernel, values = std::tuple<Parameters...>(static_cast<Parameters>(
                           std::forward<Arguments>(arguments))...)] { std::apply(kernel, values); };
  emulation::Enqueue(stream, [grid, threads, bytes, call]() mutable {
    const auto run = [](void* context) { (*static_cast<decltype(call)*>(context))(); };
    emulation::RunGrid(grid, threads, bytes, {run, &call});
  });
}

template <typename... Parameters, typename... Arguments>
void Launch(Stream& stream, dim3 grid, dim3 threads, void (*kernel)(Parameters...),
            Arguments&&... arguments) {
  LaunchWithSharedMemory(stream, grid, threads, 0, kernel, std::forward<Arguments>(arguments)...);
}

using emulation::OverLanes;

inline int MostSharedBytes() { return emulation::kMaxSharedBytes; }

template <typename T>
T* SharedMemory() {
  return static_cast<T*>(emulation::DynamicSharedMemory());
}

}  // namespace elastor::cuda

#endif  // ELASTOR_CORE_CUDA_EMULATION_LAUNCH_EMULATED_H_
