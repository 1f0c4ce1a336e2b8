#include "core/base/instantiate.h"
#include "core/kernels/cuda/column_sums.h"
#include "core/kernels/cuda/fast_divisor.h"
#include "core/kernels/cuda/norm.h"
#include "core/kernels/cuda/warp_runs.h"

namespace elastor::cuda {
namespace {

constexpr int kBackwardThreads = 256;
// Chains of the sums of a chunk: run r of the chunk, counted through its rows and their tokens, is
// an addend of chain r % kBackwardChains.
constexpr int kBackwardChains = kBackwardThreads / kWarp;

template <typename A>
struct NormBackwardArguments {
  bool centred;  // layer norm
  int64_t width;
  float inverse_width;
  int64_t leaf_rows;
  FastDivisor by_chunks;  // of a leaf
  FastDivisor by_tokens;
  Activations<const A> normalized;
  const float* scale;
  const float* gain;
  Activations<const A> dy;
  Activations<const A> residual;
  Activations<A> dx;
  float* partial;  // [leaves][chunks][2][width]: of dgain, of dbias
  bool biased;
};

// The rows of a chunk.
struct ChunkRows {
  int64_t first_row;
  uint32_t runs;

  template <typename A>
  __device__ ChunkRows(const NormBackwardArguments<A>& a, uint32_t chunk) {
    const uint32_t leaf = a.by_chunks.Divide(chunk);
    const int64_t begin = static_cast<int64_t>(chunk - leaf * a.by_chunks.divisor()) * kSumRows;
    const int64_t rows = a.leaf_rows - begin < kSumRows ? a.leaf_rows - begin : kSumRows;
    first_row = leaf * a.leaf_rows + begin;
    runs = static_cast<uint32_t>(rows) * a.by_tokens.divisor();
  }
};

// Where one run's elements are.
template <typename A>
struct BackwardRun {
  const A* normalized;
  const A* dy;
  const A* residual;
  A* dx;
  const float* scale;

  __device__ BackwardRun(const NormBackwardArguments<A>& a, int64_t first_row, uint32_t run) {
    const uint32_t row_of_chunk = a.by_tokens.Divide(run);
    const int64_t token = run - row_of_chunk * a.by_tokens.divisor();
    const int64_t row = first_row + row_of_chunk;
    const auto at = [&](const auto& view) {
      return view.data == nullptr ? nullptr
                                  : view.data + row * view.row_stride + token * view.token_stride;
    };
    normalized = at(a.normalized);
    dy = at(a.dy);
    residual = at(a.residual);
    dx = at(a.dx);
    scale = a.scale + row * a.by_tokens.divisor() + token;
  }
};

// A run's sums, and dx from them.
struct BackwardSums {
  float along;  // mean of gain * dy * normalized
  float mean;   // of gain * dy; 0 for RMS norm

  template <typename A>
  __device__ void Store(const BackwardRun<A>& run, int64_t f, float n, float scaled_dy,
                        float scale) const {
    float dx = fmaf(-n, along, scaled_dy - mean) * scale;
    if (run.residual != nullptr) dx += static_cast<float>(run.residual[f]);
    run.dx[f] = static_cast<A>(dx);
  }
};

// sums[warp][f] of all warps, in order, to partial[f] for f in [first, first + kColumns).
template <int kColumns>
__device__ inline void CombineChains(const float (&sums)[kBackwardChains][kColumns], int64_t first,
                                     int64_t width, float* partial) {
  const int column = static_cast<int>(threadIdx.x);
  if (column >= kColumns || first + column >= width) return;
  float sum = sums[0][column];
  for (int chain = 1; chain < kBackwardChains; ++chain) sum += sums[chain][column];
  partial[first + column] = sum;
}

// A block: a chunk. A warp: a chain, kRuns of its runs at a time; lane i holds features i, i + 32,
// ... of a run, and their sums, in registers.
template <typename A, int kSlots, int kRuns>
__global__ void __launch_bounds__(kBackwardThreads)
    NormBackwardKernel(const NormBackwardArguments<A> a) {
  constexpr int kSlabSlots = kSlots < 8 ? kSlots : 8;
  __shared__ float shared_dgain[kBackwardChains][kSlabSlots * kWarp];
  __shared__ float shared_dbias[kBackwardChains][kSlabSlots * kWarp];
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const uint32_t warp = threadIdx.x / kWarp;
  const ChunkRows chunk(a, blockIdx.x);
  float dgain[kSlots] = {};
  float dbias[kSlots] = {};
  for (uint32_t first = warp; first < chunk.runs; first += kRuns * kBackwardChains) {
    float n[kRuns][kSlots];
    float scaled_dy[kRuns][kSlots];
#pragma unroll
    for (int r = 0; r < kRuns; ++r) {
      const uint32_t number = first + r * kBackwardChains;
      const bool present = number < chunk.runs;
      const BackwardRun<A> run(a, chunk.first_row, present ? number : first);
#pragma unroll
      for (int slot = 0; slot < kSlots; ++slot) {
        const int64_t f = slot * kWarp + lane;
        const bool inside = present && f < a.width;
        n[r][slot] = inside ? static_cast<float>(run.normalized[f]) : 0.0f;
        const float dy = inside ? static_cast<float>(run.dy[f]) : 0.0f;
        dgain[slot] = fmaf(dy, n[r][slot], dgain[slot]);
        dbias[slot] += dy;
        scaled_dy[r][slot] = inside ? dy * a.gain[f] : 0.0f;
      }
    }
#pragma unroll
    for (int r = 0; r < kRuns; ++r) {
      float along = 0;
      float sum = 0;
#pragma unroll
      for (int slot = 0; slot < kSlots; ++slot) {
        along = fmaf(scaled_dy[r][slot], n[r][slot], along);
        sum += scaled_dy[r][slot];
      }
      BackwardSums sums{SumOverLanes(along) * a.inverse_width, 0.0f};
      if (a.centred) sums.mean = SumOverLanes(sum) * a.inverse_width;
      const uint32_t number = first + r * kBackwardChains;
      if (number >= chunk.runs) continue;
      const BackwardRun<A> run(a, chunk.first_row, number);
      const float scale = *run.scale;
#pragma unroll
      for (int slot = 0; slot < kSlots; ++slot) {
        const int64_t f = slot * kWarp + lane;
        if (f < a.width) sums.Store(run, f, n[r][slot], scaled_dy[r][slot], scale);
      }
    }
  }
  float* const partial = a.partial + static_cast<int64_t>(blockIdx.x) * 2 * a.width;
#pragma unroll
  for (int slab = 0; slab < kSlots; slab += kSlabSlots) {
    if (slab > 0) __syncthreads();
#pragma unroll
    for (int slot = 0; slot < kSlabSlots; ++slot) {
      shared_dgain[warp][slot * kWarp + lane] = dgain[slab + slot];
      shared_dbias[warp][slot * kWarp + lane] = dbias[slab + slot];
    }
    __syncthreads();
    CombineChains(shared_dgain, slab * kWarp, a.width, partial);
    if (a.biased) CombineChains(shared_dbias, slab * kWarp, a.width, partial + a.width);
  }
}

// Runs that registers do not hold: two kernels. A block: kBackwardThreads features of a chunk
// (blockIdx.x: the chunk), a thread all chains of one.
template <typename A>
__global__ void __launch_bounds__(kBackwardThreads)
    WideParameterSumsKernel(const NormBackwardArguments<A> a) {
  const int64_t f = static_cast<int64_t>(blockIdx.y) * kBackwardThreads + threadIdx.x;
  if (f >= a.width) return;
  const ChunkRows chunk(a, blockIdx.x);
  float dgain[kBackwardChains] = {};
  float dbias[kBackwardChains] = {};
  for (uint32_t first = 0; first < chunk.runs; first += kBackwardChains) {
#pragma unroll
    for (int chain = 0; chain < kBackwardChains; ++chain) {
      if (first + chain >= chunk.runs) continue;
      const BackwardRun<A> run(a, chunk.first_row, first + chain);
      const float dy = static_cast<float>(run.dy[f]);
      dgain[chain] = fmaf(dy, static_cast<float>(run.normalized[f]), dgain[chain]);
      dbias[chain] += dy;
    }
  }
#pragma unroll
  for (int chain = 1; chain < kBackwardChains; ++chain) {
    dgain[0] += dgain[chain];
    dbias[0] += dbias[chain];
  }
  float* const partial = a.partial + static_cast<int64_t>(blockIdx.x) * 2 * a.width;
  partial[f] = dgain[0];
  if (a.biased) partial[a.width + f] = dbias[0];
}

// A block: a chunk. A warp: a run at a time, read twice.
template <typename A>
__global__ void __launch_bounds__(kBackwardThreads)
    WideBackwardKernel(const NormBackwardArguments<A> a) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const ChunkRows chunk(a, blockIdx.x);
  for (uint32_t number = threadIdx.x / kWarp; number < chunk.runs; number += kBackwardChains) {
    const BackwardRun<A> run(a, chunk.first_row, number);
    const auto scaled_dy = [&](int64_t f) { return static_cast<float>(run.dy[f]) * a.gain[f]; };
    const auto n = [&](int64_t f) { return static_cast<float>(run.normalized[f]); };
    float along = 0;
    float sum = 0;
    for (int64_t f = lane; f < a.width; f += kWarp) {
      along = fmaf(scaled_dy(f), n(f), along);
      sum += scaled_dy(f);
    }
    BackwardSums sums{SumOverLanes(along) * a.inverse_width, 0.0f};
    if (a.centred) sums.mean = SumOverLanes(sum) * a.inverse_width;
    const float scale = *run.scale;
    for (int64_t f = lane; f < a.width; f += kWarp) sums.Store(run, f, n(f), scaled_dy(f), scale);
  }
}

template <typename A>
void LaunchBackward(Stream& stream, int64_t chunks, const NormBackwardArguments<A>& arguments) {
  const unsigned blocks = Blocks(chunks, 1);
  WithSlots(arguments.width, [&](auto slots) {
    constexpr int kSlots = slots;
    if constexpr (kSlots == 0) {
      // First the sums: dx may be dy.
      Launch(stream, dim3(blocks, Blocks(arguments.width, kBackwardThreads)), kBackwardThreads,
             WideParameterSumsKernel<A>, arguments);
      Launch(stream, blocks, kBackwardThreads, WideBackwardKernel<A>, arguments);
    } else {
      constexpr int kRuns = kSlots <= 4 ? 8 / kSlots : 1;
      Launch(stream, blocks, kBackwardThreads, NormBackwardKernel<A, kSlots, kRuns>, arguments);
    }
  });
}

}  // namespace

template <typename A>
void NormBackward(Stream& stream, const NormShape& shape, const LeafShape& leaves,
                  Activations<const A> normalized, const float* scale, const float* gain,
                  Activations<const A> dy, Activations<const A> residual, Activations<A> dx,
                  float* dgain, float* dbias, int64_t leaf_stride, float* scratch) {
  CHECK_EQ(shape.width, dy.features);
  CHECK_EQ(leaves.rows(), dy.rows);
  CheckSameShape(normalized, dy);
  CheckSameShape(dx, dy);
  if (residual.data != nullptr) CheckSameShape(residual, dy);
  const int64_t chunks = SumChunks(leaves);
  if (leaves.leaves * chunks > 0) {
    LaunchBackward<A>(
        stream, leaves.leaves * chunks,
        {shape.kind == NormKind::kLayer, shape.width, 1.0f / static_cast<float>(shape.width),
         leaves.leaf_rows, FastDivisor(chunks), FastDivisor(dy.tokens), normalized, scale, gain, dy,
         residual, dx, scratch, dbias != nullptr});
  }
  // In one call: the bias is to the sums a second token, which lies where it lies.
  AddPartialSums(
      stream,
      {scratch, 2 * shape.width, leaves.leaves, chunks, dbias == nullptr ? 1 : 2, shape.width},
      dgain, dbias == nullptr ? 0 : dbias - dgain, leaf_stride);
}

ELASTOR_INSTANTIATE(NormBackward, float, BFloat16)

}  // namespace elastor::cuda
