#include <cmath>

#include "core/base/instantiate.h"
#include "core/kernels/cuda/element_loop.h"
#include "core/kernels/cuda/norm.h"

namespace elastor::cuda {
namespace {

// Sums over the rows of a leaf: chain c is the thread with threadIdx.y == c, of features
// threadIdx.x.
constexpr int kChains = 4;
constexpr int kFeatures = 32;
// Rows that a thread has under way.
constexpr int kBatch = 8;

// The combined sum of the four chains of a feature, in all of its threads. All threads of the
// block.
__device__ inline double CombineChains(double sum) {
  __shared__ double sums[kChains][kFeatures];
  __syncthreads();  // the sums of the last call have been read
  sums[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  const int f = static_cast<int>(threadIdx.x);
  return (sums[0][f] + sums[2][f]) + (sums[1][f] + sums[3][f]);
}

// This thread's chain: add(row, sum) for its rows, whose values of `load` are read kBatch at a
// time.
template <typename Load, typename Add>
__device__ inline double SumChain(int64_t rows, Load load, Add add) {
  double sum = 0;
  for (int64_t first = threadIdx.y; first < rows; first += kBatch * kChains) {
    decltype(load(first)) values[kBatch];
#pragma unroll
    for (int i = 0; i < kBatch; ++i) {
      if (first + i * kChains < rows) values[i] = load(first + i * kChains);
    }
#pragma unroll
    for (int i = 0; i < kBatch; ++i) {
      if (first + i * kChains < rows) sum = add(values[i], sum);
    }
  }
  return sum;
}

__device__ inline float ScaleOf(double variance, double epsilon) {
  return static_cast<float>(1 / sqrt(variance + epsilon));
}

// A block: kFeatures features of leaf blockIdx.x.
template <typename A>
__global__ void __launch_bounds__(kFeatures* kChains)
    StatisticsKernel(double epsilon, int64_t leaf_rows, const int32_t* counts,
                     const Activations<const A> x, float* mean, float* variance, float* scale) {
  const int64_t leaf = blockIdx.x;
  const int64_t f = static_cast<int64_t>(blockIdx.y) * kFeatures + threadIdx.x;
  const bool inside = f < x.features;
  const int64_t rows = inside ? counts[leaf] : 0;
  const A* const first = x.data + leaf * leaf_rows * x.row_stride + f;
  const auto load = [&](int64_t row) { return static_cast<float>(first[row * x.row_stride]); };
  const double count = rows > 0 ? static_cast<double>(rows) : 1.0;
  const double leaf_mean =
      CombineChains(SumChain(rows, load, [](float v, double sum) { return sum + v; })) / count;
  const double leaf_variance = CombineChains(SumChain(rows, load,
                                                      [&](float v, double sum) {
                                                        const double centred = v - leaf_mean;
                                                        return fma(centred, centred, sum);
                                                      })) /
                               count;
  if (!inside || threadIdx.y != 0) return;
  const int64_t at = leaf * x.features + f;
  mean[at] = static_cast<float>(leaf_mean);
  variance[at] = static_cast<float>(leaf_variance);
  scale[at] = ScaleOf(leaf_variance, epsilon);
}

__global__ void __launch_bounds__(kLoopThreads)
    ScaleKernel(double epsilon, int64_t features, const float* variance, float* scale) {
  const int64_t f = static_cast<int64_t>(blockIdx.x) * kLoopThreads + threadIdx.x;
  if (f < features) scale[f] = ScaleOf(variance[f], epsilon);
}

template <typename A>
struct BatchNormOp {
  FastDivisor by_leaf_rows;
  Activations<const A> x;
  const float* mean;
  const float* scale;
  int64_t statistics_stride;
  const float* gain;
  const float* bias;
  Activations<A> y;

  template <int kCount>
  using Inputs = Values<kCount>;
  template <int kCount>
  __device__ Values<kCount> Load(const Index& index) const {
    return LoadValues<kCount>(At(x, index));
  }
  template <int kCount>
  __device__ void Store(const Index& index, Values<kCount> values) const {
    const int64_t leaf = by_leaf_rows.Divide(static_cast<uint32_t>(index.row));
    const int64_t statistics = leaf * statistics_stride;
    for (int i = 0; i < kCount; ++i) {
      const int64_t f = index.feature + i;
      const float n = (values.v[i] - mean[statistics + f]) * scale[statistics + f];
      values.v[i] = fmaf(n, gain[f], bias[f]);
    }
    StoreValues<kCount>(At(y, index), values);
  }
};

struct BackwardStatistics {
  const float* mean;
  const float* scale;
  const float* gain;
};

// A block: kFeatures features of leaf blockIdx.x, its rows twice: for the sums and for dx.
template <typename A>
__global__ void __launch_bounds__(kFeatures* kChains)
    BatchNormBackwardKernel(int64_t leaf_rows, const int32_t* counts, const Activations<const A> x,
                            const BackwardStatistics statistics, const Activations<const A> dy,
                            const Activations<A> dx, float* dgain, float* dbias,
                            int64_t leaf_stride) {
  const int64_t leaf = blockIdx.x;
  const int64_t f = static_cast<int64_t>(blockIdx.y) * kFeatures + threadIdx.x;
  const bool inside = f < x.features;
  const int64_t rows = inside ? counts[leaf] : 0;
  const int64_t at = leaf * x.features + f;
  const float mean = inside ? statistics.mean[at] : 0.0f;
  const float scale = inside ? statistics.scale[at] : 0.0f;
  const A* const leaf_x = x.data + leaf * leaf_rows * x.row_stride + f;
  const A* const leaf_dy = dy.data + leaf * leaf_rows * dy.row_stride + f;
  struct Pair {
    float n;
    float dy;
  };
  const auto load_dy = [&](int64_t row) {
    return static_cast<float>(leaf_dy[row * dy.row_stride]);
  };
  const auto load = [&](int64_t row) {
    return Pair{(static_cast<float>(leaf_x[row * x.row_stride]) - mean) * scale, load_dy(row)};
  };
  const double sum =
      CombineChains(SumChain(rows, load_dy, [](float d, double s) { return s + d; }));
  const double along = CombineChains(SumChain(rows, load, [](const Pair& pair, double s) {
    return fma(static_cast<double>(pair.dy), static_cast<double>(pair.n), s);
  }));
  if (!inside) return;
  if (threadIdx.y == 0) {
    dgain[leaf * leaf_stride + f] = static_cast<float>(along);
    dbias[leaf * leaf_stride + f] = static_cast<float>(sum);
  }
  const double count = rows > 0 ? static_cast<double>(rows) : 1.0;
  const float mean_dy = static_cast<float>(sum / count);
  const float mean_along = static_cast<float>(along / count);
  const float slope = statistics.gain[f] * scale;
  A* const leaf_dx = dx.data + leaf * leaf_rows * dx.row_stride + f;
  for (int64_t row = threadIdx.y; row < leaf_rows; row += kChains) {
    float d = 0;
    if (row < rows) {
      const Pair pair = load(row);
      d = fmaf(-pair.n, mean_along, pair.dy - mean_dy) * slope;
    }
    leaf_dx[row * dx.row_stride] = static_cast<A>(d);
  }
}

// A thread: a feature of leaf blockIdx.x.
__global__ void __launch_bounds__(kLoopThreads)
    DeliverKernel(const int32_t* counts, const int64_t* batch_rows, int64_t features, bool unbiased,
                  const float* values, float* out, int64_t leaf_stride) {
  const int64_t leaf = blockIdx.x;
  const int64_t f = static_cast<int64_t>(blockIdx.y) * kLoopThreads + threadIdx.x;
  if (f >= features) return;
  const int32_t rows = counts[leaf];
  float delivered = 0;
  if (rows > 0) {
    const double count = rows;
    const double factor = unbiased && rows > 1 ? count / (count - 1) : 1.0;
    const double share = count / static_cast<double>(*batch_rows);
    delivered = static_cast<float>(values[leaf * features + f] * factor * share);
  }
  out[leaf * leaf_stride + f] = delivered;
}

// Leaves go to the grid's first dimension: they may exceed 65535, the limit of the second
// dimension.
dim3 FeatureBlocks(int64_t features, int64_t per_block, const LeafShape& leaves) {
  return dim3(static_cast<unsigned>(leaves.leaves), Blocks(features, per_block));
}

}  // namespace

template <typename A>
void BatchStatistics(Stream& stream, double epsilon, const LeafShape& leaves, const int32_t* counts,
                     Activations<const A> x, float* mean, float* variance, float* scale) {
  CHECK(x.tokens == 1 && x.rows == leaves.rows());
  if (leaves.leaves == 0 || x.features == 0) return;
  Launch(stream, FeatureBlocks(x.features, kFeatures, leaves), dim3(kFeatures, kChains),
         StatisticsKernel<A>, epsilon, leaves.leaf_rows, counts, x, mean, variance, scale);
}

void BatchNormScale(Stream& stream, double epsilon, int64_t features, const float* variance,
                    float* scale) {
  if (features == 0) return;
  Launch(stream, Blocks(features, kLoopThreads), kLoopThreads, ScaleKernel, epsilon, features,
         variance, scale);
}

template <typename A>
void BatchNormForward(Stream& stream, const LeafShape& leaves, Activations<const A> x,
                      const float* mean, const float* scale, int64_t statistics_stride,
                      const float* gain, const float* bias, Activations<A> y) {
  CHECK(x.tokens == 1 && x.rows == leaves.rows());
  if (x.rows == 0) return;
  const BatchNormOp<A> op{
      FastDivisor(leaves.leaf_rows), x, mean, scale, statistics_stride, gain, bias, y};
  ForEachElement<kLargestPack<A>>(stream, Merge::kNone, ShapeOf(y).With(x).With(y), op);
}

template <typename A>
void BatchNormBackward(Stream& stream, const LeafShape& leaves, const int32_t* counts,
                       Activations<const A> x, const float* mean, const float* scale,
                       const float* gain, Activations<const A> dy, Activations<A> dx, float* dgain,
                       float* dbias, int64_t leaf_stride) {
  CHECK(x.tokens == 1 && x.rows == leaves.rows());
  CHECK(dy.rows == x.rows && dy.features == x.features);
  CHECK(dx.rows == x.rows && dx.features == x.features);
  if (leaves.leaves == 0 || x.features == 0) return;
  Launch(stream, FeatureBlocks(x.features, kFeatures, leaves), dim3(kFeatures, kChains),
         BatchNormBackwardKernel<A>, leaves.leaf_rows, counts, x,
         BackwardStatistics{mean, scale, gain}, dy, dx, dgain, dbias, leaf_stride);
}

void BatchNormDeliver(Stream& stream, const LeafShape& leaves, const int32_t* counts,
                      const int64_t* batch_rows, int64_t features, bool unbiased,
                      const float* values, float* out, int64_t leaf_stride) {
  if (leaves.leaves == 0 || features == 0) return;
  Launch(stream, FeatureBlocks(features, kLoopThreads, leaves), kLoopThreads, DeliverKernel, counts,
         batch_rows, features, unbiased, values, out, leaf_stride);
}

ELASTOR_INSTANTIATE(BatchStatistics, float, BFloat16)
ELASTOR_INSTANTIATE(BatchNormForward, float, BFloat16)
ELASTOR_INSTANTIATE(BatchNormBackward, float, BFloat16)

}  // namespace elastor::cuda
