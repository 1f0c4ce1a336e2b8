#include "core/base/instantiate.h"
#include "core/cuda/launch.h"
#include "core/kernels/cuda/activations.h"
#include "core/kernels/cuda/elementwise.h"
#include "core/kernels/cuda/fast_divisor.h"
#include "core/kernels/cuda/values.h"

namespace elastor::cuda {
namespace {

constexpr int kCopyThreads = 256;
// Elements of a block, at least one row.
constexpr int64_t kBlockElements = 2048;
// Shared memory that every launch may have.
constexpr int64_t kMostSharedBytes = 48 * 1024;

// Rows of [outer, inner, run] elements that become [inner, outer, run].
struct RowTranspose {
  FastDivisor by_run;
  FastDivisor by_outer;
  FastDivisor by_elements;  // of a row
  uint32_t inner;

  RowTranspose(int64_t outer, int64_t inner, int64_t run)
      : by_run(run),
        by_outer(outer),
        by_elements(outer * inner * run),
        inner(static_cast<uint32_t>(inner)) {}

  // Where element `to` of a row of the result comes from.
  ELASTOR_HOST_DEVICE uint32_t Source(uint32_t to) const {
    const uint32_t to_run = by_run.Divide(to);  // inner index * outer + outer index
    const uint32_t i = by_outer.Divide(to_run);
    const uint32_t o = to_run - i * by_outer.divisor();
    return (o * inner + i) * by_run.divisor() + (to - to_run * by_run.divisor());
  }
};

// A block's rows of x and y.
template <typename E>
struct BlockRows {
  const E* x;
  E* y;
  int64_t x_stride;
  int64_t y_stride;
  uint32_t items;  // elements of all rows of the block

  __device__ BlockRows(int64_t rows, int64_t block_rows, uint32_t elements, const E* x,
                       int64_t x_stride, E* y, int64_t y_stride)
      : x_stride(x_stride), y_stride(y_stride) {
    const int64_t begin = blockIdx.x * block_rows;
    const int64_t count = rows - begin < block_rows ? rows - begin : block_rows;
    this->x = x + begin * x_stride;
    this->y = y + begin * y_stride;
    items = static_cast<uint32_t>(count) * elements;
  }
};

// Elements are read where they lie.
template <typename E>
__global__ void __launch_bounds__(kCopyThreads)
    GatherKernel(const RowTranspose transpose, int64_t rows, int64_t block_rows, const E* x,
                 int64_t x_stride, E* y, int64_t y_stride) {
  const uint32_t elements = transpose.by_elements.divisor();
  const BlockRows<E> block(rows, block_rows, elements, x, x_stride, y, y_stride);
  for (uint32_t item = threadIdx.x; item < block.items; item += kCopyThreads) {
    const uint32_t row = transpose.by_elements.Divide(item);
    const uint32_t to = item - row * elements;
    block.y[row * y_stride + to] = block.x[row * x_stride + transpose.Source(to)];
  }
}

// One word in 32 is left out, so that columns of 32 or more words lie in different banks.
ELASTOR_HOST_DEVICE inline uint32_t Padded(uint32_t index) { return index + (index >> 5); }

// A block's rows go through shared memory (Padded(elements of the rows) floats), so that reads and
// writes are in the order of memory.
template <typename A>
__global__ void __launch_bounds__(kCopyThreads)
    StagedKernel(const RowTranspose transpose, int64_t rows, int64_t block_rows, const A* x,
                 int64_t x_stride, A* y, int64_t y_stride) {
  float* const staged = SharedMemory<float>();
  const uint32_t elements = transpose.by_elements.divisor();
  const BlockRows<A> block(rows, block_rows, elements, x, x_stride, y, y_stride);
  for (uint32_t item = threadIdx.x; item < block.items; item += kCopyThreads) {
    const uint32_t row = transpose.by_elements.Divide(item);
    const uint32_t from = item - row * elements;
    staged[Padded(item)] = static_cast<float>(block.x[row * x_stride + from]);
  }
  __syncthreads();
  for (uint32_t item = threadIdx.x; item < block.items; item += kCopyThreads) {
    const uint32_t row = transpose.by_elements.Divide(item);
    const uint32_t to = item - row * elements;
    block.y[row * y_stride + to] =
        static_cast<A>(staged[Padded(row * elements + transpose.Source(to))]);
  }
}

// True when the rows of a view, and runs within them, are packs of `count` elements.
template <typename A>
bool HasPacks(const Activations<A>& view, int64_t run, int64_t count) {
  return run % count == 0 && reinterpret_cast<uintptr_t>(view.data) % (count * sizeof(A)) == 0 &&
         (view.rows == 1 || view.row_stride % count == 0);
}

template <typename A>
void TransposeRows(Stream& stream, int64_t outer, int64_t inner, int64_t run,
                   Activations<const A> x, Activations<A> y) {
  const int64_t elements = outer * inner * run;
  CHECK(x.tokens == 1 && y.tokens == 1 && x.rows == y.rows);
  CHECK(x.features == elements && y.features == elements);
  if (x.rows == 0 || elements == 0) return;
  const int64_t block_rows = elements < kBlockElements ? kBlockElements / elements : 1;
  const unsigned blocks = Blocks(x.rows, block_rows);
  constexpr int kPack = 16 / sizeof(A);
  const int64_t shared_bytes =
      (block_rows * elements * 33 / 32 + 1) * static_cast<int64_t>(sizeof(float));
  if (HasPacks(x, run, kPack) && HasPacks(y, run, kPack)) {
    using P = Pack<A, kPack>;
    Launch(stream, blocks, kCopyThreads, GatherKernel<P>, RowTranspose(outer, inner, run / kPack),
           x.rows, block_rows, reinterpret_cast<const P*>(x.data), x.row_stride / kPack,
           reinterpret_cast<P*>(y.data), y.row_stride / kPack);
  } else if (shared_bytes <= kMostSharedBytes) {
    LaunchWithSharedMemory(stream, blocks, kCopyThreads, shared_bytes, StagedKernel<A>,
                           RowTranspose(outer, inner, run), x.rows, block_rows, x.data,
                           x.row_stride, y.data, y.row_stride);
  } else {
    Launch(stream, blocks, kCopyThreads, GatherKernel<A>, RowTranspose(outer, inner, run), x.rows,
           block_rows, x.data, x.row_stride, y.data, y.row_stride);
  }
}

}  // namespace

template <typename A>
void BlockTranspose(Stream& stream, int64_t tokens, int64_t width, Activations<const A> x,
                    Activations<A> y) {
  CHECK_EQ(width % tokens, 0);
  TransposeRows<A>(stream, tokens, tokens, width / tokens, x, y);
}

template <typename A>
void TransposeFeatures(Stream& stream, int64_t a, int64_t b, Activations<const A> x,
                       Activations<A> y) {
  TransposeRows<A>(stream, a, b, 1, x, y);
}

ELASTOR_INSTANTIATE(BlockTranspose, float, BFloat16)
ELASTOR_INSTANTIATE(TransposeFeatures, float, BFloat16)

}  // namespace elastor::cuda
