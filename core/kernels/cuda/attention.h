#ifndef ELASTOR_CORE_KERNELS_CUDA_ATTENTION_H_
#define ELASTOR_CORE_KERNELS_CUDA_ATTENTION_H_

#include <cstdint>

#include "core/cuda/runtime.h"
#include "core/kernels/attention.h"
#include "core/kernels/cuda/activations.h"
#include "core/kernels/cuda/device_lengths.h"
#include "core/kernels/cuda/elementwise.h"

namespace elastor::cuda {

// The inputs of attention about its rows, beside their tokens.
struct AttentionRows {
  bool all_keys = true;   // false: a row's keys are the positions that it has, and `others`
  DeviceLengths lengths;  // the number of its positions
  int64_t others = 1;
  DeviceDropout dropout;  // dropout of the weights; there is none if its rate is 0
};

// core/kernels/attention.h on the device: q [rows, Tq, h d], k [rows, Tk, h d], v [rows, Tk, h dv],
// y [rows, Tq, h dv], in any layout; weights and sums in float. A warp computes a query. Additions
// have the CPU's order, except sums over keys within a softmax: lane c sums keys c, c + 32, ...,
// and then the lanes' sums are added (SumOverLanes).
template <typename A>
void AttentionForward(Stream& stream, const AttentionShape& shape, Activations<const A> q,
                      Activations<const A> k, Activations<const A> v, const AttentionRows& rows,
                      const float* position_bias, Activations<A> y);

// Returns the number of elements a row of either scratch array.
inline int64_t AttentionScratch(const AttentionShape& shape) {
  return shape.heads * shape.queries * shape.keys;
}
// Computes the weights again. dposition_bias: [rows][differences()], receives each row's part of
// the gradient, or null. weights, gradients: scratch, AttentionScratch elements a row.
template <typename A>
void AttentionBackward(Stream& stream, const AttentionShape& shape, Activations<const A> q,
                       Activations<const A> k, Activations<const A> v, const AttentionRows& rows,
                       const float* position_bias, Activations<const A> dy, Activations<A> dq,
                       Activations<A> dk, Activations<A> dv, float* dposition_bias, float* weights,
                       float* gradients);

}  // namespace elastor::cuda

#endif  // ELASTOR_CORE_KERNELS_CUDA_ATTENTION_H_
