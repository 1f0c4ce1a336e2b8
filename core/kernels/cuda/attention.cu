#include <type_traits>

#include "core/base/instantiate.h"
#include "core/base/log.h"
#include "core/base/random.h"
#include "core/cuda/bfloat16.h"
#include "core/cuda/math.h"
#include "core/kernels/cuda/attention.h"
#include "core/kernels/cuda/warp_runs.h"
#include "core/kernels/dropout.h"

namespace elastor::cuda {
namespace {

constexpr int kAttentionThreads = 128;
constexpr int kAttentionWarps = kAttentionThreads / kWarp;

// A warp's shared memory: weights, slopes and gradients of one query.
constexpr int kWarpArrays = 3;

template <typename A>
struct AttentionArguments {
  AttentionShape shape;
  Activations<const A> q;
  Activations<const A> k;
  Activations<const A> v;
  AttentionRows rows;
  const float* position_bias;
  KeptWords kept;  // by dropout
};

// The features of one head of a token.
template <typename A>
__device__ A* HeadOf(const Activations<A>& view, int64_t row, int64_t token, int64_t head,
                     int64_t width) {
  return view.data + row * view.row_stride + token * view.token_stride + head * width;
}

template <typename A>
__device__ float Dot(const A* a, const A* b, int64_t width) {
  float sum = 0;
  for (int64_t f = 0; f < width; ++f) {
    sum = fmaf(static_cast<float>(a[f]), static_cast<float>(b[f]), sum);
  }
  return sum;
}

// Which warp this is: one of `tokens` for every row and head, and its shared memory.
struct WarpPlace {
  int lane;
  int64_t row;
  int64_t head;
  int64_t token;
  float* weights;
  float* slopes;
  float* gradients;

  __device__ WarpPlace(const AttentionShape& shape, int64_t tokens) {
    lane = static_cast<int>(threadIdx.x) % kWarp;
    const int64_t warp = static_cast<int64_t>(blockIdx.x) * kAttentionWarps + threadIdx.x / kWarp;
    token = warp % tokens;
    head = warp / tokens % shape.heads;
    row = warp / tokens / shape.heads;
    weights = SharedMemory<float>() + threadIdx.x / kWarp * kWarpArrays * shape.keys;
    slopes = weights + shape.keys;
    gradients = slopes + shape.keys;
  }
};

__device__ inline float MostOfLanes(float v) {
  return OverLanes(v, [](float a, float b) { return AtLeast(a, b); });
}

// The mask of the weight that the warp's query has for key j.
template <typename A>
__device__ float MaskOf(const AttentionArguments<A>& a, const WarpPlace& at, int64_t j) {
  const DeviceDropout& dropout = a.rows.dropout;
  if (dropout.rate == 0) return 1.0f;
  const int64_t feature = (at.head * a.shape.queries + at.token) * a.shape.keys + j;
  const auto row = static_cast<uint64_t>(*dropout.first_row + dropout.local_row[at.row]);
  const PhiloxBlock words =
      Philox(dropout.key, {static_cast<uint32_t>(row), static_cast<uint32_t>(row >> 32),
                           *dropout.step, static_cast<uint32_t>(feature / 4)});
  return words[feature % 4] >= a.kept.lowest ? static_cast<float>(a.kept.scale) : 0.0f;
}

// The weights of the warp's query before dropout, and their derivatives by the scores, which for
// kSoftmax are the weights; 0 where a key is not seen.
template <typename A>
__device__ void QueryWeights(const AttentionArguments<A>& a, const WarpPlace& at) {
  const AttentionShape& shape = a.shape;
  const auto scale = static_cast<float>(shape.scale);
  int64_t length = shape.keys;
  if (!a.rows.all_keys) {
    const int64_t given = a.rows.lengths.Of(at.row) + a.rows.others;
    length = given < length ? given : length;
  }
  const int64_t begin = shape.last_keys ? shape.keys - length : 0;
  const int64_t position = shape.position(at.token);
  int64_t end = begin + length;
  if (shape.causal) end = position < end ? position + 1 : 0;
  const auto seen = [&](int64_t j) { return begin <= j && j < end; };
  const A* q = HeadOf(a.q, at.row, at.token, at.head, shape.width);
  float most = -INFINITY;
  for (int64_t j = at.lane; j < shape.keys; j += kWarp) {
    float score = 0;
    if (seen(j)) {
      score = Dot(q, HeadOf(a.k, at.row, j, at.head, shape.width), shape.width) * scale;
      if (a.position_bias != nullptr) score += a.position_bias[DifferenceOf(shape, at.token, j)];
      most = AtLeast(most, score);
    }
    at.weights[j] = score;
  }
  if (shape.kind == AttentionKind::kSilu) {
    const float share = 1.0f / static_cast<float>(shape.keys);
    for (int64_t j = at.lane; j < shape.keys; j += kWarp) {
      const ValueAndSlope silu = Swish(at.weights[j]);
      at.weights[j] = seen(j) ? silu.value * share : 0.0f;
      at.slopes[j] = seen(j) ? silu.slope * share : 0.0f;
    }
    __syncwarp();
    return;
  }
  most = MostOfLanes(most);
  float sum = 0;
  for (int64_t j = at.lane; j < shape.keys; j += kWarp) {
    at.weights[j] = seen(j) ? Exp(at.weights[j] - most) : 0.0f;
    sum += at.weights[j];
  }
  sum = SumOverLanes(sum);
  const float inverse = sum > 0 ? 1.0f / sum : 0.0f;
  for (int64_t j = at.lane; j < shape.keys; j += kWarp) {
    at.weights[j] *= inverse;
    at.slopes[j] = at.weights[j];
  }
  __syncwarp();
}

// out[f] = sum over `terms` tokens of factors[t * stride] x_t[f].
template <typename A>
__device__ void WeightedSum(const WarpPlace& at, const float* factors, int64_t stride,
                            const Activations<const A>& x, int64_t terms, int64_t width, A* out) {
  for (int64_t f = at.lane; f < width; f += kWarp) {
    float sum = 0;
    for (int64_t t = 0; t < terms; ++t) {
      sum = fmaf(factors[t * stride], static_cast<float>(HeadOf(x, at.row, t, at.head, width)[f]),
                 sum);
    }
    out[f] = static_cast<A>(sum + 0.0f);
  }
}

// A warp: a query of a head of a row.
template <typename A>
__global__ void __launch_bounds__(kAttentionThreads)
    AttentionForwardKernel(const AttentionArguments<A> a, const Activations<A> y) {
  const AttentionShape& shape = a.shape;
  const WarpPlace at(shape, shape.queries);
  if (at.row >= y.rows) return;
  QueryWeights(a, at);
  for (int64_t j = at.lane; j < shape.keys; j += kWarp) at.weights[j] *= MaskOf(a, at, j);
  __syncwarp();
  WeightedSum(at, at.weights, 1, a.v, shape.keys, shape.value_width,
              HeadOf(y, at.row, at.token, at.head, shape.value_width));
}

// A warp: a query of a head of a row. Writes dq, its weights and the gradients of its scores.
template <typename A>
__global__ void __launch_bounds__(kAttentionThreads)
    AttentionQueriesBackwardKernel(const AttentionArguments<A> a, const Activations<const A> dy,
                                   const Activations<A> dq, float* weights, float* gradients) {
  const AttentionShape& shape = a.shape;
  const WarpPlace at(shape, shape.queries);
  if (at.row >= dq.rows) return;
  QueryWeights(a, at);
  const A* dy_query = HeadOf(dy, at.row, at.token, at.head, shape.value_width);
  float along = 0;
  for (int64_t j = at.lane; j < shape.keys; j += kWarp) {
    // The tokens of keys that are not seen may hold anything finite.
    at.gradients[j] =
        Dot(dy_query, HeadOf(a.v, at.row, j, at.head, shape.value_width), shape.value_width) *
        MaskOf(a, at, j);
    along = fmaf(at.slopes[j], at.gradients[j], along);
  }
  along = shape.kind == AttentionKind::kSoftmax ? SumOverLanes(along) : 0.0f;
  const int64_t first = ((at.row * shape.heads + at.head) * shape.queries + at.token) * shape.keys;
  for (int64_t j = at.lane; j < shape.keys; j += kWarp) {
    const float d = at.slopes[j] * (at.gradients[j] - along);
    weights[first + j] = at.weights[j] * MaskOf(a, at, j);
    gradients[first + j] = d;
    at.gradients[j] = d * static_cast<float>(shape.scale);
  }
  __syncwarp();
  WeightedSum(at, at.gradients, 1, a.k, shape.keys, shape.width,
              HeadOf(dq, at.row, at.token, at.head, shape.width));
}

// A warp: a key of a head of a row.
template <typename A>
__global__ void __launch_bounds__(kAttentionThreads)
    AttentionKeysBackwardKernel(const AttentionArguments<A> a, const Activations<const A> dy,
                                const Activations<A> dk, const Activations<A> dv,
                                const float* weights, const float* gradients) {
  const AttentionShape& shape = a.shape;
  const WarpPlace at(shape, shape.keys);
  if (at.row >= dk.rows) return;
  const int64_t first = (at.row * shape.heads + at.head) * shape.queries * shape.keys + at.token;
  WeightedSum(at, weights + first, shape.keys, dy, shape.queries, shape.value_width,
              HeadOf(dv, at.row, at.token, at.head, shape.value_width));
  const auto scale = static_cast<float>(shape.scale);
  A* const out = HeadOf(dk, at.row, at.token, at.head, shape.width);
  for (int64_t f = at.lane; f < shape.width; f += kWarp) {
    float sum = 0;
    for (int64_t i = 0; i < shape.queries; ++i) {
      sum = fmaf(gradients[first + i * shape.keys] * scale,
                 static_cast<float>(HeadOf(a.q, at.row, i, at.head, shape.width)[f]), sum);
    }
    out[f] = static_cast<A>(sum + 0.0f);
  }
}

// A thread: a difference of positions of a row.
__global__ void __launch_bounds__(kAttentionThreads)
    AttentionPositionsBackwardKernel(const AttentionShape shape, int64_t rows,
                                     const float* gradients, float* dposition_bias) {
  const int64_t element = static_cast<int64_t>(blockIdx.x) * kAttentionThreads + threadIdx.x;
  const int64_t row = element / shape.differences();
  if (row >= rows) return;
  const int64_t difference = element % shape.differences() + shape.first_difference();
  float sum = 0;
  for (int64_t line = 0; line < shape.heads * shape.queries; ++line) {
    const int64_t key = shape.position(line % shape.queries) - difference;
    if (key < 0 || key >= shape.keys) continue;
    sum += gradients[(row * shape.heads * shape.queries + line) * shape.keys + key];
  }
  dposition_bias[element] = sum;
}

template <typename A>
AttentionArguments<A> Arguments(const AttentionShape& shape, Activations<const A> q,
                                Activations<const A> k, Activations<const A> v,
                                const AttentionRows& rows, const float* position_bias) {
  CHECK(q.tokens == shape.queries && q.features == shape.heads * shape.width);
  CHECK(k.tokens == shape.keys && k.features == shape.heads * shape.width);
  CHECK(v.tokens == shape.keys && v.features == shape.heads * shape.value_width);
  return {shape, q, k, v, rows, position_bias, KeptWordsOf(rows.dropout.rate)};
}

// Launches a warp for each of `tokens` of every row and head.
template <typename... Parameters, typename... Arguments>
void LaunchWarps(Stream& stream, const AttentionShape& shape, int64_t rows, int64_t tokens,
                 void (*kernel)(Parameters...), const Arguments&... arguments) {
  if (rows == 0) return;
  const int64_t shared =
      kAttentionWarps * kWarpArrays * shape.keys * static_cast<int64_t>(sizeof(float));
  LaunchWithSharedMemory(stream, Blocks(rows * shape.heads * tokens, kAttentionWarps),
                         kAttentionThreads, shared, kernel, arguments...);
}

}  // namespace

template <typename A>
void AttentionForward(Stream& stream, const AttentionShape& shape, Activations<const A> q,
                      Activations<const A> k, Activations<const A> v, const AttentionRows& rows,
                      const float* position_bias, Activations<A> y) {
  const AttentionArguments<A> arguments = Arguments<A>(shape, q, k, v, rows, position_bias);
  LaunchWarps(stream, shape, q.rows, shape.queries, AttentionForwardKernel<A>, arguments, y);
}

template <typename A>
void AttentionBackward(Stream& stream, const AttentionShape& shape, Activations<const A> q,
                       Activations<const A> k, Activations<const A> v, const AttentionRows& rows,
                       const float* position_bias, Activations<const A> dy, Activations<A> dq,
                       Activations<A> dk, Activations<A> dv, float* dposition_bias, float* weights,
                       float* gradients) {
  const AttentionArguments<A> arguments = Arguments<A>(shape, q, k, v, rows, position_bias);
  LaunchWarps(stream, shape, q.rows, shape.queries, AttentionQueriesBackwardKernel<A>, arguments,
              dy, dq, weights, gradients);
  LaunchWarps(stream, shape, q.rows, shape.keys, AttentionKeysBackwardKernel<A>, arguments, dy, dk,
              dv, weights, gradients);
  if (dposition_bias == nullptr || q.rows == 0) return;
  Launch(stream, Blocks(q.rows * shape.differences(), kAttentionThreads), kAttentionThreads,
         AttentionPositionsBackwardKernel, shape, q.rows, gradients, dposition_bias);
}

ELASTOR_INSTANTIATE(AttentionForward, float, BFloat16)
ELASTOR_INSTANTIATE(AttentionBackward, float, BFloat16)

}  // namespace elastor::cuda
