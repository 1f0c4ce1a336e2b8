#include <cmath>

#include "core/base/instantiate.h"
#include "core/cuda/bfloat16.h"
#include "core/cuda/launch.h"
#include "core/cuda/math.h"
#include "core/kernels/cuda/element_loop.h"
#include "core/kernels/cuda/mixture.h"

namespace elastor::cuda {
namespace {

constexpr int kMixtureThreads = 256;

// A thread: the weights of one mixture of a row.
template <typename A>
__global__ void __launch_bounds__(kMixtureThreads)
    MixtureWeightsKernel(const MixtureShape shape, const Activations<const A> gates, float* p) {
  const int64_t number = static_cast<int64_t>(blockIdx.x) * kMixtureThreads + threadIdx.x;
  if (number >= gates.rows * shape.mixtures) return;
  const int64_t row = number / shape.mixtures;
  const int64_t first = number % shape.mixtures * shape.experts;
  const A* const logits = gates.data + row * gates.row_stride + first;
  float* const weights = p + number * shape.experts;
  float largest = static_cast<float>(logits[0]);
  for (int64_t i = 1; i < shape.experts; ++i) {
    largest = AtLeast(largest, static_cast<float>(logits[i]));
  }
  float sum = 0;
  for (int64_t i = 0; i < shape.experts; ++i) {
    weights[i] = Exp(static_cast<float>(logits[i]) - largest);
    sum += weights[i];
  }
  for (int64_t i = 0; i < shape.experts; ++i) weights[i] = weights[i] / sum;
}

// A thread: dp of one expert in one mixture of a row.
template <typename A>
__global__ void __launch_bounds__(kMixtureThreads)
    MixtureWeightGradientKernel(const MixtureShape shape, const Activations<const A> x,
                                const Activations<const A> dy, float* dp) {
  const int64_t number = static_cast<int64_t>(blockIdx.x) * kMixtureThreads + threadIdx.x;
  if (number >= x.rows * shape.mixtures * shape.experts) return;
  const int64_t mixture = number / shape.experts;
  const int64_t row = mixture / shape.mixtures;
  const A* const expert = x.data + row * x.row_stride + number % shape.experts * x.token_stride;
  const A* const gradient =
      dy.data + row * dy.row_stride + mixture % shape.mixtures * dy.token_stride;
  float sum = static_cast<float>(gradient[0]) * static_cast<float>(expert[0]);
  for (int64_t d = 1; d < shape.width; ++d) {
    sum = fmaf(static_cast<float>(gradient[d]), static_cast<float>(expert[d]), sum);
  }
  dp[number] = sum;
}

// A thread: dgates of one mixture of a row.
template <typename A>
__global__ void __launch_bounds__(kMixtureThreads)
    GateGradientKernel(const MixtureShape shape, const float* p, const float* dp,
                       const Activations<A> dgates) {
  const int64_t number = static_cast<int64_t>(blockIdx.x) * kMixtureThreads + threadIdx.x;
  if (number >= dgates.rows * shape.mixtures) return;
  p += number * shape.experts;
  dp += number * shape.experts;
  A* const out = dgates.data + number / shape.mixtures * dgates.row_stride +
                 number % shape.mixtures * shape.experts;
  float mean = p[0] * dp[0];
  for (int64_t i = 1; i < shape.experts; ++i) mean = fmaf(p[i], dp[i], mean);
  for (int64_t i = 0; i < shape.experts; ++i) out[i] = static_cast<A>(p[i] * (dp[i] - mean));
}

// out token o = sum over the other side's tokens s of p * in token s: the mixtures of experts, or
// the gradients of experts from those of mixtures. The weight of (o, s) is p[o * out_step + s *
// in_step] of the row.
template <typename A>
struct WeightedSumOp {
  Activations<const A> in;
  const float* p;
  int64_t row_weights;  // T E
  int64_t out_step;
  int64_t in_step;
  Activations<A> out;

  template <int kCount>
  using Inputs = Values<kCount>;
  template <int kCount>
  __device__ Values<kCount> Load(const Index& index) const {
    const float* const weights = p + index.row * row_weights + index.token * out_step;
    const auto token = [&](int64_t s) {
      return LoadValues<kCount>(At(in, Index{index.row, s, index.feature}));
    };
    Values<kCount> sum = token(0);
    for (int i = 0; i < kCount; ++i) sum.v[i] *= weights[0];
    for (int64_t s = 1; s < in.tokens; ++s) {
      const Values<kCount> x = token(s);
      for (int i = 0; i < kCount; ++i) sum.v[i] = fmaf(weights[s * in_step], x.v[i], sum.v[i]);
    }
    return sum;
  }
  template <int kCount>
  __device__ void Store(const Index& index, const Values<kCount>& sum) const {
    StoreValues<kCount>(At(out, index), sum);
  }
};

template <typename A>
void WeightedSum(Stream& stream, const WeightedSumOp<A>& op) {
  const LoopShape shape = ShapeOf(op.out)
                              .With(op.in.data, sizeof(A), op.in.row_stride, op.in.token_stride)
                              .With(op.out);
  ForEachElement<kLargestPack<A>>(stream, Merge::kNone, shape, op);
}

}  // namespace

template <typename A>
void Mixture(Stream& stream, const MixtureShape& shape, Activations<const A> x,
             Activations<const A> gates, float* p, Activations<A> y) {
  if (x.rows == 0) return;
  Launch(stream, Blocks(x.rows * shape.mixtures, kMixtureThreads), kMixtureThreads,
         MixtureWeightsKernel<A>, shape, gates, p);
  WeightedSum<A>(stream, {x, p, shape.mixtures * shape.experts, shape.experts, 1, y});
}

template <typename A>
void MixtureBackward(Stream& stream, const MixtureShape& shape, Activations<const A> x,
                     const float* p, Activations<const A> dy, float* dp, Activations<A> dx,
                     Activations<A> dgates) {
  if (x.rows == 0) return;
  const int64_t row_weights = shape.mixtures * shape.experts;
  Launch(stream, Blocks(x.rows * row_weights, kMixtureThreads), kMixtureThreads,
         MixtureWeightGradientKernel<A>, shape, x, dy, dp);
  Launch(stream, Blocks(x.rows * shape.mixtures, kMixtureThreads), kMixtureThreads,
         GateGradientKernel<A>, shape, p, static_cast<const float*>(dp), dgates);
  WeightedSum<A>(stream, {dy, p, row_weights, 1, shape.experts, dx});
}

ELASTOR_INSTANTIATE(Mixture, float, BFloat16)
ELASTOR_INSTANTIATE(MixtureBackward, float, BFloat16)

}  // namespace elastor::cuda
