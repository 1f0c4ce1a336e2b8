#include <cmath>

#include "core/base/instantiate.h"
#include "core/base/log.h"
#include "core/cuda/launch.h"
#include "core/cuda/math.h"
#include "core/kernels/cuda/sinkhorn.h"

namespace elastor::cuda {
namespace {

constexpr int kSinkhornThreads = 256;

// Returns as many threads as a matrix of `size` columns keeps busy.
int SinkhornThreadsOf(int64_t size) {
  if (size >= kSinkhornThreads) return kSinkhornThreads;
  return static_cast<int>((size + kWarp - 1) / kWarp * kWarp);
}

// Of A + A' in S; doubles are for the host.
float SinkhornScale(const SinkhornShape& shape) { return static_cast<float>(0.5 / shape.tau); }

__device__ inline float SinkhornLogit(const SinkhornLogits& logits, int64_t element) {
  if (logits.rank == 0) return logits.left[element];
  const float* const left = logits.left + element / logits.columns * logits.rank;
  const float* const right = logits.right + element % logits.columns;
  float sum = 0;
  for (int64_t t = 0; t < logits.rank; ++t) {
    sum = std::fma(left[t], right[t * logits.columns], sum);
  }
  return sum;
}

template <typename A>
struct SinkhornMatricesArguments {
  SinkhornShape shape;
  SinkhornLogits logits;
  SinkhornState state;
  float scale;
  A* factors;
};

// A block: a matrix. A thread: columns, a row of S being its column.
template <typename A>
__global__ void __launch_bounds__(kSinkhornThreads)
    SinkhornMatricesKernel(const SinkhornMatricesArguments<A> a) {
  const int64_t size = a.shape.size;
  const int64_t first = blockIdx.x * size * size;
  float* const s = a.state.scores + first;
  float* const vectors = a.state.vectors + blockIdx.x * a.shape.vectors() * size;
  for (int64_t e = threadIdx.x; e < size * size; e += blockDim.x) {
    const int64_t mirrored = e % size * size + e / size;
    s[e] =
        (SinkhornLogit(a.logits, first + e) + SinkhornLogit(a.logits, first + mirrored)) * a.scale;
  }
  for (int64_t i = threadIdx.x; i < size; i += blockDim.x) vectors[i] = 0;
  __syncthreads();
  for (int64_t t = 1; t < a.shape.vectors(); ++t) {
    const float* const b = vectors + (t - 1) * size;
    for (int64_t i = threadIdx.x; i < size; i += blockDim.x) {
      float most = s[i] - b[0];
      for (int64_t j = 1; j < size; ++j) most = AtLeast(most, s[j * size + i] - b[j]);
      float sum = 0;
      for (int64_t j = 0; j < size; ++j) sum += Exp((s[j * size + i] - b[j]) - most);
      vectors[t * size + i] = most + Log(sum);
    }
    __syncthreads();
  }
  const float* const last = vectors + (a.shape.vectors() - 1) * size;
  const float* const of_rows = a.shape.transposed ? last : last - size;
  const float* const of_columns = a.shape.transposed ? last - size : last;
  for (int64_t e = threadIdx.x; e < size * size; e += blockDim.x) {
    const float w = Exp((s[e] - of_rows[e / size]) - of_columns[e % size]);
    a.state.matrices[first + e] = w;
    if (a.factors != nullptr) a.factors[first + e] = static_cast<A>(w);
  }
}

struct SinkhornGradientArguments {
  SinkhornShape shape;
  SinkhornState state;
  float scale;
  int64_t leaves;
  SinkhornLeaves dmatrices;
  float* vectors;
  SinkhornLeaves dlogits;
};

// A block: a matrix of a leaf. A thread: columns.
__global__ void __launch_bounds__(kSinkhornThreads)
    SinkhornGradientKernel(const SinkhornGradientArguments a) {
  const int64_t size = a.shape.size;
  const int64_t matrix = blockIdx.x / a.leaves;
  const int64_t leaf = blockIdx.x % a.leaves;
  const float* const s = a.state.scores + matrix * size * size;
  const float* const w = a.state.matrices + matrix * size * size;
  const float* const vectors = a.state.vectors + matrix * a.shape.vectors() * size;
  const auto of_leaf = [&](const SinkhornLeaves& view) {
    return view.data + matrix * view.map_stride + leaf * view.leaf_stride;
  };
  float* const ds = of_leaf(a.dmatrices);
  float* da = a.vectors + blockIdx.x * 2 * size;
  float* db = da + size;
  for (int64_t e = threadIdx.x; e < size * size; e += blockDim.x) ds[e] *= w[e];
  __syncthreads();
  for (int64_t i = threadIdx.x; i < size; i += blockDim.x) {
    float of_row = 0;
    float of_column = 0;
    for (int64_t j = 0; j < size; ++j) {
      of_row -= ds[i * size + j];
      of_column -= ds[j * size + i];
    }
    da[i] = a.shape.transposed ? of_row : of_column;
    db[i] = a.shape.transposed ? of_column : of_row;
  }
  __syncthreads();
  for (int64_t t = a.shape.vectors() - 1; t > 0; --t) {
    const float* const of_a = vectors + t * size;
    const float* const of_b = of_a - size;
    for (int64_t j = threadIdx.x; j < size; j += blockDim.x) {
      float sum = db[j];
      for (int64_t i = 0; i < size; ++i) {
        const float p = Exp((s[i * size + j] - of_a[i]) - of_b[j]);
        ds[i * size + j] = std::fma(da[i], p, ds[i * size + j]);
        sum = std::fma(-da[i], p, sum);
      }
      db[j] = sum;
    }
    __syncthreads();
    float* const done = da;
    da = db;
    db = done;
    for (int64_t j = threadIdx.x; j < size; j += blockDim.x) db[j] = 0;
  }
  float* const dlogits = of_leaf(a.dlogits);
  for (int64_t e = threadIdx.x; e < size * size; e += blockDim.x) {
    dlogits[e] = (ds[e] + ds[e % size * size + e / size]) * a.scale;
  }
}

struct SinkhornFactorArguments {
  SinkhornLogits logits;
  int64_t items;  // all leaves' elements of both gradients
  const float* dlogits;
  float* dleft;
  int64_t left_stride;
  float* dright;
  int64_t right_stride;
};

// A thread: an element of a leaf's gradients, of the left factor's and then of the right one's.
__global__ void __launch_bounds__(kSinkhornThreads)
    SinkhornFactorKernel(const SinkhornFactorArguments a) {
  const auto [left, right, rows, rank, columns] = a.logits;
  const int64_t item = static_cast<int64_t>(blockIdx.x) * kSinkhornThreads + threadIdx.x;
  if (item >= a.items) return;
  const int64_t leaf = item / (rank * (rows + columns));
  const int64_t element = item % (rank * (rows + columns));
  const float* const d = a.dlogits + leaf * rows * columns;
  float sum = 0;
  if (element < rows * rank) {
    const float* const d_row = d + element / rank * columns;
    const float* const r = right + element % rank * columns;
    for (int64_t j = 0; j < columns; ++j) sum = std::fma(d_row[j], r[j], sum);
    a.dleft[leaf * a.left_stride + element] = sum;
    return;
  }
  const int64_t of_right = element - rows * rank;
  const int64_t t = of_right / columns;
  const int64_t j = of_right % columns;
  for (int64_t i = 0; i < rows; ++i) {
    sum = std::fma(left[i * rank + t], d[i * columns + j], sum);
  }
  a.dright[leaf * a.right_stride + of_right] = sum;
}

}  // namespace

template <typename A>
void SinkhornMatrices(Stream& stream, const SinkhornShape& shape, const SinkhornLogits& logits,
                      const SinkhornState& state, A* factors) {
  Launch(stream, static_cast<unsigned>(shape.count), SinkhornThreadsOf(shape.size),
         SinkhornMatricesKernel<A>,
         SinkhornMatricesArguments<A>{shape, logits, state, SinkhornScale(shape), factors});
}

void SinkhornGradients(Stream& stream, const SinkhornShape& shape, const SinkhornState& state,
                       int64_t leaves, const SinkhornLeaves& dmatrices, float* vectors,
                       const SinkhornLeaves& dlogits) {
  if (leaves == 0) return;
  CHECK_LT(shape.count * leaves, int64_t{1} << 31);
  Launch(stream, static_cast<unsigned>(shape.count * leaves), SinkhornThreadsOf(shape.size),
         SinkhornGradientKernel,
         SinkhornGradientArguments{shape, state, SinkhornScale(shape), leaves, dmatrices, vectors,
                                   dlogits});
}

void SinkhornFactorGradients(Stream& stream, const SinkhornLogits& logits, int64_t leaves,
                             const float* dlogits, float* dleft, int64_t left_stride, float* dright,
                             int64_t right_stride) {
  const int64_t items = leaves * logits.rank * (logits.rows + logits.columns);
  if (items == 0) return;
  Launch(stream, Blocks(items, kSinkhornThreads), kSinkhornThreads, SinkhornFactorKernel,
         SinkhornFactorArguments{logits, items, dlogits, dleft, left_stride, dright, right_stride});
}

ELASTOR_INSTANTIATE(SinkhornMatrices, float, BFloat16)

}  // namespace elastor::cuda
