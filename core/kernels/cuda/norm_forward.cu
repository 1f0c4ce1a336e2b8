#include "core/base/instantiate.h"
#include "core/kernels/cuda/fast_divisor.h"
#include "core/kernels/cuda/norm.h"
#include "core/kernels/cuda/warp_runs.h"

namespace elastor::cuda {
namespace {

constexpr int kForwardThreads = 256;
constexpr int kBlockWarps = kForwardThreads / kWarp;

template <typename A>
struct NormArguments {
  bool centred;  // layer norm
  int64_t width;
  float inverse_width;
  float epsilon;
  Activations<const A> x;
  Activations<const A> residual;
  Activations<A> sum;
  const float* gain;
  const float* bias;
  Activations<A> y;
  Activations<A> normalized;
  float* scale;
  // Runs are numbered in the order of y's memory.
  FastDivisor by_inner;
  bool rows_inside;

  __device__ int64_t runs() const { return y.rows * y.tokens; }
};

// Where one run's elements are.
template <typename A>
struct NormRun {
  const A* x;
  const A* residual;
  A* sum;
  A* y;
  A* normalized;
  float* scale;

  __device__ NormRun(const NormArguments<A>& a, int64_t run) {
    const uint32_t outer = a.by_inner.Divide(static_cast<uint32_t>(run));
    const uint32_t inner = static_cast<uint32_t>(run) - outer * a.by_inner.divisor();
    const int64_t row = a.rows_inside ? inner : outer;
    const int64_t token = a.rows_inside ? outer : inner;
    const auto at = [&](const auto& view) {
      return view.data == nullptr ? nullptr
                                  : view.data + row * view.row_stride + token * view.token_stride;
    };
    x = at(a.x);
    residual = at(a.residual);
    sum = at(a.sum);
    y = at(a.y);
    normalized = at(a.normalized);
    scale = a.scale + row * a.y.tokens + token;
  }

  // What is normalised: rounded, as it is stored.
  __device__ float Input(int64_t f) const {
    const float value = static_cast<float>(x[f]);
    if (residual == nullptr) return value;
    return static_cast<float>(static_cast<A>(value + static_cast<float>(residual[f])));
  }
  __device__ void Store(const NormArguments<A>& a, int64_t f, float value, float mean,
                        float run_scale) const {
    const float n = (value - mean) * run_scale;
    if (sum != nullptr) sum[f] = static_cast<A>(value);
    normalized[f] = static_cast<A>(n);
    y[f] = static_cast<A>(a.bias == nullptr ? n * a.gain[f] : fmaf(n, a.gain[f], a.bias[f]));
  }
};

template <typename A>
__device__ inline float ScaleOf(const NormArguments<A>& a, float square_sum) {
  return 1.0f / sqrtf(fmaf(square_sum, a.inverse_width, a.epsilon));
}

// A warp: kRuns neighbouring runs, of which lane i holds features i, i + 32, ... in registers.
template <typename A, int kSlots, int kRuns>
__global__ void __launch_bounds__(kForwardThreads) NormForwardKernel(const NormArguments<A> a) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int64_t warp = static_cast<int64_t>(blockIdx.x) * kBlockWarps + threadIdx.x / kWarp;
  const int64_t first = warp * kRuns;
  const int64_t runs = a.runs();
  if (first >= runs) return;
  float values[kRuns][kSlots];
  float means[kRuns];
  float scales[kRuns];
#pragma unroll
  for (int r = 0; r < kRuns; ++r) {
    const NormRun<A> run(a, first + r < runs ? first + r : first);
#pragma unroll
    for (int slot = 0; slot < kSlots; ++slot) {
      const int64_t f = slot * kWarp + lane;
      values[r][slot] = f < a.width ? run.Input(f) : 0.0f;
    }
  }
#pragma unroll
  for (int r = 0; r < kRuns; ++r) {
    float sum = 0;
#pragma unroll
    for (int slot = 0; slot < kSlots; ++slot) sum += values[r][slot];
    means[r] = a.centred ? SumOverLanes(sum) * a.inverse_width : 0.0f;
  }
#pragma unroll
  for (int r = 0; r < kRuns; ++r) {
    float square_sum = 0;
#pragma unroll
    for (int slot = 0; slot < kSlots; ++slot) {
      const float centred = slot * kWarp + lane < a.width ? values[r][slot] - means[r] : 0.0f;
      square_sum = fmaf(centred, centred, square_sum);
    }
    scales[r] = ScaleOf(a, SumOverLanes(square_sum));
  }
#pragma unroll
  for (int r = 0; r < kRuns; ++r) {
    if (first + r >= runs) break;
    const NormRun<A> run(a, first + r);
    if (lane == 0) *run.scale = scales[r];
#pragma unroll
    for (int slot = 0; slot < kSlots; ++slot) {
      const int64_t f = slot * kWarp + lane;
      if (f < a.width) run.Store(a, f, values[r][slot], means[r], scales[r]);
    }
  }
}

// Runs that registers do not hold. A warp: one run, read three times.
template <typename A>
__global__ void __launch_bounds__(kForwardThreads) NormForwardWideKernel(const NormArguments<A> a) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int64_t warp = static_cast<int64_t>(blockIdx.x) * kBlockWarps + threadIdx.x / kWarp;
  if (warp >= a.runs()) return;
  const NormRun<A> run(a, warp);
  float mean = 0;
  if (a.centred) {
    float sum = 0;
    for (int64_t f = lane; f < a.width; f += kWarp) sum += run.Input(f);
    mean = SumOverLanes(sum) * a.inverse_width;
  }
  float square_sum = 0;
  for (int64_t f = lane; f < a.width; f += kWarp) {
    const float centred = run.Input(f) - mean;
    square_sum = fmaf(centred, centred, square_sum);
  }
  const float scale = ScaleOf(a, SumOverLanes(square_sum));
  if (lane == 0) *run.scale = scale;
  for (int64_t f = lane; f < a.width; f += kWarp) run.Store(a, f, run.Input(f), mean, scale);
}

template <typename A>
void LaunchForward(Stream& stream, int64_t runs, const NormArguments<A>& arguments) {
  WithSlots(arguments.width, [&](auto slots) {
    constexpr int kSlots = slots;
    if constexpr (kSlots == 0) {
      Launch(stream, Blocks(runs, kBlockWarps), kForwardThreads, NormForwardWideKernel<A>,
             arguments);
    } else {
      constexpr int kRuns = kSlots <= 4 ? 4 / kSlots : 1;
      Launch(stream, Blocks(runs, kBlockWarps * kRuns), kForwardThreads,
             NormForwardKernel<A, kSlots, kRuns>, arguments);
    }
  });
}

}  // namespace

template <typename A>
void NormForward(Stream& stream, const NormShape& shape, Activations<const A> x,
                 Activations<const A> residual, Activations<A> sum, const float* gain,
                 const float* bias, Activations<A> y, Activations<A> normalized, float* scale) {
  CHECK_EQ(shape.width, x.features);
  CheckSameShape(y, x);
  CheckSameShape(normalized, x);
  if (residual.data != nullptr) CheckSameShape(residual, x);
  if (sum.data != nullptr) CheckSameShape(sum, x);
  const int64_t runs = x.rows * x.tokens;
  if (runs == 0) return;
  CHECK_LT(runs, int64_t{1} << 31);
  const bool rows_inside = y.tokens > 1 && y.row_stride < y.token_stride;
  const NormArguments<A> arguments{shape.kind == NormKind::kLayer,
                                   shape.width,
                                   1.0f / static_cast<float>(shape.width),
                                   static_cast<float>(shape.epsilon),
                                   x,
                                   residual,
                                   sum,
                                   gain,
                                   bias,
                                   y,
                                   normalized,
                                   scale,
                                   FastDivisor(rows_inside ? y.rows : y.tokens),
                                   rows_inside};
  LaunchForward(stream, runs, arguments);
}

ELASTOR_INSTANTIATE(NormForward, float, BFloat16)

}  // namespace elastor::cuda
