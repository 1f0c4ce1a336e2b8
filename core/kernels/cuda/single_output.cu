#include <type_traits>

#include "core/base/instantiate.h"
#include "core/kernels/cuda/element_loop.h"
#include "core/kernels/cuda/single_output.h"
#include "core/kernels/cuda/warp_runs.h"

namespace elastor::cuda {
namespace {

constexpr int kOutputThreads = 256;
constexpr int kOutputWarps = kOutputThreads / kWarp;
constexpr int kChains = 8;
static_assert(kChains == kOutputWarps);

// A warp: one row and token.
template <typename A, typename Out>
__global__ void __launch_bounds__(kOutputThreads)
    ForwardKernel(const Activations<const A> x, const A* w, const SingleOutputEpilogue epilogue,
                  const Activations<Out> y) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int64_t run = static_cast<int64_t>(blockIdx.x) * kOutputWarps + threadIdx.x / kWarp;
  if (run >= x.rows * x.tokens) return;
  const int64_t row = run / x.tokens;
  const int64_t token = run % x.tokens;
  const A* const values = At(x, {row, token, 0});
  const A* const factors = w + token * x.features;
  float sum = 0;
  for (int64_t f = lane; f < x.features; f += kWarp) {
    sum = fmaf(static_cast<float>(values[f]), static_cast<float>(factors[f]), sum);
  }
  sum = SumOverLanes(sum);
  if (lane != 0) return;
  Out* const to = At(y, {row, token, 0});
  if (epilogue.add) sum += static_cast<float>(*to);
  if (epilogue.bias != nullptr) sum += static_cast<float>(static_cast<Out>(*epilogue.bias));
  if (epilogue.relu) sum = sum > 0 ? sum : 0;
  *to = static_cast<Out>(sum);
}

template <typename A>
struct BackwardOp {
  Activations<const A> dy;
  const A* w;
  bool add;
  Activations<A> dx;

  template <int kCount>
  using Inputs = Values<kCount>;
  template <int kCount>
  __device__ Values<kCount> Load(const Index& index) const {
    const float d = static_cast<float>(*At(dy, {index.row, index.token, 0}));
    const A* const factors = w + index.token * dx.features + index.feature;
    Values<kCount> products;
    for (int i = 0; i < kCount; ++i) products.v[i] = d * static_cast<float>(factors[i]);
    if (!add) return products;
    const Values<kCount> before = LoadValues<kCount>(At(dx, index));
    for (int i = 0; i < kCount; ++i) products.v[i] += before.v[i];
    return products;
  }
  template <int kCount>
  __device__ void Store(const Index& index, const Values<kCount>& values) const {
    StoreValues<kCount>(At(dx, index), values);
  }
};

template <typename A>
struct GradientArguments {
  LeafShape shape;
  Activations<const A> dy;
  Activations<const A> x;
  float* dw;
  int64_t map_stride;
  int64_t leaf_stride;
  int64_t feature_blocks;
};

// A block: 32 features of one leaf and token; warp c has the chains c, its lanes the features.
template <typename A>
__global__ void __launch_bounds__(kOutputThreads) GradientKernel(const GradientArguments<A> a) {
  __shared__ float chains[kChains][kWarp];
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int chain = static_cast<int>(threadIdx.x) / kWarp;
  const int64_t problem = blockIdx.x / a.feature_blocks;
  const int64_t f = (blockIdx.x - problem * a.feature_blocks) * kWarp + lane;
  const int64_t leaf = problem / a.x.tokens;
  const int64_t token = problem - leaf * a.x.tokens;
  const bool inside = f < a.x.features;
  float sum = 0;
  if (inside) {
    const int64_t first = leaf * a.shape.leaf_rows;
    const A* const x = At(a.x, {first, token, f});
    const A* const dy = At(a.dy, {first, token, 0});
#pragma unroll 4
    for (int64_t r = chain; r < a.shape.leaf_rows; r += kChains) {
      sum = fmaf(static_cast<float>(dy[r * a.dy.row_stride]),
                 static_cast<float>(x[r * a.x.row_stride]), sum);
    }
  }
  chains[chain][lane] = sum;
  __syncthreads();
  if (chain != 0 || !inside) return;
  const auto of = [&](int c) { return chains[c][lane]; };
  a.dw[token * a.map_stride + leaf * a.leaf_stride + f] =
      ((of(0) + of(4)) + (of(2) + of(6))) + ((of(1) + of(5)) + (of(3) + of(7)));
}

}  // namespace

template <typename A, typename Out>
void SingleOutputForward(Stream& stream, Activations<const A> x, const A* w,
                         const SingleOutputEpilogue& epilogue, Activations<Out> y) {
  CHECK(x.rows == y.rows && x.tokens == y.tokens && y.features == 1);
  CHECK(epilogue.bias == nullptr || x.tokens == 1) << "a bias goes with one token";
  const int64_t runs = x.rows * x.tokens;
  if (runs == 0) return;
  Launch(stream, Blocks(runs, kOutputWarps), kOutputThreads, ForwardKernel<A, Out>, x, w, epilogue,
         y);
}

template <typename A>
void SingleOutputBackward(Stream& stream, Activations<const A> dy, const A* w, bool add,
                          Activations<A> dx) {
  CHECK(dx.rows == dy.rows && dy.features == 1);
  ForEachElement<kLargestFloatPack>(stream, Merge::kNone, ShapeOf(dx).With(dx),
                                    BackwardOp<A>{dy, w, add, dx});
}

template <typename A>
void SingleOutputGradient(Stream& stream, const LeafShape& shape, Activations<const A> dy,
                          Activations<const A> x, float* dw, int64_t map_stride,
                          int64_t leaf_stride) {
  CHECK(x.rows == shape.rows() && dy.rows == x.rows && dy.tokens == x.tokens && dy.features == 1);
  const int64_t feature_blocks = (x.features + kWarp - 1) / kWarp;
  const int64_t blocks = shape.leaves * x.tokens * feature_blocks;
  if (blocks == 0) return;
  CHECK_LT(blocks, int64_t{1} << 31);
  Launch(stream, static_cast<unsigned>(blocks), kOutputThreads, GradientKernel<A>,
         GradientArguments<A>{shape, dy, x, dw, map_stride, leaf_stride, feature_blocks});
}

ELASTOR_INSTANTIATE_FOR(SingleOutputForward, float, float)
ELASTOR_INSTANTIATE_FOR(SingleOutputForward, BFloat16, BFloat16)
ELASTOR_INSTANTIATE_FOR(SingleOutputForward, BFloat16, float)
ELASTOR_INSTANTIATE(SingleOutputBackward, float, BFloat16)
ELASTOR_INSTANTIATE(SingleOutputGradient, float, BFloat16)

}  // namespace elastor::cuda
