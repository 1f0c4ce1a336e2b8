#ifndef ELASTOR_EMBEDDING_CUDA_OWNER_KERNELS_H_
#define ELASTOR_EMBEDDING_CUDA_OWNER_KERNELS_H_

#include <cstdint>

#include "core/cuda/runtime.h"
#include "embedding/cuda/home_kernels.h"
#include "embedding/cuda/key_format.h"
#include "embedding/cuda/table_view.h"
#include "embedding/cuda/vector_shape.h"

namespace elastor::cuda {

// Several ranks: lists of keys between homes and owners, and the place of every vector, as in
// IdRoute (embedding/id_route.h). A list from one home to one owner is its unique ids table after
// table, ascending: contiguous unique ids, those of a replicated table on every list. Segments are
// (rank, table), k = rank * tables + table: of homes where this rank owns, of owners where it is
// home.

// Device memory, filled by the host; elements of the vector arrays.
struct SegmentsView {
  int64_t ranks = 0;
  int64_t tables = 0;
  int rank = 0;
  // As home, by owner's segment.
  const int64_t* sent_begin;    // items of messages to others, and the end
  const int64_t* sent_unique;   // first unique id of the list
  const int64_t* unique_begin;  // unique ids with this owner, and the end
  const int64_t* vector_begin;  // their vectors, and the end
  const int64_t* gradient_at;   // where those go
  const int64_t* row_at;        // where their rows arrive
  // As owner, by home's segment.
  const int64_t* item_begin;        // items of all lists, and the end
  const int64_t* item_vector;       // vectors before them
  const int64_t* item_gradient_at;  // where those arrive
  const int64_t* item_row_at;       // where their rows go; -1: the home has them itself
  const int64_t* word_at;           // by home: its message
  const int64_t* words_per_item;    // by home: 1, or 2 with a mask of nodes
  const int64_t* node_leaves;       // [home][64]: first leaves of its nodes

  ELASTOR_HOST_DEVICE int64_t segments() const { return ranks * tables; }
};

// What a rank finds out as owner. Items i in the order of homes, tables, keys.
struct OwnerView {
  uint64_t* item_masks;     // i: nodes of the home
  int32_t* item_vectors;    // i: vectors up to here
  uint32_t* item_owned;     // i: the owned key
  uint64_t* sorted_keys;    // p: items sorted by key, homes ascending
  uint32_t* sorted;         // p: the item
  int32_t* owned_number;    // p: 1 + j
  int32_t* node_number;     // p: nodes up to here
  uint64_t* owned_keys;     // j
  uint32_t* node_begin;     // j, and the end
  int32_t* node_leaves;     // nodes, by owned key, leaves ascending
  int64_t* node_gradients;  // where the node's vector lies
  int64_t* owned_count;
};

// words[i * words_per_item]: key and mask of sent item i.
void PackMessages(Stream& stream, const SegmentsView& segments, const HomeView& home,
                  const KeyFormat& format, int64_t items, int words_per_item, int64_t* words);
// offsets[v]: where vector v of this rank's batch goes.
void PlaceVectors(Stream& stream, const SegmentsView& segments, const HomeView& home,
                  const KeyFormat& format, const TableView* tables, int64_t uniques,
                  int64_t* offsets);
// keys[i] and values[i] = i of all items; masks; numbers of their vectors, to be summed.
void ReadItems(Stream& stream, const SegmentsView& segments, const HomeView& home,
               const KeyFormat& format, const int64_t* words, int64_t items, const OwnerView& owner,
               uint64_t* keys, uint32_t* values);
// After sorting: flags of heads and numbers of nodes, to be summed; then keys and nodes.
void MarkOwned(Stream& stream, int64_t items, const OwnerView& owner);
void PlaceOwned(Stream& stream, const SegmentsView& segments, const TableView* tables,
                int64_t items, const OwnerView& owner);

// Copies rows of items that other homes wait for to where they are sent.
void CopyRowsToSend(Stream& stream, const SegmentsView& segments, const TableView* tables,
                    int64_t items, const VectorShape& shape, const OwnerView& owner,
                    float* const* owned_rows, float* sent);
// rows_of_ids[u]: own rows in place, others where they arrive.
void PointAtRows(Stream& stream, const SegmentsView& segments, const HomeView& home,
                 const KeyFormat& format, const TableView* tables, int64_t uniques,
                 const OwnerView& owner, float* const* owned_rows, const float* received,
                 const float** rows_of_ids);

// memory[to[k] ...) = memory[from[k] ...), pieces of begin[k + 1] - begin[k] elements.
struct Pieces {
  const int64_t* begin;  // and the end
  const int64_t* from;
  const int64_t* to;
  int64_t count = 0;
  int64_t elements = 0;
};
void CopyPieces(Stream& stream, const Pieces& pieces, float* memory);

}  // namespace elastor::cuda

#endif  // ELASTOR_EMBEDDING_CUDA_OWNER_KERNELS_H_
