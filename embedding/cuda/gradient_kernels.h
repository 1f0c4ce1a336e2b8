#ifndef ELASTOR_EMBEDDING_CUDA_GRADIENT_KERNELS_H_
#define ELASTOR_EMBEDDING_CUDA_GRADIENT_KERNELS_H_

#include <cstdint>

#include "core/cuda/exact_sum.h"
#include "core/cuda/runtime.h"
#include "embedding/cuda/key_format.h"
#include "embedding/cuda/owner_kernels.h"
#include "embedding/cuda/requester_kernels.h"
#include "embedding/cuda/table_view.h"
#include "embedding/cuda/vector_shape.h"

namespace elastor::cuda {

// Gradients of rows in the canonical order of additions (embedding/sharded_embedding.h).

// The gradients of the pooled activations of a batch, which kernels only read. A local row r has
// its gradients at de + device_row[r] * row_stride.
template <typename A>
struct BagGradients {
  const A* de = nullptr;
  int64_t row_stride = 0;
  const int32_t* device_row = nullptr;
  const OccurrenceSource* sources = nullptr;  // by sorted occurrence
  const float* scales = nullptr;  // by sorted occurrence, of averaged bags; null: all are 1
  bool aligned = false;           // de and row_stride allow loads of four elements
};

// The place of each owned key's gradient. With one rank, `direct` (RequesterView) gives it: the
// bag's gradient itself, or the listed segment's vector; vectors are `stride` elements apart. With
// several ranks the gradient is the vector of the key's first node (OwnerView), an offset in
// `vectors`.
struct GradientArray {
  float* vectors = nullptr;
  const int64_t* direct = nullptr;  // null: several ranks
  int64_t stride = 0;
  const uint32_t* node_begin = nullptr;
  const int64_t* node_gradients = nullptr;
};

// Sums the `count` chunks of the batch's long segments: partial + c * stride becomes the sum of
// chunk c, and then, where c is the first chunk of an id in a leaf, the sum of all its chunks
// there.
template <typename A>
void SumChunks(Stream& stream, const BagGradients<A>& bags, const SegmentChunk* chunks,
               int64_t count, const VectorShape& shape, float* partial, int64_t stride);
// Sums the occurrences of each of the `count` listed segments, within a leaf in order, over leaves
// along the leaf tree; partial: the sums that SumChunks made of long segments. The sum of segment i
// is written to vectors + offsets[i], or to vectors + i * stride when offsets is null.
template <typename A>
void SumSegments(Stream& stream, const BagGradients<A>& bags, const RequesterView& requester,
                 const VectorShape& shape, int64_t count, const float* partial, int64_t stride,
                 const int64_t* offsets, float* vectors);
// With several ranks: adds the vectors of each owned key's nodes along the leaf tree. The sum
// replaces the vector of the first node.
void FoldNodes(Stream& stream, const OwnedKeys& owned, const TableView* tables,
               const OwnerView& owner, const VectorShape& shape, float* vectors);

// This rank's number in the job. It decides which rows' primary replicas are here
// (TableView::HasPrimary); only those count in sums over all ranks.
struct RankInJob {
  int rank = 0;
  int ranks = 1;
};

// The sums that AddSquares adds to: the squares of g = gradient + l2 * w go to `gradients` and,
// with l2 > 0, the squares of w to `weights`. row_squares[j] becomes the sum of g^2 over the row of
// owned key j.
struct SquaredSums {
  DeviceExactSum* gradients = nullptr;
  DeviceExactSum* weights = nullptr;
  double* row_squares = nullptr;  // may be null
};
template <typename A>
void AddSquares(Stream& stream, const OwnedKeys& owned, const TableView* tables,
                const BagGradients<A>& bags, const GradientArray& array, float* const* rows,
                float l2, const VectorShape& shape, const RankInJob& job, const SquaredSums& sums);
// Adds the squares of the rows of a table that are present and not marked; their g is l2 * w.
void AddUntouchedSquares(Stream& stream, const TableView& table, const uint32_t* marks, float l2,
                         const VectorShape& shape, const RankInJob& job, const SquaredSums& sums);

}  // namespace elastor::cuda

#endif  // ELASTOR_EMBEDDING_CUDA_GRADIENT_KERNELS_H_
