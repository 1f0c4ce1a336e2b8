#ifndef ELASTOR_CORE_KERNELS_CUDA_MATRIX_PRODUCT_H_
#define ELASTOR_CORE_KERNELS_CUDA_MATRIX_PRODUCT_H_

#include <cstdint>

#include "core/cuda/bfloat16.h"
#include "core/cuda/runtime.h"
#include "core/kernels/cuda/activations.h"
#include "core/kernels/matrix_product.h"

namespace elastor::cuda {

// core/kernels/matrix_product.h's matrices in device memory: element (i, j) of matrix p of row r is
// data[r * row_stride + p * step + i * row_step + j * column_step]. row_stride 0: all rows share
// the matrices.
template <typename A>
struct DeviceMatrices {
  A* data = nullptr;
  int64_t row_stride = 0;
  int64_t step = 0;
  int64_t row_step = 0;
  int64_t column_step = 1;

  DeviceMatrices Transposed() const { return {data, row_stride, step, column_step, row_step}; }
};

// c_p = a_p b_p in every row, with c.step 0 the sum over p: the CPU's order of additions, in float.
template <typename A, typename C>
void MatrixProducts(Stream& stream, int64_t rows, const ProductShape& shape,
                    const DeviceMatrices<const A>& a, const DeviceMatrices<const A>& b,
                    const DeviceMatrices<C>& c);

// core/ops/position.h: y = input_scale * x with scale * p added to its last `count` features. x, y:
// [rows, 1, features].
template <typename A>
void AddPositions(Stream& stream, const float* p, int64_t count, float scale, float input_scale,
                  Activations<const A> x, Activations<A> y);
// values[l * stride + i] *= scale for l in [0, leaves), i in [0, count).
void ScaleLeaves(Stream& stream, int64_t leaves, int64_t count, int64_t stride, float scale,
                 float* values);

}  // namespace elastor::cuda

#endif  // ELASTOR_CORE_KERNELS_CUDA_MATRIX_PRODUCT_H_
