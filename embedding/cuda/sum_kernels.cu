#include "core/base/instantiate.h"
#include "core/base/leaf_stack.h"
#include "core/cuda/bfloat16.h"
#include "core/cuda/launch.h"
#include "embedding/cuda/columns.h"
#include "embedding/cuda/gradient_kernels.h"
#include "embedding/cuda/gradient_source.h"

namespace elastor::cuda {
namespace {

constexpr int kAhead = 4;  // loads in flight

template <int kColumns>
__device__ void Clear(float (&x)[kColumns]) {
#pragma unroll
  for (int c = 0; c < kColumns; ++c) x[c] = 0;
}

template <int kColumns>
__device__ void Assign(const float (&from)[kColumns], float (&to)[kColumns]) {
#pragma unroll
  for (int c = 0; c < kColumns; ++c) to[c] = from[c];
}

// Sums a few columns of vectors, which arrive in ascending order of their leaves, along the leaf
// tree.
template <int kColumns>
class LeafSum {
 public:
  __device__ void Add(int leaf, const float (&value)[kColumns]) {
    while (stack_.MergesBefore(leaf)) AddLast();
    Assign(value, sums_[stack_.Push(leaf)]);
  }
  __device__ void Finish(float (&sum)[kColumns]) {
    while (stack_.MergesAtEnd()) AddLast();
    Assign(sums_[0], sum);
  }

 private:
  __device__ void AddLast() { AddColumns(sums_[stack_.size()], sums_[stack_.size() - 1]); }

  LeafStack<int> stack_;
  float sums_[LeafStack<int>::kMaxDepth][kColumns];
};

// A few columns of a short segment: occurrences one after another, within a leaf in chunks.
template <int kColumns>
class OccurrenceSum {
 public:
  __device__ void Add(int leaf, const float (&value)[kColumns]) {
    if (leaf != leaf_) {
      CloseLeaf();
      leaf_ = leaf;
    } else if (count_ == kChunk) {
      CloseChunk();
    }
    if (count_ == 0) Clear(chunk_);
    AddColumns(value, chunk_);
    ++count_;
  }
  __device__ void Finish(float (&sum)[kColumns]) {
    CloseLeaf();
    leaves_.Finish(sum);
  }

 private:
  __device__ void CloseChunk() {
    if (full_chunks_++ == 0) {
      Assign(chunk_, total_);
    } else {
      AddColumns(chunk_, total_);
    }
    count_ = 0;
  }
  __device__ void CloseLeaf() {
    if (leaf_ < 0) return;
    CloseChunk();
    leaves_.Add(leaf_, total_);
    full_chunks_ = 0;
  }

  int leaf_ = -1;
  int count_ = 0;
  int full_chunks_ = 0;
  float chunk_[kColumns];
  float total_[kColumns];
  LeafSum<kColumns> leaves_;
};

// Each group of lanes adds the occurrences of one chunk in order, from +0, and writes the sum to
// `partial`.
template <typename A, int kColumns>
__global__ void __launch_bounds__(kGroupThreads)
    SumChunksKernel(BagGradients<A> bags, const SegmentChunk* chunks, int64_t count,
                    LaneGroups groups, float* partial, int64_t stride) {
  const int64_t index = groups.index();
  if (index >= count) return;
  const SegmentChunk chunk = chunks[index];
  for (int column = groups.lane() * kColumns; column < chunk.width;
       column += groups.lanes() * kColumns) {
    float sum[kColumns];
    Clear(sum);
    int i = 0;
    for (; i + kAhead <= chunk.count; i += kAhead) {
      float values[kAhead][kColumns];
#pragma unroll
      for (int a = 0; a < kAhead; ++a) {
        LoadOccurrence(bags, int64_t{chunk.begin} + i + a, column, values[a]);
      }
#pragma unroll
      for (int a = 0; a < kAhead; ++a) AddColumns(values[a], sum);
    }
    for (; i < chunk.count; ++i) {
      float value[kColumns];
      LoadOccurrence(bags, int64_t{chunk.begin} + i, column, value);
      AddColumns(value, sum);
    }
    StoreColumns(sum, partial + index * stride + column);
  }
}

// Each group of lanes takes one chunk. Where it is the first of an id in a leaf, they add the sums
// of all chunks of that id and leaf in order and write the sum over the first.
template <int kColumns>
__global__ void __launch_bounds__(kGroupThreads)
    SumLeavesKernel(const SegmentChunk* chunks, int64_t count, LaneGroups groups, float* partial,
                    int64_t stride) {
  const int64_t index = groups.index();
  if (index >= count || chunks[index].of_run < 2) return;
  const int of_run = chunks[index].of_run;
  const int width = chunks[index].width;
  for (int column = groups.lane() * kColumns; column < width; column += groups.lanes() * kColumns) {
    float* const first = partial + index * stride + column;
    float sum[kColumns];
    LoadColumns(first, sum);
    int i = 1;
    for (; i + kAhead <= of_run; i += kAhead) {
      float values[kAhead][kColumns];
#pragma unroll
      for (int a = 0; a < kAhead; ++a) LoadColumns(first + (i + a) * stride, values[a]);
#pragma unroll
      for (int a = 0; a < kAhead; ++a) AddColumns(values[a], sum);
    }
    for (; i < of_run; ++i) {
      float value[kColumns];
      LoadColumns(first + i * stride, value);
      AddColumns(value, sum);
    }
    StoreColumns(sum, first);
  }
}

template <typename A, int kColumns>
__device__ void SumShort(const BagGradients<A>& bags, const int32_t* leaves,
                         const GradientSegment& segment, int column, float (&sum)[kColumns]) {
  if (segment.end - segment.begin == 1) {
    float value[kColumns];
    LoadOccurrence(bags, segment.begin, column, value);
    Clear(sum);
    AddColumns(value, sum);
    return;
  }
  OccurrenceSum<kColumns> occurrences;
  for (int64_t i = segment.begin; i < segment.end; i += kAhead) {
    float values[kAhead][kColumns];
    int leaf[kAhead];
#pragma unroll
    for (int a = 0; a < kAhead; ++a) {
      if (i + a < segment.end) {
        leaf[a] = leaves[i + a];
        LoadOccurrence(bags, i + a, column, values[a]);
      }
    }
#pragma unroll
    for (int a = 0; a < kAhead; ++a) {
      if (i + a < segment.end) occurrences.Add(leaf[a], values[a]);
    }
  }
  occurrences.Finish(sum);
}

template <int kColumns>
__device__ void SumLong(const SegmentChunk* chunks, const GradientSegment& segment,
                        const float* partial, int64_t stride, int column, float (&sum)[kColumns]) {
  LeafSum<kColumns> leaves;
  for (int64_t c = segment.chunk_begin; c < segment.chunk_end; c += chunks[c].of_run) {
    float value[kColumns];
    LoadColumns(partial + c * stride + column, value);
    leaves.Add(chunks[c].leaf, value);
  }
  leaves.Finish(sum);
}

// Each group of lanes sums one listed segment.
template <typename A, int kColumns>
__global__ void __launch_bounds__(kGroupThreads)
    SumSegmentsKernel(BagGradients<A> bags, RequesterView requester, int64_t count,
                      LaneGroups groups, const float* partial, int64_t stride,
                      const int64_t* offsets, float* vectors) {
  const int64_t index = groups.index();
  if (index >= count) return;
  const GradientSegment segment = requester.segments[index];
  float* const to = vectors + (offsets == nullptr ? index * stride : offsets[index]);
  for (int column = groups.lane() * kColumns; column < segment.width;
       column += groups.lanes() * kColumns) {
    float sum[kColumns];
    if (segment.chunk_begin == segment.chunk_end) {
      SumShort(bags, requester.leaves, segment, column, sum);
    } else {
      SumLong(requester.chunks, segment, partial, stride, column, sum);
    }
    StoreColumns(sum, to + column);
  }
}

// Each group of lanes takes one owned key. A lane reads all of its columns before it writes them.
template <int kColumns>
__global__ void __launch_bounds__(kGroupThreads)
    FoldNodesKernel(OwnedKeys owned, const TableView* tables, OwnerView owner, LaneGroups groups,
                    float* vectors) {
  const int64_t j = groups.index();
  if (j >= owned.bound || j >= *owned.count) return;
  const int64_t begin = owner.node_begin[j];
  const int64_t end = owner.node_begin[j + 1];
  if (end - begin < 2) return;
  const int width = tables[owned.format.Table(owned.keys[j])].width;
  for (int column = groups.lane() * kColumns; column < width; column += groups.lanes() * kColumns) {
    LeafSum<kColumns> leaves;
    for (int64_t n = begin; n < end; ++n) {
      float value[kColumns];
      LoadColumns(vectors + owner.node_gradients[n] + column, value);
      leaves.Add(owner.node_leaves[n], value);
    }
    float sum[kColumns];
    leaves.Finish(sum);
    StoreColumns(sum, vectors + owner.node_gradients[begin] + column);
  }
}

}  // namespace

template <typename A>
void SumChunks(Stream& stream, const BagGradients<A>& bags, const SegmentChunk* chunks,
               int64_t count, const VectorShape& shape, float* partial, int64_t stride) {
  if (count == 0) return;
  const LaneGroups groups = LaneGroups::For(shape.widest, shape.columns());
  const unsigned blocks = Blocks(count, groups.per_block());
  Launch(stream, blocks, kGroupThreads,
         shape.aligned ? SumChunksKernel<A, kVector> : SumChunksKernel<A, 1>, bags, chunks, count,
         groups, partial, stride);
  Launch(stream, blocks, kGroupThreads,
         shape.aligned ? SumLeavesKernel<kVector> : SumLeavesKernel<1>, chunks, count, groups,
         partial, stride);
}

template <typename A>
void SumSegments(Stream& stream, const BagGradients<A>& bags, const RequesterView& requester,
                 const VectorShape& shape, int64_t count, const float* partial, int64_t stride,
                 const int64_t* offsets, float* vectors) {
  if (count == 0) return;
  const LaneGroups groups = LaneGroups::For(shape.widest, shape.columns());
  Launch(stream, Blocks(count, groups.per_block()), kGroupThreads,
         shape.aligned ? SumSegmentsKernel<A, kVector> : SumSegmentsKernel<A, 1>, bags, requester,
         count, groups, partial, stride, offsets, vectors);
}

void FoldNodes(Stream& stream, const OwnedKeys& owned, const TableView* tables,
               const OwnerView& owner, const VectorShape& shape, float* vectors) {
  if (owned.bound == 0) return;
  const LaneGroups groups = LaneGroups::For(shape.widest, shape.columns());
  Launch(stream, Blocks(owned.bound, groups.per_block()), kGroupThreads,
         shape.aligned ? FoldNodesKernel<kVector> : FoldNodesKernel<1>, owned, tables, owner,
         groups, vectors);
}

ELASTOR_INSTANTIATE(SumChunks, float, BFloat16)
ELASTOR_INSTANTIATE(SumSegments, float, BFloat16)

}  // namespace elastor::cuda
