#include "core/base/instantiate.h"
#include "core/kernels/cuda/column_sums.h"
#include "core/kernels/cuda/element_loop.h"

namespace elastor::cuda {
namespace {

// The values of numeric fields by device row.
struct NumericFields {
  const float* values;       // [local rows][count]
  const int32_t* local_row;  // by device row, negative in padding
  int64_t count;
  FastDivisor by_width;

  __device__ int64_t FieldOf(int64_t feature) const {
    return by_width.Divide(static_cast<uint32_t>(feature));
  }
  // 0 in padding, NaN where missing.
  __device__ float ValueAt(int64_t device_row, int64_t field) const {
    const int64_t row = local_row[device_row];
    return row < 0 ? 0.0f : values[row * count + field];
  }
};

template <typename A>
struct NumericEmbeddingOp {
  NumericFields fields;
  const float* vectors;
  const float* missing;
  Activations<A> y;

  template <int kCount>
  using Inputs = float;
  template <int kCount>
  __device__ float Load(const Index& index) const {
    return fields.ValueAt(index.row, fields.FieldOf(index.feature));
  }
  template <int kCount>
  __device__ void Store(const Index& index, float value) const {
    Values<kCount> out;
    for (int i = 0; i < kCount; ++i) {
      const int64_t f = index.feature + i;
      out.v[i] = value != value ? missing[f] : value * vectors[f];
    }
    StoreValues<kCount>(At(y, index), out);
  }
};

// Rows that a thread has under way.
constexpr int kRowBatch = 8;

// An item is a chunk of rows (as row) and kCount features of one field.
template <typename A>
struct ChunkGradientOp {
  NumericFields fields;
  int64_t leaf_rows;
  FastDivisor by_chunks;  // of a leaf
  Activations<const A> dy;
  Activations<float> dvectors;
  Activations<float> dmissing;

  template <int kCount>
  struct Inputs {
    Values<kCount> dvectors;
    Values<kCount> dmissing;
  };
  template <int kCount>
  __device__ Inputs<kCount> Load(const Index& index) const {
    const uint32_t leaf = by_chunks.Divide(static_cast<uint32_t>(index.row));
    const int64_t begin = (index.row - leaf * by_chunks.divisor()) * kSumRows;
    const int64_t rows = leaf_rows - begin < kSumRows ? leaf_rows - begin : kSumRows;
    const int64_t first = leaf * leaf_rows + begin;
    const int64_t field = fields.FieldOf(index.feature);
    Inputs<kCount> sums = {};
    for (int64_t row = 0; row < rows; row += kRowBatch) {
      float values[kRowBatch];
      Values<kCount> d[kRowBatch];
#pragma unroll
      for (int i = 0; i < kRowBatch; ++i) {
        values[i] = 0;
        d[i] = {};  // +0 leaves a sum that began at +0 as it is
        if (row + i >= rows) continue;
        values[i] = fields.ValueAt(first + row + i, field);
        d[i] = LoadValues<kCount>(At(dy, {first + row + i, 0, index.feature}));
      }
#pragma unroll
      for (int i = 0; i < kRowBatch; ++i) {
        const bool is_missing = values[i] != values[i];
        for (int j = 0; j < kCount; ++j) {
          sums.dvectors.v[j] = fmaf(d[i].v[j], is_missing ? 0.0f : values[i], sums.dvectors.v[j]);
          sums.dmissing.v[j] = fmaf(d[i].v[j], is_missing ? 1.0f : 0.0f, sums.dmissing.v[j]);
        }
      }
    }
    return sums;
  }
  template <int kCount>
  __device__ void Store(const Index& index, const Inputs<kCount>& sums) const {
    StoreValues<kCount>(At(dvectors, index), sums.dvectors);
    StoreValues<kCount>(At(dmissing, index), sums.dmissing);
  }
};

template <typename A>
struct PatchesOp {
  NumericFields pixels;
  ImageShape image;
  Activations<A> y;

  template <int kCount>
  using Inputs = float;
  template <int kCount>
  __device__ float Load(const Index& index) const {
    return pixels.ValueAt(index.row, image.PixelAt(index.feature));
  }
  template <int kCount>
  __device__ void Store(const Index& index, float value) const {
    StoreValues<1>(At(y, index), Values<1>{{value != value ? 0.0f : value}});
  }
};

}  // namespace

template <typename A>
void Patches(Stream& stream, const float* pixels, const int32_t* local_row, const ImageShape& image,
             Activations<A> y) {
  CHECK(y.tokens == 1 && y.features == image.pixels());
  if (y.rows == 0) return;
  const PatchesOp<A> op{{pixels, local_row, image.pixels(), FastDivisor(1)}, image, y};
  ForEachElement<1>(stream, Merge::kNone, ShapeOf(y).With(y), op);
}

template <typename A>
void NumericEmbedding(Stream& stream, const float* values, const int32_t* local_row, int64_t count,
                      int64_t width, const float* vectors, const float* missing, Activations<A> y) {
  CHECK_EQ(y.tokens, 1);
  if (count == 0 || y.rows == 0) return;
  const NumericEmbeddingOp<A> op{
      {values, local_row, count, FastDivisor(width)}, vectors, missing, y.Slice(0, count * width)};
  const LoopShape shape = ShapeOf(op.y).With(op.y);
  constexpr int kLargest = kLargestPack<A>;
  // A pack lies within one field.
  if (width % kLargest == 0) {
    ForEachElement<kLargest>(stream, Merge::kNone, shape, op);
  } else if (width % 2 == 0) {
    ForEachElement<2>(stream, Merge::kNone, shape, op);
  } else {
    ForEachElement<1>(stream, Merge::kNone, shape, op);
  }
}

template <typename A>
void NumericEmbeddingBackward(Stream& stream, const float* values, const int32_t* local_row,
                              int64_t count, int64_t width, const LeafShape& shape,
                              Activations<const A> dy, float* dvectors, float* dmissing,
                              int64_t leaf_stride, float* scratch) {
  CHECK(dy.tokens == 1 && dy.rows == shape.rows());
  if (count == 0 || shape.leaves == 0) return;
  const int64_t features = count * width;
  dy = dy.Slice(0, features);
  const int64_t chunks = SumChunks(shape);
  const auto partial =
      Activations<float>::RowMajor(scratch, shape.leaves * chunks, 1, 2 * features);
  if (chunks > 0) {
    const ChunkGradientOp<A> op{{values, local_row, count, FastDivisor(width)},
                                shape.leaf_rows,
                                FastDivisor(chunks),
                                dy,
                                partial.Slice(0, features),
                                partial.Slice(features, features)};
    const LoopShape loop = LoopShape(partial.rows, 1, features)
                               .With(dy.data, sizeof(A), dy.row_stride, 0)
                               .With(op.dvectors)
                               .With(op.dmissing);
    // A pack lies within one field; dy's rows are read one by one.
    if (width % 2 == 0 && dy.row_stride % 2 == 0 && loop.HasPacks(2)) {
      LaunchElementKernel<2, 1>(stream, loop.Loop(2), op);
    } else {
      LaunchElementKernel<1, 1>(stream, loop.Loop(1), op);
    }
  }
  const PartialSums sums{scratch, 2 * features, shape.leaves, chunks, 1, features};
  AddPartialSums(stream, sums, dvectors, 0, leaf_stride);
  PartialSums missing_sums = sums;
  missing_sums.partial += features;
  AddPartialSums(stream, missing_sums, dmissing, 0, leaf_stride);
}

ELASTOR_INSTANTIATE(NumericEmbedding, float, BFloat16)
ELASTOR_INSTANTIATE(NumericEmbeddingBackward, float, BFloat16)
ELASTOR_INSTANTIATE(Patches, float, BFloat16)

}  // namespace elastor::cuda
