#include <cmath>

#include "core/base/instantiate.h"
#include "core/kernels/cuda/element_loop.h"
#include "core/kernels/cuda/weighted_pool.h"

namespace elastor::cuda {
namespace {

template <typename A>
struct WeightedPoolOp {
  const A* u;
  int64_t pooled;  // T
  Activations<const A> x;
  Activations<A> y;

  template <int kCount>
  using Inputs = Values<kCount>;
  template <int kCount>
  __device__ Values<kCount> Load(const Index& index) const {
    Values<kCount> sum = {};
    for (int64_t t = 0; t < pooled; ++t) {
      const Values<kCount> value =
          LoadValues<kCount>(At(x, {index.row, index.token * pooled + t, index.feature}));
      for (int i = 0; i < kCount; ++i) {
        const float factor = static_cast<float>(u[(index.feature + i) * pooled + t]);
        sum.v[i] = std::fma(factor, value.v[i], sum.v[i]);
      }
    }
    return sum;
  }
  template <int kCount>
  __device__ void Store(const Index& index, const Values<kCount>& sum) const {
    StoreValues<kCount>(At(y, index), sum);
  }
};

template <typename A>
struct WeightedPoolBackwardOp {
  const A* u;
  int64_t pooled;
  Activations<const A> dy;
  Activations<A> dx;

  template <int kCount>
  using Inputs = Values<kCount>;
  template <int kCount>
  __device__ Values<kCount> Load(const Index& index) const {
    return LoadValues<kCount>(At(dy, {index.row, index.token / pooled, index.feature}));
  }
  template <int kCount>
  __device__ void Store(const Index& index, Values<kCount> d) const {
    const A* const factors = u + index.feature * pooled + index.token % pooled;
    for (int i = 0; i < kCount; ++i) d.v[i] *= static_cast<float>(factors[i * pooled]);
    StoreValues<kCount>(At(dx, index), d);
  }
};

// A thread computes one element of a leaf's dU, given as feature t of token k of row l.
template <typename A>
struct WeightedPoolGradientOp {
  int64_t leaf_rows;
  int64_t pooled;
  Activations<const A> dy;
  Activations<const A> x;
  float* du;
  int64_t leaf_stride;

  template <int kCount>
  using Inputs = Values<kCount>;
  template <int kCount>
  __device__ Values<kCount> Load(const Index& index) const {
    static_assert(kCount == 1);
    const int64_t k = index.token;
    Values<1> sum = {};
    for (int64_t row = index.row * leaf_rows; row < (index.row + 1) * leaf_rows; ++row) {
      for (int64_t g = 0; g < dy.tokens; ++g) {
        sum.v[0] =
            std::fma(static_cast<float>(*At(dy, {row, g, k})),
                     static_cast<float>(*At(x, {row, g * pooled + index.feature, k})), sum.v[0]);
      }
    }
    return sum;
  }
  template <int kCount>
  __device__ void Store(const Index& index, const Values<kCount>& sum) const {
    du[index.row * leaf_stride + index.token * pooled + index.feature] = sum.v[0];
  }
};

}  // namespace

template <typename A>
void WeightedPool(Stream& stream, const A* u, Activations<const A> x, Activations<A> y) {
  CHECK(x.rows == y.rows && x.features == y.features && x.tokens % y.tokens == 0);
  LoopShape shape = ShapeOf(y);
  shape.With(x.data, sizeof(A), x.row_stride, x.token_stride);
  ForEachElement<kLargestFloatPack>(stream, Merge::kNone, shape.With(y),
                                    WeightedPoolOp<A>{u, x.tokens / y.tokens, x, y});
}

template <typename A>
void WeightedPoolBackward(Stream& stream, const A* u, Activations<const A> dy, Activations<A> dx) {
  CHECK(dx.rows == dy.rows && dx.features == dy.features && dx.tokens % dy.tokens == 0);
  LoopShape shape = ShapeOf(dx);
  shape.With(dy.data, sizeof(A), dy.row_stride, dy.token_stride);
  ForEachElement<kLargestFloatPack>(stream, Merge::kNone, shape.With(dx),
                                    WeightedPoolBackwardOp<A>{u, dx.tokens / dy.tokens, dy, dx});
}

template <typename A>
void WeightedPoolGradient(Stream& stream, const LeafShape& shape, Activations<const A> dy,
                          Activations<const A> x, float* du, int64_t leaf_stride) {
  CHECK(x.rows == shape.rows() && dy.rows == x.rows && x.tokens % dy.tokens == 0);
  if (shape.leaves == 0) return;
  const int64_t pooled = x.tokens / dy.tokens;
  const ElementLoop loop(shape.leaves, dy.features, pooled, /*rows_inside=*/false);
  LaunchElementKernel<1, 1>(
      stream, loop, WeightedPoolGradientOp<A>{shape.leaf_rows, pooled, dy, x, du, leaf_stride});
}

ELASTOR_INSTANTIATE(WeightedPool, float, BFloat16)
ELASTOR_INSTANTIATE(WeightedPoolBackward, float, BFloat16)
ELASTOR_INSTANTIATE(WeightedPoolGradient, float, BFloat16)

}  // namespace elastor::cuda
