#include <cmath>

#include "core/base/instantiate.h"
#include "core/cuda/launch.h"
#include "core/cuda/math.h"
#include "core/kernels/cuda/target_attention.h"

namespace elastor::cuda {
namespace {

constexpr int kTargetThreads = 256;

__device__ inline int64_t Item() {
  return static_cast<int64_t>(blockIdx.x) * kTargetThreads + threadIdx.x;
}

// Element f of a row's target and of its position t.
template <typename A>
__device__ inline float TargetAt(const TargetAttentionShape& shape, const Activations<const A>& x,
                                 int64_t row, int64_t f) {
  return static_cast<float>(x.data[row * x.row_stride + shape.target * shape.width + f]);
}
template <typename A>
__device__ inline float PositionAt(const TargetAttentionShape& shape, const Activations<const A>& x,
                                   int64_t row, int64_t t, int64_t f) {
  return static_cast<float>(x.data[row * x.row_stride + (shape.fields + t) * shape.width + f]);
}

// A thread: an element of a position.
template <typename A>
__global__ void __launch_bounds__(kTargetThreads)
    InputsKernel(const TargetAttentionShape shape, const Activations<const A> x, int64_t items,
                 A* inputs) {
  const int64_t item = Item();
  if (item >= items) return;
  const int64_t f = item % shape.width;
  const int64_t position = item / shape.width;
  const int64_t row = position / shape.positions;
  const float a = TargetAt(shape, x, row, f);
  const float h = PositionAt(shape, x, row, position % shape.positions, f);
  A* const to = inputs + position * 4 * shape.width + f;
  to[0] = static_cast<A>(a);
  to[shape.width] = static_cast<A>(h);
  to[2 * shape.width] = static_cast<A>(a - h);
  to[3 * shape.width] = static_cast<A>(a * h);
}

// A thread: a row.
__global__ void __launch_bounds__(kTargetThreads)
    TargetWeightsKernel(const TargetAttentionShape shape, int64_t rows, bool softmax,
                        const float* scores, float* weights) {
  const int64_t row = Item();
  if (row >= rows) return;
  const int64_t length = shape.lengths.Of(row);
  const float* const s = scores + row * shape.positions;
  float* const w = weights + row * shape.positions;
  float largest = s[0];
  for (int64_t t = 1; t < length; ++t) largest = s[t] > largest ? s[t] : largest;
  float sum = 0;
  for (int64_t t = 0; t < shape.positions; ++t) {
    w[t] = t >= length ? 0.0f : softmax ? Exp(s[t] - largest) : s[t];
    sum += w[t];
  }
  for (int64_t t = 0; softmax && t < length; ++t) w[t] /= sum;
}

// A thread: an element of y.
template <typename A>
__global__ void __launch_bounds__(kTargetThreads)
    OutputKernel(const TargetAttentionShape shape, const Activations<const A> x,
                 const float* weights, int64_t items, const Activations<A> y) {
  const int64_t item = Item();
  if (item >= items) return;
  const int64_t row = item / y.features;
  const int64_t feature = item % y.features;
  A* const to = y.data + row * y.row_stride + feature;
  if (feature / shape.width != shape.field) {
    *to = x.data[row * x.row_stride + feature];
    return;
  }
  float sum = 0;
  for (int64_t t = 0; t < shape.lengths.Of(row); ++t) {
    sum = fmaf(weights[row * shape.positions + t],
               PositionAt(shape, x, row, t, feature % shape.width), sum);
  }
  *to = static_cast<A>(sum);
}

// A thread: a position.
template <typename A>
__global__ void __launch_bounds__(kTargetThreads)
    TargetWeightGradientKernel(const TargetAttentionShape shape, const Activations<const A> x,
                               const Activations<const A> dy, int64_t items, float* dweights) {
  const int64_t item = Item();
  if (item >= items) return;
  const int64_t row = item / shape.positions;
  const int64_t t = item % shape.positions;
  const A* const dyf = dy.data + row * dy.row_stride + shape.field * shape.width;
  float sum = 0;
  for (int64_t f = 0; f < shape.width && t < shape.lengths.Of(row); ++f) {
    sum = fmaf(static_cast<float>(dyf[f]), PositionAt(shape, x, row, t, f), sum);
  }
  dweights[item] = sum;
}

// A thread: a row.
template <typename A>
__global__ void __launch_bounds__(kTargetThreads)
    ScoreGradientKernel(const TargetAttentionShape shape, bool softmax, const float* weights,
                        const float* dweights, int64_t rows, A* dscores) {
  const int64_t row = Item();
  if (row >= rows) return;
  const int64_t first = row * shape.positions;
  float mean = 0;
  for (int64_t t = first; softmax && t < first + shape.positions; ++t) {
    mean = fmaf(weights[t], dweights[t], mean);
  }
  for (int64_t t = first; t < first + shape.positions; ++t) {
    dscores[t] = static_cast<A>(softmax ? weights[t] * (dweights[t] - mean) : dweights[t]);
  }
}

// A thread: an element of the fields' part of dx; those of the target write the positions' too.
template <typename A>
__global__ void __launch_bounds__(kTargetThreads)
    InputGradientKernel(const TargetAttentionShape shape, const Activations<const A> x,
                        const float* weights, const Activations<const A> dy, const A* dinputs,
                        int64_t items, const Activations<A> dx) {
  const int64_t item = Item();
  if (item >= items) return;
  const int64_t row = item / dy.features;
  const int64_t feature = item % dy.features;
  const int64_t field = feature / shape.width;
  const A* const dyr = dy.data + row * dy.row_stride;
  A* const to = dx.data + row * dx.row_stride;
  to[feature] = field == shape.field ? static_cast<A>(0.0f) : dyr[feature];
  if (field != shape.target) return;
  const int64_t f = feature % shape.width;
  const int64_t length = shape.lengths.Of(row);
  const float a = TargetAt(shape, x, row, f);
  const float dyf = static_cast<float>(dyr[shape.field * shape.width + f]);
  float sum = 0;
  for (int64_t t = 0; t < shape.positions; ++t) {
    const int64_t position = row * shape.positions + t;
    const A* const from = dinputs + position * 4 * shape.width + f;
    const auto part = [&](int64_t i) { return static_cast<float>(from[i * shape.width]); };
    float dh = 0;
    if (t < length) {
      sum = fmaf(part(3), PositionAt(shape, x, row, t, f), (sum + part(0)) + part(2));
      dh = fmaf(part(3), a, fmaf(weights[position], dyf, part(1) - part(2)));
    }
    to[(shape.fields + t) * shape.width + f] = static_cast<A>(dh);
  }
  to[feature] = static_cast<A>(static_cast<float>(dyr[feature]) + sum);
}

}  // namespace

template <typename A>
void TargetAttentionInputs(Stream& stream, const TargetAttentionShape& shape,
                           Activations<const A> x, Activations<A> inputs) {
  const int64_t items = x.rows * shape.positions * shape.width;
  if (items == 0) return;
  Launch(stream, Blocks(items, kTargetThreads), kTargetThreads, InputsKernel<A>, shape, x, items,
         inputs.data);
}

void TargetAttentionWeights(Stream& stream, const TargetAttentionShape& shape, int64_t rows,
                            bool softmax, const float* scores, float* weights) {
  if (rows == 0) return;
  Launch(stream, Blocks(rows, kTargetThreads), kTargetThreads, TargetWeightsKernel, shape, rows,
         softmax, scores, weights);
}

template <typename A>
void TargetAttentionOutput(Stream& stream, const TargetAttentionShape& shape,
                           Activations<const A> x, const float* weights, Activations<A> y) {
  const int64_t items = y.rows * y.features;
  if (items == 0) return;
  Launch(stream, Blocks(items, kTargetThreads), kTargetThreads, OutputKernel<A>, shape, x, weights,
         items, y);
}

template <typename A>
void TargetAttentionScoreGradients(Stream& stream, const TargetAttentionShape& shape, bool softmax,
                                   Activations<const A> x, const float* weights,
                                   Activations<const A> dy, float* dweights,
                                   Activations<A> dscores) {
  const int64_t items = x.rows * shape.positions;
  if (items == 0) return;
  Launch(stream, Blocks(items, kTargetThreads), kTargetThreads, TargetWeightGradientKernel<A>,
         shape, x, dy, items, dweights);
  Launch(stream, Blocks(x.rows, kTargetThreads), kTargetThreads, ScoreGradientKernel<A>, shape,
         softmax, weights, static_cast<const float*>(dweights), x.rows, dscores.data);
}

template <typename A>
void TargetAttentionInputGradients(Stream& stream, const TargetAttentionShape& shape,
                                   Activations<const A> x, const float* weights,
                                   Activations<const A> dy, Activations<const A> dinputs,
                                   Activations<A> dx) {
  const int64_t items = dy.rows * dy.features;
  if (items == 0) return;
  Launch(stream, Blocks(items, kTargetThreads), kTargetThreads, InputGradientKernel<A>, shape, x,
         weights, dy, dinputs.data, items, dx);
}

ELASTOR_INSTANTIATE(TargetAttentionInputs, float, BFloat16)
ELASTOR_INSTANTIATE(TargetAttentionOutput, float, BFloat16)
ELASTOR_INSTANTIATE(TargetAttentionScoreGradients, float, BFloat16)
ELASTOR_INSTANTIATE(TargetAttentionInputGradients, float, BFloat16)

}  // namespace elastor::cuda
