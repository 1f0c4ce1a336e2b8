#ifndef ELASTOR_CORE_KERNELS_CUDA_ATTENTION_H_
#define ELASTOR_CORE_KERNELS_CUDA_ATTENTION_H_

#include <cstdint>

#include "core/cuda/runtime.h"
#include "core/kernels/attention.h"
#include "core/kernels/cuda/activations.h"
#include "core/kernels/cuda/device_lengths.h"
#include "core/kernels/cuda/elementwise.h"

namespace elastor::cuda {

// What attention knows of its rows beside their tokens.
struct AttentionRows {
  bool all_keys = true;   // else a row has a sequence's positions and one key more, its target
  DeviceLengths lengths;  // of the sequence
  DeviceDropout dropout;  // of the weights; none where its rate is 0
};

// core/kernels/attention.h on the device: q [rows, Tq, h d], k [rows, Tk, h d], v [rows, Tk, h dv],
// y [rows, Tq, h dv], in any layout; weights and sums in float. A warp computes a query. Order: as
// on the CPU, but for sums over keys within a softmax, of which lane c takes keys c, c + 32, ...
// and adds the lanes' (SumOverLanes).
template <typename A>
void AttentionForward(Stream& stream, const AttentionShape& shape, Activations<const A> q,
                      Activations<const A> k, Activations<const A> v, const AttentionRows& rows,
                      const float* position_bias, Activations<A> y);

// Elements of either scratch, of a row.
inline int64_t AttentionScratch(const AttentionShape& shape) {
  return shape.heads * shape.queries * shape.keys;
}
// Weights are computed again. dposition_bias: [rows][differences()] or null: what each row adds.
// weights, gradients: scratch, AttentionScratch elements a row.
template <typename A>
void AttentionBackward(Stream& stream, const AttentionShape& shape, Activations<const A> q,
                       Activations<const A> k, Activations<const A> v, const AttentionRows& rows,
                       const float* position_bias, Activations<const A> dy, Activations<A> dq,
                       Activations<A> dk, Activations<A> dv, float* dposition_bias, float* weights,
                       float* gradients);

}  // namespace elastor::cuda

#endif  // ELASTOR_CORE_KERNELS_CUDA_ATTENTION_H_
