#ifndef ELASTOR_EMBEDDING_CUDA_OWNER_KERNELS_H_
#define ELASTOR_EMBEDDING_CUDA_OWNER_KERNELS_H_

#include <cstdint>

#include "core/cuda/runtime.h"
#include "embedding/cuda/key_format.h"
#include "embedding/cuda/requester_kernels.h"
#include "embedding/cuda/table_view.h"
#include "embedding/cuda/vector_shape.h"

namespace elastor::cuda {

// The exchanges of several ranks: which keys a requester sends to which owner and where every
// vector lies, as in IdRoute (embedding/id_route.h). The list from a requester to an owner is the
// requester's unique ids of that owner, table after table, ascending: a run of its unique ids.
// Unique ids of replicated tables are on every list. An *item* is an entry of a list. A *cell* is
// the part of a list that belongs to one table; cells are numbered rank * tables + table, where
// `rank` is the requester when this rank owns the rows and the owner when this rank requests them.

// Numbers by cell, in device memory, filled by the host; offsets count elements of the arrays of
// vectors (exchange_places.h).
struct CellsView {
  int64_t ranks = 0;
  int64_t tables = 0;
  int rank = 0;
  // Where this rank is the requester, by the owner's cell.
  const int64_t* sent_begin;     // first item of the messages to other ranks, and the end
  const int64_t* sent_unique;    // first unique id on the list
  const int64_t* unique_begin;   // first unique id of this owner and table, and the end
  const int64_t* segment_begin;  // first gradient segment of these ids, and the end
  const int64_t* gradient_at;    // offset of that segment's vector
  const int64_t* row_at;         // offset at which the first row arrives
  // Where this rank is the owner, by the requester's cell.
  const int64_t* item_begin;        // first item of the lists from all ranks, and the end
  const int64_t* item_vector;       // gradient vectors of all items before
  const int64_t* item_gradient_at;  // offset at which the first gradient vector arrives
  const int64_t* item_row_at;       // offset of the first row to send; -1: the requester has it
  const int64_t* word_at;           // by requester: the first word of its message
  const int64_t* words_per_item;    // by requester: 1, or 2 with a mask of nodes
  const int64_t* node_leaves;       // [requester][64]: first leaves of its nodes

  ELASTOR_HOST_DEVICE int64_t cells() const { return ranks * tables; }
};

// What a rank, as the owner, learns about the requested rows. Arrays have an element for each item
// (i, in the order of requesters, tables and keys), sorted item (p) or owned key (j).
struct OwnerView {
  uint64_t* item_masks;     // i: nodes of the requester
  int32_t* item_vectors;    // i: gradient vectors up to here, its own included
  uint32_t* item_owned;     // i: the owned key
  SortKeys sorted_keys;     // p: items sorted by key, requesters ascending
  uint32_t* sorted;         // p: the item
  int32_t* owned_number;    // p: 1 + j
  int32_t* node_number;     // p: nodes up to here, its own included
  uint64_t* owned_keys;     // j
  uint32_t* node_begin;     // j, and the end
  int32_t* node_leaves;     // first leaves of all nodes, by owned key, ascending
  int64_t* node_gradients;  // by node: the offset of its vector
  int64_t* owned_count;
};

// Writes the messages to other ranks: words[i * words_per_item] is the key of sent item i, and the
// next word, where there are two an item, its mask of nodes.
void PackMessages(Stream& stream, const CellsView& cells, const RequesterView& requester,
                  const KeyFormat& format, int64_t items, int words_per_item, int64_t* words);
// Writes the offset of the vector of every gradient segment of this rank's batch.
void PlaceVectors(Stream& stream, const CellsView& cells, const RequesterView& requester,
                  const KeyFormat& format, const TableView* tables, int64_t uniques,
                  int64_t* offsets);
// Reads the lists from all ranks: writes the key of every item i, and values[i] = i, to be sorted
// together; its mask of nodes; how many gradient vectors it has, to be turned into item_vectors by
// a running sum.
void ReadItems(Stream& stream, const CellsView& cells, const RequesterView& requester,
               const KeyFormat& format, const int64_t* words, int64_t items, const OwnerView& owner,
               SortKeys keys, uint32_t* values);
// Writes for every sorted item whether it is the first of its key, and the number of its nodes.
// Running sums turn these into owned_number and node_number.
void MarkOwned(Stream& stream, int64_t items, const OwnerView& owner);
// Writes the owned keys and their nodes.
void PlaceOwned(Stream& stream, const CellsView& cells, const TableView* tables, int64_t items,
                const OwnerView& owner);

// Copies the rows that other ranks asked for to the array they are sent from.
void CopyRowsToSend(Stream& stream, const CellsView& cells, const TableView* tables, int64_t items,
                    const VectorShape& shape, const OwnerView& owner, float* const* owned_rows,
                    float* sent);
// Writes where the row of every unique id lies: in this rank's tables, or among `received`.
void PointAtRows(Stream& stream, const CellsView& cells, const RequesterView& requester,
                 const KeyFormat& format, const TableView* tables, int64_t uniques,
                 const OwnerView& owner, float* const* owned_rows, const float* received,
                 const float** rows_of_ids);

// Pieces of an array to be copied to other places in it: piece k has begin[k + 1] - begin[k]
// elements, from offset from[k] to offset to[k].
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
