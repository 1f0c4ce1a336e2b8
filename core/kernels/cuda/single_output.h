#ifndef ELASTOR_CORE_KERNELS_CUDA_SINGLE_OUTPUT_H_
#define ELASTOR_CORE_KERNELS_CUDA_SINGLE_OUTPUT_H_

#include <cstdint>

#include "core/cuda/bfloat16.h"
#include "core/cuda/runtime.h"
#include "core/kernels/cuda/activations.h"

namespace elastor::cuda {

// Linear maps with one output a token: x [rows, T, K], w [T][K], y [rows, T, 1]. Libraries compute
// products of a matrix and a vector by algorithms of their own, which may cut a sum by the number
// of rows. Here every order of additions is stated; all is computed in float.

// The steps applied to the sum s of a row and token: s (+ the old y) (+ bias, rounded to the type
// of y first), then max(s, 0), rounded once.
struct SingleOutputEpilogue {
  bool add = false;
  const float* bias = nullptr;  // one element, of the one token
  bool relu = false;
};

// y(r, t) = sum over f of x(r, t, f) w(t, f): lane i of a warp has the FMA chain over features i,
// i + 32, ..., ascending from +0; then lanes 16, 8, 4, 2 and 1 apart are added in turn.
template <typename A, typename Out>
void SingleOutputForward(Stream& stream, Activations<const A> x, const A* w,
                         const SingleOutputEpilogue& epilogue, Activations<Out> y);
// dx(r, t, f) = dy(r, t) w(t, f); with `add` this is added to dx. dy's token t is at t times its
// token stride, which is 0 where one output's w is cut into dx's tokens.
template <typename A>
void SingleOutputBackward(Stream& stream, Activations<const A> dy, const A* w, bool add,
                          Activations<A> dx);
// Per leaf l: dw[t * map_stride + l * leaf_stride + f] = sum over the leaf's rows r of
// dy(r, t) x(r, t, f): eight FMA chains from +0, chain c over rows c, c + 8, ..., combined
// ((c0 + c4) + (c2 + c6)) + ((c1 + c5) + (c3 + c7)), as weight gradients on the CPU.
template <typename A>
void SingleOutputGradient(Stream& stream, const LeafShape& shape, Activations<const A> dy,
                          Activations<const A> x, float* dw, int64_t map_stride,
                          int64_t leaf_stride);

}  // namespace elastor::cuda

#endif  // ELASTOR_CORE_KERNELS_CUDA_SINGLE_OUTPUT_H_
