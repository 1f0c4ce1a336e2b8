#include "core/cuda/bfloat16_rounding.h"
#include "core/cuda/launch.h"

namespace elastor::cuda {
namespace {

constexpr int kThreads = 256;

// A thread per value.
__global__ void __launch_bounds__(kThreads)
    RoundToBFloat16Kernel(const float* values, int64_t count, BFloat16* rounded) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i < count) rounded[i] = BFloat16(values[i]);
}

}  // namespace

void RoundToBFloat16(Stream& stream, const float* values, int64_t count, BFloat16* rounded) {
  if (count == 0) return;
  Launch(stream, Blocks(count, kThreads), kThreads, RoundToBFloat16Kernel, values, count, rounded);
}

}  // namespace elastor::cuda
