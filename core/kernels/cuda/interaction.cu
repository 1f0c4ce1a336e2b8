#include <cmath>

#include "core/base/instantiate.h"
#include "core/kernels/cuda/element_loop.h"
#include "core/kernels/cuda/interaction.h"

namespace elastor::cuda {
namespace {

// A thread computes a pack of columns of one token of y.
template <typename A>
struct InteractionOp {
  InteractionWeights<A> w;
  Activations<const A> a;
  Activations<const A> b;
  const float* bias;
  Activations<const A> addend;
  Activations<A> y;

  template <int kCount>
  using Inputs = Values<kCount>;
  template <int kCount>
  __device__ Values<kCount> Load(const Index& index) const {
    Values<kCount> sum = {};
    const A* const factors = w.data + index.token * w.strides[0];
    for (int64_t u = 0; u < a.tokens; ++u) {
      Values<kCount> inner = {};
      for (int64_t v = 0; v < b.tokens; ++v) {
        const float factor = static_cast<float>(factors[u * w.strides[1] + v * w.strides[2]]);
        const Values<kCount> value = LoadValues<kCount>(At(b, {index.row, v, index.feature}));
        for (int i = 0; i < kCount; ++i) inner.v[i] = std::fma(factor, value.v[i], inner.v[i]);
      }
      const Values<kCount> value = LoadValues<kCount>(At(a, {index.row, u, index.feature}));
      for (int i = 0; i < kCount; ++i) sum.v[i] = std::fma(value.v[i], inner.v[i], sum.v[i]);
    }
    if (bias != nullptr) {
      for (int i = 0; i < kCount; ++i) sum.v[i] += bias[index.token];
    }
    if (addend.data != nullptr) {
      const Values<kCount> value = LoadValues<kCount>(At(addend, index));
      for (int i = 0; i < kCount; ++i) sum.v[i] += value.v[i];
    }
    return sum;
  }
  template <int kCount>
  __device__ void Store(const Index& index, const Values<kCount>& sum) const {
    StoreValues<kCount>(At(y, index), sum);
  }
};

// A thread computes one element of a leaf's dW, given as the feature of a row, or of its dbias:
// the last feature of every token.
template <typename A>
struct InteractionGradientOp {
  LeafShape shape;
  Activations<const A> dy;
  Activations<const A> a;
  Activations<const A> b;
  float* dw;
  int64_t weight_stride;
  float* dbias;
  int64_t bias_stride;

  template <int kCount>
  using Inputs = Values<kCount>;
  template <int kCount>
  __device__ Values<kCount> Load(const Index& index) const {
    static_assert(kCount == 1);
    const bool bias = index.feature == a.tokens * b.tokens;
    const int64_t u = bias ? 0 : index.feature / b.tokens;
    const int64_t v = bias ? 0 : index.feature % b.tokens;
    Values<1> sum = {};
    for (int64_t row = index.row * shape.leaf_rows; row < (index.row + 1) * shape.leaf_rows;
         ++row) {
      for (int64_t d = 0; d < dy.features; ++d) {
        const float gradient = static_cast<float>(*At(dy, {row, index.token, d}));
        const float product =
            static_cast<float>(*At(a, {row, u, d})) * static_cast<float>(*At(b, {row, v, d}));
        sum.v[0] = bias ? sum.v[0] + gradient : std::fma(gradient, product, sum.v[0]);
      }
    }
    return sum;
  }
  template <int kCount>
  __device__ void Store(const Index& index, const Values<kCount>& sum) const {
    const int64_t products = a.tokens * b.tokens;
    if (index.feature == products) {
      dbias[index.row * bias_stride + index.token] = sum.v[0];
    } else {
      dw[index.row * weight_stride + index.token * products + index.feature] = sum.v[0];
    }
  }
};

}  // namespace

template <typename A>
void Interaction(Stream& stream, const InteractionWeights<A>& w, Activations<const A> a,
                 Activations<const A> b, const float* bias, Activations<const A> addend,
                 Activations<A> y) {
  CHECK(a.rows == y.rows && b.rows == y.rows);
  CHECK(a.features == y.features && b.features == y.features);
  LoopShape shape = ShapeOf(y);
  shape.With(a.data, sizeof(A), a.row_stride, a.token_stride);
  shape.With(b.data, sizeof(A), b.row_stride, b.token_stride);
  if (addend.data != nullptr) shape.With(addend);
  ForEachElement<kLargestFloatPack>(stream, Merge::kNone, shape.With(y),
                                    InteractionOp<A>{w, a, b, bias, addend, y});
}

template <typename A>
void InteractionGradients(Stream& stream, const LeafShape& shape, Activations<const A> dy,
                          Activations<const A> a, Activations<const A> b, float* dw,
                          int64_t weight_stride, float* dbias, int64_t bias_stride) {
  CHECK(a.rows == shape.rows() && b.rows == a.rows && dy.rows == a.rows);
  if (shape.leaves == 0) return;
  const ElementLoop loop(shape.leaves, dy.tokens, a.tokens * b.tokens + 1, /*rows_inside=*/false);
  LaunchElementKernel<1, 1>(
      stream, loop,
      InteractionGradientOp<A>{shape, dy, a, b, dw, weight_stride, dbias, bias_stride});
}

ELASTOR_INSTANTIATE(Interaction, float, BFloat16)
ELASTOR_INSTANTIATE(InteractionGradients, float, BFloat16)

}  // namespace elastor::cuda
