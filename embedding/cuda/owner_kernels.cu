#include "core/cuda/launch.h"
#include "embedding/cuda/columns.h"
#include "embedding/cuda/item_threads.h"
#include "embedding/cuda/owner_kernels.h"
#include "embedding/cuda/search.h"

namespace elastor::cuda {
namespace {

static_assert(kThreads == kGroupThreads);

// The number of nodes in a mask.
__device__ int Count(uint64_t mask) { return __popcll(mask); }

// Each thread packs one item that is sent.
__global__ void __launch_bounds__(kThreads)
    PackMessagesKernel(CellsView cells, RequesterView requester, KeyFormat format, int64_t items,
                       int words_per_item, int64_t* words) {
  const int64_t i = ThreadIndex();
  if (i >= items) return;
  const int64_t k = SegmentOf(cells.sent_begin, cells.cells(), i);
  const int64_t u = cells.sent_unique[k] + i - cells.sent_begin[k];
  words[i * words_per_item] = format.Id(requester.unique_keys[u]);
  if (words_per_item == 2) words[2 * i + 1] = static_cast<int64_t>(requester.node_masks[u]);
}

// Each thread takes one unique id, here and in PointAtRowsKernel.
__global__ void __launch_bounds__(kThreads)
    PlaceVectorsKernel(CellsView cells, RequesterView requester, KeyFormat format,
                       const TableView* tables, int64_t uniques, int64_t* offsets) {
  const int64_t u = ThreadIndex();
  if (u >= uniques) return;
  const uint64_t key = requester.unique_keys[u];
  const int64_t k = format.Owner(key) * cells.tables + format.Table(key);
  for (int64_t v = requester.unique_segment[u]; v < requester.unique_segment[u + 1]; ++v) {
    offsets[v] =
        cells.gradient_at[k] + (v - cells.segment_begin[k]) * tables[format.Table(key)].width;
  }
}

// Each thread reads one item.
__global__ void __launch_bounds__(kThreads)
    ReadItemsKernel(CellsView cells, RequesterView requester, KeyFormat format,
                    const int64_t* words, int64_t items, OwnerView owner, SortKeys keys,
                    uint32_t* values) {
  const int64_t i = ThreadIndex();
  if (i >= items) return;
  const int64_t k = SegmentOf(cells.item_begin, cells.cells(), i);
  const int64_t from = k / cells.tables;
  int64_t id;
  uint64_t mask = 1;
  if (from == cells.rank) {
    const int64_t u = cells.unique_begin[k] + i - cells.item_begin[k];
    id = format.Id(requester.unique_keys[u]);
    if (requester.node_masks != nullptr) mask = requester.node_masks[u];
  } else {
    const int64_t length = cells.words_per_item[from];
    const int64_t* word =
        words + cells.word_at[from] + (i - cells.item_begin[from * cells.tables]) * length;
    id = word[0];
    if (length == 2) mask = static_cast<uint64_t>(word[1]);
  }
  keys.Set(i, format.Make(0, k % cells.tables, id));
  values[i] = static_cast<uint32_t>(i);
  owner.item_masks[i] = mask;
  owner.item_vectors[i] = Count(mask);
}

// Each thread takes one sorted item, here and below.
__global__ void __launch_bounds__(kThreads) MarkOwnedKernel(int64_t items, OwnerView owner) {
  const int64_t p = ThreadIndex();
  if (p >= items) return;
  owner.owned_number[p] = p == 0 || owner.sorted_keys[p] != owner.sorted_keys[p - 1];
  owner.node_number[p] = Count(owner.item_masks[owner.sorted[p]]);
}

__global__ void __launch_bounds__(kThreads)
    PlaceOwnedKernel(CellsView cells, const TableView* tables, int64_t items, OwnerView owner) {
  const int64_t p = ThreadIndex();
  if (p >= items) return;
  const uint32_t i = owner.sorted[p];
  const int j = owner.owned_number[p] - 1;
  uint64_t mask = owner.item_masks[i];
  const int count = Count(mask);
  int64_t node = owner.node_number[p] - count;
  owner.item_owned[i] = static_cast<uint32_t>(j);
  if (p == 0 || owner.owned_number[p - 1] != j + 1) {
    owner.owned_keys[j] = owner.sorted_keys[p];
    owner.node_begin[j] = static_cast<uint32_t>(node);
  }
  const int64_t k = SegmentOf(cells.item_begin, cells.cells(), i);
  const int64_t vector = owner.item_vectors[i] - count - cells.item_vector[k];
  const int64_t width = tables[k % cells.tables].width;
  int64_t at = cells.item_gradient_at[k] + vector * width;
  for (; mask != 0; mask &= mask - 1, ++node, at += width) {
    const int bit = __ffsll(static_cast<long long>(mask)) - 1;
    owner.node_leaves[node] = static_cast<int32_t>(cells.node_leaves[k / cells.tables * 64 + bit]);
    owner.node_gradients[node] = at;
  }
  if (p + 1 < items) return;
  owner.node_begin[j + 1] = static_cast<uint32_t>(node);
  *owner.owned_count = j + 1;
}

// Each group of lanes copies the row of one item.
template <int kColumns>
__global__ void __launch_bounds__(kThreads)
    CopyRowsToSendKernel(CellsView cells, const TableView* tables, int64_t items, LaneGroups groups,
                         OwnerView owner, float* const* owned_rows, float* sent) {
  const int64_t i = groups.index();
  if (i >= items) return;
  const int64_t k = SegmentOf(cells.item_begin, cells.cells(), i);
  if (cells.item_row_at[k] < 0) return;
  const int width = tables[k % cells.tables].width;
  const float* const row = owned_rows[owner.item_owned[i]];
  float* const to = sent + cells.item_row_at[k] + (i - cells.item_begin[k]) * width;
  for (int c = groups.lane() * kColumns; c < width; c += groups.lanes() * kColumns) {
    float values[kColumns];
    LoadColumns(row + c, values);
    StoreColumns(values, to + c);
  }
}

__global__ void __launch_bounds__(kThreads)
    PointAtRowsKernel(CellsView cells, RequesterView requester, KeyFormat format,
                      const TableView* tables, int64_t uniques, OwnerView owner,
                      float* const* owned_rows, const float* received, const float** rows_of_ids) {
  const int64_t u = ThreadIndex();
  if (u >= uniques) return;
  const uint64_t key = requester.unique_keys[u];
  const int64_t k = format.Owner(key) * cells.tables + format.Table(key);
  const int64_t in_list = u - cells.unique_begin[k];
  rows_of_ids[u] = format.Owner(key) == cells.rank
                       ? owned_rows[owner.item_owned[cells.item_begin[k] + in_list]]
                       : received + cells.row_at[k] + in_list * tables[format.Table(key)].width;
}

// Each thread copies one element.
__global__ void __launch_bounds__(kThreads) CopyPiecesKernel(Pieces pieces, float* memory) {
  const int64_t i = ThreadIndex();
  if (i >= pieces.elements) return;
  const int64_t k = SegmentOf(pieces.begin, pieces.count, i);
  memory[pieces.to[k] + i - pieces.begin[k]] = memory[pieces.from[k] + i - pieces.begin[k]];
}

}  // namespace

void PackMessages(Stream& stream, const CellsView& cells, const RequesterView& requester,
                  const KeyFormat& format, int64_t items, int words_per_item, int64_t* words) {
  if (items == 0) return;
  Launch(stream, Blocks(items, kThreads), kThreads, PackMessagesKernel, cells, requester, format,
         items, words_per_item, words);
}

void PlaceVectors(Stream& stream, const CellsView& cells, const RequesterView& requester,
                  const KeyFormat& format, const TableView* tables, int64_t uniques,
                  int64_t* offsets) {
  if (uniques == 0) return;
  Launch(stream, Blocks(uniques, kThreads), kThreads, PlaceVectorsKernel, cells, requester, format,
         tables, uniques, offsets);
}

void ReadItems(Stream& stream, const CellsView& cells, const RequesterView& requester,
               const KeyFormat& format, const int64_t* words, int64_t items, const OwnerView& owner,
               SortKeys keys, uint32_t* values) {
  if (items == 0) return;
  Launch(stream, Blocks(items, kThreads), kThreads, ReadItemsKernel, cells, requester, format,
         words, items, owner, keys, values);
}

void MarkOwned(Stream& stream, int64_t items, const OwnerView& owner) {
  if (items == 0) return;
  Launch(stream, Blocks(items, kThreads), kThreads, MarkOwnedKernel, items, owner);
}

void PlaceOwned(Stream& stream, const CellsView& cells, const TableView* tables, int64_t items,
                const OwnerView& owner) {
  if (items == 0) return;
  Launch(stream, Blocks(items, kThreads), kThreads, PlaceOwnedKernel, cells, tables, items, owner);
}

void CopyRowsToSend(Stream& stream, const CellsView& cells, const TableView* tables, int64_t items,
                    const VectorShape& shape, const OwnerView& owner, float* const* owned_rows,
                    float* sent) {
  if (items == 0) return;
  const LaneGroups groups = LaneGroups::For(shape.widest, shape.columns());
  Launch(stream, Blocks(items, groups.per_block()), kThreads,
         shape.aligned ? CopyRowsToSendKernel<kVector> : CopyRowsToSendKernel<1>, cells, tables,
         items, groups, owner, owned_rows, sent);
}

void PointAtRows(Stream& stream, const CellsView& cells, const RequesterView& requester,
                 const KeyFormat& format, const TableView* tables, int64_t uniques,
                 const OwnerView& owner, float* const* owned_rows, const float* received,
                 const float** rows_of_ids) {
  if (uniques == 0) return;
  Launch(stream, Blocks(uniques, kThreads), kThreads, PointAtRowsKernel, cells, requester, format,
         tables, uniques, owner, owned_rows, received, rows_of_ids);
}

void CopyPieces(Stream& stream, const Pieces& pieces, float* memory) {
  if (pieces.elements == 0) return;
  Launch(stream, Blocks(pieces.elements, kThreads), kThreads, CopyPiecesKernel, pieces, memory);
}

}  // namespace elastor::cuda
