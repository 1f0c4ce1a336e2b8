#ifndef ELASTOR_EMBEDDING_CUDA_GRADIENT_KERNELS_H_
#define ELASTOR_EMBEDDING_CUDA_GRADIENT_KERNELS_H_

#include <cstdint>

#include "core/cuda/exact_sum.h"
#include "core/cuda/runtime.h"
#include "embedding/cuda/home_kernels.h"
#include "embedding/cuda/key_format.h"
#include "embedding/cuda/owner_kernels.h"
#include "embedding/cuda/table_view.h"
#include "embedding/cuda/vector_shape.h"

namespace elastor::cuda {

// Gradients of rows in the canonical order of additions (embedding/sharded_embedding.h).

// Gradients of the pooled activations: those of local row r in place row_place[r] of de. Never
// written; read in place for ids that occur once.
template <typename A>
struct BagGradients {
  const A* de = nullptr;
  int64_t row_stride = 0;
  const int32_t* row_place = nullptr;
  const Source* sources = nullptr;  // by sorted occurrence
  const float* scales = nullptr;    // of means; null: all are 1
  bool aligned = false;             // de and row_stride: loads of four elements
};

// The sums, by owned key: one rank finds them by HomeView::direct (vectors `stride` apart), several
// at the first node of the key (OwnerView).
struct GradientArray {
  float* vectors = nullptr;
  const int64_t* direct = nullptr;  // null: several ranks
  int64_t stride = 0;
  const uint32_t* node_begin = nullptr;
  const int64_t* node_gradients = nullptr;
};

// Sums of a batch's long vectors by chunk, then by leaf, to partial[chunk][stride].
template <typename A>
void SumChunks(Stream& stream, const BagGradients<A>& bags, const Chunk* chunks, int64_t count,
               const VectorShape& shape, float* partial, int64_t stride);
// Listed vectors along the leaf tree: to vectors + offsets[i], or, without offsets, i * stride.
template <typename A>
void SumVectors(Stream& stream, const BagGradients<A>& bags, const HomeView& home,
                const VectorShape& shape, int64_t count, const float* partial, int64_t stride,
                const int64_t* offsets, float* vectors);
// Several ranks: the nodes of each owned key along the leaf tree, to where the first one lies.
void FoldNodes(Stream& stream, const OwnedKeys& owned, const TableView* tables,
               const OwnerView& owner, const VectorShape& shape, float* vectors);

// How rows are counted once over all ranks.
struct Accounting {
  int rank = 0;
  int ranks = 1;
};

// Sums of g^2, g = gradient + l2 * w, and with l2 > 0 of w^2. row_squares[j]: the row's sum of g^2;
// may be null.
struct SquaredSums {
  DeviceExactSum* gradients = nullptr;
  DeviceExactSum* weights = nullptr;
  double* row_squares = nullptr;
};
template <typename A>
void AddSquares(Stream& stream, const OwnedKeys& owned, const TableView* tables,
                const BagGradients<A>& bags, const GradientArray& array, float* const* rows,
                float l2, const VectorShape& shape, const Accounting& accounting,
                const SquaredSums& sums);
// The same over the rows of a table that are present and not marked: g = l2 * w.
void AddUntouchedSquares(Stream& stream, const TableView& table, const uint32_t* marks, float l2,
                         const VectorShape& shape, const Accounting& accounting,
                         const SquaredSums& sums);

}  // namespace elastor::cuda

#endif  // ELASTOR_EMBEDDING_CUDA_GRADIENT_KERNELS_H_
