#ifndef ELASTOR_CORE_KERNELS_CUDA_ROW_MATRICES_H_
#define ELASTOR_CORE_KERNELS_CUDA_ROW_MATRICES_H_

#include <cstdint>

#include "core/cuda/bfloat16.h"
#include "core/cuda/runtime.h"
#include "core/kernels/cuda/activations.h"

namespace elastor::cuda {

// A row's tokens as the rows of a matrix [tokens, features], or as its columns.
template <typename A>
struct RowMatrix {
  Activations<A> view;
  bool transposed = false;

  int64_t rows() const { return transposed ? view.features : view.tokens; }
  int64_t columns() const { return transposed ? view.tokens : view.features; }
};

// c = a b (+ addend) for every row by itself (core/kernels/row_matrices.h): the same order of
// additions in float. addend: like c, or empty; it may be c.
template <typename A>
void MultiplyRowMatrices(Stream& stream, const RowMatrix<const A>& a, const RowMatrix<const A>& b,
                         Activations<const A> addend, Activations<A> c);

// core/ops/softmax_gate.h. x, y: [rows, tokens, width]; scores: [rows, 1, tokens].
template <typename A>
void SoftmaxGate(Stream& stream, Activations<const A> x, Activations<const A> scores,
                 Activations<A> y);
template <typename A>
void SoftmaxGateBackward(Stream& stream, Activations<const A> x, Activations<const A> scores,
                         Activations<const A> dy, Activations<A> dx, Activations<A> dscores);

}  // namespace elastor::cuda

#endif  // ELASTOR_CORE_KERNELS_CUDA_ROW_MATRICES_H_
