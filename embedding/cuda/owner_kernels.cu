#include "core/cuda/launch.h"
#include "embedding/cuda/columns.h"
#include "embedding/cuda/owner_kernels.h"
#include "embedding/cuda/search.h"

namespace elastor::cuda {
namespace {

constexpr int kThreads = kGroupThreads;

__device__ int64_t ThreadIndex() {
  return static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
}

// The number of nodes in a mask.
__device__ int Count(uint64_t mask) { return __popcll(mask); }

// A thread a sent item.
__global__ void __launch_bounds__(kThreads)
    PackMessagesKernel(SegmentsView segments, HomeView home, KeyFormat format, int64_t items,
                       int words_per_item, int64_t* words) {
  const int64_t i = ThreadIndex();
  if (i >= items) return;
  const int64_t k = SegmentOf(segments.sent_begin, segments.segments(), i);
  const int64_t u = segments.sent_unique[k] + i - segments.sent_begin[k];
  words[i * words_per_item] = format.Id(home.unique_keys[u]);
  if (words_per_item == 2) words[2 * i + 1] = static_cast<int64_t>(home.node_masks[u]);
}

// A thread a unique id, here and in PointAtRows.
__global__ void __launch_bounds__(kThreads)
    PlaceVectorsKernel(SegmentsView segments, HomeView home, KeyFormat format,
                       const TableView* tables, int64_t uniques, int64_t* offsets) {
  const int64_t u = ThreadIndex();
  if (u >= uniques) return;
  const uint64_t key = home.unique_keys[u];
  const int64_t k = format.Owner(key) * segments.tables + format.Table(key);
  for (int64_t v = home.unique_vector[u]; v < home.unique_vector[u + 1]; ++v) {
    offsets[v] =
        segments.gradient_at[k] + (v - segments.vector_begin[k]) * tables[format.Table(key)].width;
  }
}

// A thread an item.
__global__ void __launch_bounds__(kThreads)
    ReadItemsKernel(SegmentsView segments, HomeView home, KeyFormat format, const int64_t* words,
                    int64_t items, OwnerView owner, uint64_t* keys, uint32_t* values) {
  const int64_t i = ThreadIndex();
  if (i >= items) return;
  const int64_t k = SegmentOf(segments.item_begin, segments.segments(), i);
  const int64_t from = k / segments.tables;
  int64_t id;
  uint64_t mask = 1;
  if (from == segments.rank) {
    const int64_t u = segments.unique_begin[k] + i - segments.item_begin[k];
    id = format.Id(home.unique_keys[u]);
    if (home.node_masks != nullptr) mask = home.node_masks[u];
  } else {
    const int64_t length = segments.words_per_item[from];
    const int64_t* word =
        words + segments.word_at[from] + (i - segments.item_begin[from * segments.tables]) * length;
    id = word[0];
    if (length == 2) mask = static_cast<uint64_t>(word[1]);
  }
  keys[i] = format.Make(0, k % segments.tables, id);
  values[i] = static_cast<uint32_t>(i);
  owner.item_masks[i] = mask;
  owner.item_vectors[i] = Count(mask);
}

// A thread a sorted item, here and below.
__global__ void __launch_bounds__(kThreads) MarkOwnedKernel(int64_t items, OwnerView owner) {
  const int64_t p = ThreadIndex();
  if (p >= items) return;
  owner.owned_number[p] = p == 0 || owner.sorted_keys[p] != owner.sorted_keys[p - 1];
  owner.node_number[p] = Count(owner.item_masks[owner.sorted[p]]);
}

__global__ void __launch_bounds__(kThreads)
    PlaceOwnedKernel(SegmentsView segments, const TableView* tables, int64_t items,
                     OwnerView owner) {
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
  const int64_t k = SegmentOf(segments.item_begin, segments.segments(), i);
  const int64_t vector = owner.item_vectors[i] - count - segments.item_vector[k];
  const int64_t width = tables[k % segments.tables].width;
  int64_t at = segments.item_gradient_at[k] + vector * width;
  for (; mask != 0; mask &= mask - 1, ++node, at += width) {
    const int bit = __ffsll(static_cast<long long>(mask)) - 1;
    owner.node_leaves[node] =
        static_cast<int32_t>(segments.node_leaves[k / segments.tables * 64 + bit]);
    owner.node_gradients[node] = at;
  }
  if (p + 1 < items) return;
  owner.node_begin[j + 1] = static_cast<uint32_t>(node);
  *owner.owned_count = j + 1;
}

// A group of lanes an item.
template <int kColumns>
__global__ void __launch_bounds__(kThreads)
    CopyRowsToSendKernel(SegmentsView segments, const TableView* tables, int64_t items,
                         LaneGroups groups, OwnerView owner, float* const* owned_rows,
                         float* sent) {
  const int64_t i = groups.index();
  if (i >= items) return;
  const int64_t k = SegmentOf(segments.item_begin, segments.segments(), i);
  if (segments.item_row_at[k] < 0) return;
  const int width = tables[k % segments.tables].width;
  const float* const row = owned_rows[owner.item_owned[i]];
  float* const to = sent + segments.item_row_at[k] + (i - segments.item_begin[k]) * width;
  for (int c = groups.lane() * kColumns; c < width; c += groups.lanes() * kColumns) {
    float values[kColumns];
    LoadColumns(row + c, values);
    StoreColumns(values, to + c);
  }
}

__global__ void __launch_bounds__(kThreads)
    PointAtRowsKernel(SegmentsView segments, HomeView home, KeyFormat format,
                      const TableView* tables, int64_t uniques, OwnerView owner,
                      float* const* owned_rows, const float* received, const float** rows_of_ids) {
  const int64_t u = ThreadIndex();
  if (u >= uniques) return;
  const uint64_t key = home.unique_keys[u];
  const int64_t k = format.Owner(key) * segments.tables + format.Table(key);
  const int64_t in_list = u - segments.unique_begin[k];
  rows_of_ids[u] = format.Owner(key) == segments.rank
                       ? owned_rows[owner.item_owned[segments.item_begin[k] + in_list]]
                       : received + segments.row_at[k] + in_list * tables[format.Table(key)].width;
}

// A thread an element.
__global__ void __launch_bounds__(kThreads) CopyPiecesKernel(Pieces pieces, float* memory) {
  const int64_t i = ThreadIndex();
  if (i >= pieces.elements) return;
  const int64_t k = SegmentOf(pieces.begin, pieces.count, i);
  memory[pieces.to[k] + i - pieces.begin[k]] = memory[pieces.from[k] + i - pieces.begin[k]];
}

}  // namespace

void PackMessages(Stream& stream, const SegmentsView& segments, const HomeView& home,
                  const KeyFormat& format, int64_t items, int words_per_item, int64_t* words) {
  if (items == 0) return;
  Launch(stream, Blocks(items, kThreads), kThreads, PackMessagesKernel, segments, home, format,
         items, words_per_item, words);
}

void PlaceVectors(Stream& stream, const SegmentsView& segments, const HomeView& home,
                  const KeyFormat& format, const TableView* tables, int64_t uniques,
                  int64_t* offsets) {
  if (uniques == 0) return;
  Launch(stream, Blocks(uniques, kThreads), kThreads, PlaceVectorsKernel, segments, home, format,
         tables, uniques, offsets);
}

void ReadItems(Stream& stream, const SegmentsView& segments, const HomeView& home,
               const KeyFormat& format, const int64_t* words, int64_t items, const OwnerView& owner,
               uint64_t* keys, uint32_t* values) {
  if (items == 0) return;
  Launch(stream, Blocks(items, kThreads), kThreads, ReadItemsKernel, segments, home, format, words,
         items, owner, keys, values);
}

void MarkOwned(Stream& stream, int64_t items, const OwnerView& owner) {
  if (items == 0) return;
  Launch(stream, Blocks(items, kThreads), kThreads, MarkOwnedKernel, items, owner);
}

void PlaceOwned(Stream& stream, const SegmentsView& segments, const TableView* tables,
                int64_t items, const OwnerView& owner) {
  if (items == 0) return;
  Launch(stream, Blocks(items, kThreads), kThreads, PlaceOwnedKernel, segments, tables, items,
         owner);
}

void CopyRowsToSend(Stream& stream, const SegmentsView& segments, const TableView* tables,
                    int64_t items, const VectorShape& shape, const OwnerView& owner,
                    float* const* owned_rows, float* sent) {
  if (items == 0) return;
  const LaneGroups groups = LaneGroups::For(shape.widest, shape.columns());
  Launch(stream, Blocks(items, groups.per_block()), kThreads,
         shape.aligned ? CopyRowsToSendKernel<kVector> : CopyRowsToSendKernel<1>, segments, tables,
         items, groups, owner, owned_rows, sent);
}

void PointAtRows(Stream& stream, const SegmentsView& segments, const HomeView& home,
                 const KeyFormat& format, const TableView* tables, int64_t uniques,
                 const OwnerView& owner, float* const* owned_rows, const float* received,
                 const float** rows_of_ids) {
  if (uniques == 0) return;
  Launch(stream, Blocks(uniques, kThreads), kThreads, PointAtRowsKernel, segments, home, format,
         tables, uniques, owner, owned_rows, received, rows_of_ids);
}

void CopyPieces(Stream& stream, const Pieces& pieces, float* memory) {
  if (pieces.elements == 0) return;
  Launch(stream, Blocks(pieces.elements, kThreads), kThreads, CopyPiecesKernel, pieces, memory);
}

}  // namespace elastor::cuda
