#include "core/base/instantiate.h"
#include "core/kernels/cuda/column_sums.h"
#include "core/kernels/cuda/element_loop.h"

namespace elastor::cuda {
namespace {

// Rows that a thread has under way.
constexpr int kBatch = 8;

// An item is a chunk (as row), a token and kCount features.
template <typename A>
struct ChunkSumOp {
  Activations<const A> x;
  int64_t leaf_rows;
  FastDivisor by_chunks;  // of a leaf
  Activations<float> partial;

  template <int kCount>
  using Inputs = Values<kCount>;
  template <int kCount>
  __device__ Values<kCount> Load(const Index& index) const {
    const uint32_t leaf = by_chunks.Divide(static_cast<uint32_t>(index.row));
    const int64_t begin = (index.row - leaf * by_chunks.divisor()) * kSumRows;
    const int64_t rows = leaf_rows - begin < kSumRows ? leaf_rows - begin : kSumRows;
    const A* const first = At(x, {leaf * leaf_rows + begin, index.token, index.feature});
    Values<kCount> sum = {};
    for (int64_t row = 0; row < rows; row += kBatch) {
      Values<kCount> terms[kBatch];
#pragma unroll
      for (int i = 0; i < kBatch; ++i) {
        terms[i] = {};  // +0 leaves a sum that began at +0 as it is
        if (row + i < rows) terms[i] = LoadValues<kCount>(first + (row + i) * x.row_stride);
      }
#pragma unroll
      for (int i = 0; i < kBatch; ++i) {
        for (int j = 0; j < kCount; ++j) sum.v[j] += terms[i].v[j];
      }
    }
    return sum;
  }
  template <int kCount>
  __device__ void Store(const Index& index, const Values<kCount>& sum) const {
    StoreValues<kCount>(At(partial, index), sum);
  }
};

// An item is a leaf (as row), a token and a feature.
struct AddPartialSumsOp {
  PartialSums partial;
  Activations<float> sums;

  template <int kCount>
  using Inputs = float;
  template <int kCount>
  __device__ float Load(const Index& index) const {
    const float* const first = partial.partial + index.row * partial.chunks * partial.stride +
                               index.token * partial.features + index.feature;
    float sum = 0;
    for (int64_t chunk = 0; chunk < partial.chunks; chunk += kBatch) {
      float terms[kBatch];
#pragma unroll
      for (int i = 0; i < kBatch; ++i) {
        terms[i] = chunk + i < partial.chunks ? first[(chunk + i) * partial.stride] : 0.0f;
      }
#pragma unroll
      for (int i = 0; i < kBatch; ++i) sum += terms[i];
    }
    return sum;
  }
  template <int kCount>
  __device__ void Store(const Index& index, float sum) const {
    *At(sums, index) = sum;
  }
};

}  // namespace

void AddPartialSums(Stream& stream, const PartialSums& partial, float* sums, int64_t map_stride,
                    int64_t leaf_stride) {
  const Activations<float> view{sums,        partial.leaves, partial.tokens, partial.features,
                                leaf_stride, map_stride};
  const LoopShape shape = ShapeOf(view).With(view);
  if (shape.empty()) return;
  LaunchElementKernel<1, 1>(stream, shape.Loop(1), AddPartialSumsOp{partial, view});
}

template <typename A>
void LeafColumnSums(Stream& stream, const LeafShape& shape, Activations<const A> x, float* sums,
                    int64_t map_stride, int64_t leaf_stride, float* scratch) {
  CHECK_EQ(x.rows, shape.rows());
  const int64_t chunks = SumChunks(shape);
  const auto partial =
      Activations<float>::RowMajor(scratch, shape.leaves * chunks, x.tokens, x.features);
  LoopShape loop = ShapeOf(partial);
  loop.With(x.data, sizeof(A), x.row_stride, x.token_stride);
  // All rows allow the packs that the first two allow.
  if (x.rows > 1) loop.With(x.data + x.row_stride, sizeof(A), x.row_stride, x.token_stride);
  loop.With(partial);
  if (!loop.empty()) {
    loop.MergeDimensions(Merge::kTokens);
    const ChunkSumOp<A> op{x, shape.leaf_rows, FastDivisor(chunks), partial};
    if (loop.HasPacks(2)) {
      LaunchElementKernel<2, 1>(stream, loop.Loop(2), op);
    } else {
      LaunchElementKernel<1, 1>(stream, loop.Loop(1), op);
    }
  }
  AddPartialSums(stream,
                 {scratch, x.tokens * x.features, shape.leaves, chunks, x.tokens, x.features}, sums,
                 map_stride, leaf_stride);
}

ELASTOR_INSTANTIATE(LeafColumnSums, float, BFloat16)

}  // namespace elastor::cuda
