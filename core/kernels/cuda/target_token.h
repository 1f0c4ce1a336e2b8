#ifndef ELASTOR_CORE_KERNELS_CUDA_TARGET_TOKEN_H_
#define ELASTOR_CORE_KERNELS_CUDA_TARGET_TOKEN_H_

#include <cstdint>

#include "core/cuda/bfloat16.h"
#include "core/cuda/runtime.h"
#include "core/kernels/cuda/activations.h"
#include "core/kernels/cuda/device_lengths.h"

namespace elastor::cuda {

// The ops of core/ops/target_token.h, which only copy: A is float or BFloat16. The views e and de
// are [rows, 1, (n + L) k], x and dx [rows, 1, (L + 1) k], y and dy [rows, 1, n k].
struct TargetTokenShape {
  int64_t fields = 0;     // n
  int64_t positions = 0;  // L
  int64_t width = 0;      // k
  int64_t field = 0;      // index of the target field, or of the field whose place the token takes
  DeviceLengths lengths;
};

// x [rows, 1, (L + o) k], z [rows, 1, T k] (empty if T = 0) and y [rows, 1, (T + L + o) k].
struct HistoryShape {
  int64_t before = 0;     // T
  int64_t positions = 0;  // L
  int64_t width = 0;      // k
  bool last = false;
  int64_t behind = 0;  // o
  DeviceLengths lengths;
};

template <typename A>
void AppendHistory(Stream& stream, const HistoryShape& shape, Activations<const A> x,
                   Activations<const A> z, Activations<A> y);
template <typename A>
void AppendHistoryBackward(Stream& stream, const HistoryShape& shape, Activations<const A> dy,
                           Activations<A> dx, Activations<A> dz);
template <typename A>
void AppendTarget(Stream& stream, const TargetTokenShape& shape, Activations<const A> e,
                  Activations<A> x);
template <typename A>
void AppendTargetBackward(Stream& stream, const TargetTokenShape& shape, Activations<const A> dx,
                          Activations<A> de);
template <typename A>
void ReadTarget(Stream& stream, const TargetTokenShape& shape, Activations<const A> e,
                Activations<const A> x, Activations<A> y);
template <typename A>
void ReadTargetBackward(Stream& stream, const TargetTokenShape& shape, Activations<const A> dy,
                        Activations<A> de, Activations<A> dx);

}  // namespace elastor::cuda

#endif  // ELASTOR_CORE_KERNELS_CUDA_TARGET_TOKEN_H_
