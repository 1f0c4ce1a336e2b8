#ifndef ELASTOR_CORE_KERNELS_CUDA_WARP_RUNS_H_
#define ELASTOR_CORE_KERNELS_CUDA_WARP_RUNS_H_

#include <cstdint>
#include <type_traits>

#include "core/cuda/launch.h"

// For kernel sources: a warp holds a run of features in registers; lane i has features i, i + 32,
// ..., at most kSlots of them.

namespace elastor::cuda {

// Returns the sum over the lanes, to all of them. Lanes 16, 8, 4, 2 and 1 apart are added in
// turn.
__device__ inline float SumOverLanes(float v) {
  return OverLanes(v, [](float a, float b) { return a + b; });
}

// Runs that need more slots a lane than this are not held in registers: they are read again for
// every sum.
inline constexpr int64_t kMostSlots = 32;

// Calls launch(slots) with the fewest compiled slots that hold `width` features, as a
// std::integral_constant, 0 when none do.
template <typename LaunchSlots>
void WithSlots(int64_t width, LaunchSlots launch) {
  const int64_t slots = (width + kWarp - 1) / kWarp;
  if (slots <= 1) return launch(std::integral_constant<int, 1>{});
  if (slots <= 2) return launch(std::integral_constant<int, 2>{});
  if (slots <= 4) return launch(std::integral_constant<int, 4>{});
  if (slots <= 8) return launch(std::integral_constant<int, 8>{});
  if (slots <= 16) return launch(std::integral_constant<int, 16>{});
  if (slots <= 24) return launch(std::integral_constant<int, 24>{});
  if (slots <= kMostSlots) return launch(std::integral_constant<int, 32>{});
  return launch(std::integral_constant<int, 0>{});
}

}  // namespace elastor::cuda

#endif  // ELASTOR_CORE_KERNELS_CUDA_WARP_RUNS_H_
