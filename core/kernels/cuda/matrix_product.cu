#include <cmath>

#include "core/base/instantiate.h"
#include "core/cuda/launch.h"
#include "core/kernels/cuda/matrix_product.h"
#include "core/kernels/cuda/values.h"

namespace elastor::cuda {
namespace {

constexpr int kProductThreads = 256;

__device__ inline int64_t ThreadIndex() {
  return static_cast<int64_t>(blockIdx.x) * kProductThreads + threadIdx.x;
}

template <typename A>
__device__ inline A* Matrix(const DeviceMatrices<A>& of, int64_t row, int64_t p) {
  return of.data + row * of.row_stride + p * of.step;
}

// A thread: one element of c, of a sum over p all of its terms.
template <typename A, typename C>
__global__ void __launch_bounds__(kProductThreads)
    ProductKernel(int64_t rows, const ProductShape shape, const DeviceMatrices<const A> a,
                  const DeviceMatrices<const A> b, const DeviceMatrices<C> c) {
  const int64_t index = ThreadIndex();
  const int64_t results = c.step == 0 ? 1 : shape.count;
  if (index >= rows * results * shape.rows * shape.columns) return;
  const int64_t j = index % shape.columns;
  const int64_t i = index / shape.columns % shape.rows;
  const int64_t matrix = index / (shape.columns * shape.rows);
  const int64_t first = matrix % results;
  const int64_t row = matrix / results;
  float sum = 0;
  for (int64_t p = first; p < (c.step == 0 ? shape.count : first + 1); ++p) {
    const A* const left = Matrix(a, row, p) + i * a.row_step;
    const A* const right = Matrix(b, row, p) + j * b.column_step;
    for (int64_t k = 0; k < shape.terms; ++k) {
      sum = std::fma(static_cast<float>(left[k * a.column_step]),
                     static_cast<float>(right[k * b.row_step]), sum);
    }
    sum += 0.0f;
  }
  StoreValues<1>(Matrix(c, row, first) + i * c.row_step + j * c.column_step, Values<1>{{sum}});
}

template <typename A>
__global__ void __launch_bounds__(kProductThreads)
    PositionKernel(const float* p, int64_t count, float scale, float input_scale,
                   const Activations<const A> x, const Activations<A> y) {
  const int64_t index = ThreadIndex();
  if (index >= y.rows * y.features) return;
  const int64_t row = index / y.features;
  const int64_t feature = index % y.features;
  Values<1> value = LoadValues<1>(x.data + row * x.row_stride + feature);
  value.v[0] *= input_scale;
  const int64_t position = feature - (y.features - count);
  if (position >= 0) value.v[0] += scale * p[position];
  StoreValues<1>(y.data + row * y.row_stride + feature, value);
}

__global__ void __launch_bounds__(kProductThreads)
    ScaleKernel(int64_t leaves, int64_t count, int64_t stride, float scale, float* values) {
  const int64_t index = ThreadIndex();
  if (index < leaves * count) values[index / count * stride + index % count] *= scale;
}

}  // namespace

template <typename A, typename C>
void MatrixProducts(Stream& stream, int64_t rows, const ProductShape& shape,
                    const DeviceMatrices<const A>& a, const DeviceMatrices<const A>& b,
                    const DeviceMatrices<C>& c) {
  const int64_t elements = rows * (c.step == 0 ? 1 : shape.count) * shape.rows * shape.columns;
  if (elements == 0) return;
  Launch(stream, Blocks(elements, kProductThreads), kProductThreads, ProductKernel<A, C>, rows,
         shape, a, b, c);
}

template <typename A>
void AddPositions(Stream& stream, const float* p, int64_t count, float scale, float input_scale,
                  Activations<const A> x, Activations<A> y) {
  CHECK(x.rows == y.rows && x.features == y.features && x.tokens == 1 && y.tokens == 1);
  if (y.rows == 0) return;
  Launch(stream, Blocks(y.rows * y.features, kProductThreads), kProductThreads, PositionKernel<A>,
         p, count, scale, input_scale, x, y);
}

void ScaleLeaves(Stream& stream, int64_t leaves, int64_t count, int64_t stride, float scale,
                 float* values) {
  if (leaves == 0) return;
  Launch(stream, Blocks(leaves * count, kProductThreads), kProductThreads, ScaleKernel, leaves,
         count, stride, scale, values);
}

ELASTOR_INSTANTIATE_FOR(MatrixProducts, float, float)
ELASTOR_INSTANTIATE_FOR(MatrixProducts, BFloat16, BFloat16)
ELASTOR_INSTANTIATE_FOR(MatrixProducts, BFloat16, float)
ELASTOR_INSTANTIATE(AddPositions, float, BFloat16)

}  // namespace elastor::cuda
