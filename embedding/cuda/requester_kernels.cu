#include "core/cuda/launch.h"
#include "embedding/cuda/item_threads.h"
#include "embedding/cuda/requester_kernels.h"
#include "embedding/cuda/search.h"

namespace elastor::cuda {
namespace {

// Each thread takes one bag.
__global__ void __launch_bounds__(kThreads) ExpandBagsKernel(BatchView batch, uint32_t* bags) {
  const int64_t bag = ThreadIndex();
  if (bag >= batch.rows * batch.fields) return;
  for (int64_t o = batch.offsets[bag]; o < batch.offsets[bag + 1]; ++o) {
    bags[o] = static_cast<uint32_t>(bag);
  }
}

// Each thread takes one row.
__global__ void __launch_bounds__(kThreads)
    ExpandLeavesKernel(const int64_t* leaf_offsets, int64_t count, int64_t first_leaf, int64_t rows,
                       int32_t* leaves) {
  const int64_t row = ThreadIndex();
  if (row >= rows) return;
  leaves[row] = static_cast<int32_t>(first_leaf + SegmentOf(leaf_offsets, count, row));
}

// Each thread takes one occurrence.
__global__ void __launch_bounds__(kThreads)
    MakeKeysKernel(BatchView batch, SortKeys keys, uint32_t* values, int64_t* counts) {
  const int64_t o = ThreadIndex();
  if (o >= batch.occurrences) return;
  const FieldView& field = batch.field_views[batch.Bag(o) % batch.fields];
  int64_t id = batch.Id(o);
  if (id < 0 || id >= batch.table_rows[field.table]) {
    id = 0;  // a key like any other, until the host has seen it
    atomicMax(reinterpret_cast<unsigned long long*>(&counts[kBadOccurrence]),
              static_cast<unsigned long long>(INT32_MAX - BadOrder(batch, o)));
  }
  const int owner = batch.owners == nullptr
                        ? 0
                        : batch.owners[field.table * kPartitions + RowIndex::PartitionOf(id)];
  keys.Set(o, batch.format.Make(owner, field.table, id));
  values[o] = static_cast<uint32_t>(o);
}

// Each thread takes one sorted occurrence, here and below.
__global__ void __launch_bounds__(kThreads)
    MarkHeadsKernel(BatchView batch, RequesterView requester) {
  const int64_t i = ThreadIndex();
  if (i >= batch.occurrences) return;
  const int64_t bag = batch.Bag(requester.sorted[i]);
  const int64_t row = bag / batch.fields;
  const FieldView& field = batch.field_views[bag % batch.fields];
  requester.sources[i] = {static_cast<uint32_t>(row), static_cast<uint32_t>(field.first_feature)};
  if (requester.scales != nullptr) {
    const int64_t length = batch.offsets[bag + 1] - batch.offsets[bag];
    requester.scales[i] = field.mean ? 1.0f / static_cast<float>(length) : 1.0f;
  }
  const int32_t leaf = batch.leaves[row];
  requester.leaves[i] = leaf;
  bool unique = true, run = true, segment = true;
  if (i > 0 && requester.sorted_keys[i] == requester.sorted_keys[i - 1]) {
    unique = false;
    const int32_t previous = batch.leaves[batch.Bag(requester.sorted[i - 1]) / batch.fields];
    run = leaf != previous;
    segment = requester.node_of_leaf[leaf - requester.first_leaf] !=
              requester.node_of_leaf[previous - requester.first_leaf];
  }
  requester.unique_number[i] = unique;
  requester.run_number[i] = run;
  if (requester.segment_number != requester.unique_number) requester.segment_number[i] = segment;
}

__global__ void __launch_bounds__(kThreads)
    PlaceHeadsKernel(BatchView batch, RequesterView requester, int64_t* counts) {
  const int64_t i = ThreadIndex();
  if (i >= batch.occurrences) return;
  const auto here = static_cast<uint32_t>(i);
  const int u = requester.unique_number[i] - 1;
  const int run = requester.run_number[i] - 1;
  const int v = requester.segment_number[i] - 1;
  requester.unique_of[requester.sorted[i]] = static_cast<uint32_t>(u);
  if (i == 0 || requester.run_number[i - 1] != run + 1) requester.run_begin[run] = here;
  if (i == 0 || requester.segment_number[i - 1] != v + 1) {
    requester.segment_begin[v] = here;
    if (requester.node_masks != nullptr) {
      // Different bits of one word, all 0 before.
      atomicOr(reinterpret_cast<unsigned long long*>(&requester.node_masks[u]),
               1ull << requester.node_of_leaf[requester.leaves[i] - requester.first_leaf]);
    }
  }
  if (i == 0 || requester.unique_number[i - 1] != u + 1) {
    requester.unique_keys[u] = requester.sorted_keys[i];
    requester.unique_segment[u] = static_cast<uint32_t>(v);
  }
  if (i + 1 < batch.occurrences) return;
  requester.run_begin[run + 1] = here + 1;
  requester.segment_begin[v + 1] = here + 1;
  requester.unique_segment[u + 1] = static_cast<uint32_t>(v) + 1;
  counts[kUniques] = u + 1;
  counts[kSegments] = v + 1;
}

// Whether sorted occurrence i begins a chunk of a long segment.
__device__ bool BeginsChunk(const RequesterView& requester, int64_t i) {
  const int v = requester.segment_number[i] - 1;
  if (requester.segment_begin[v + 1] - requester.segment_begin[v] <= kLongSegment) return false;
  return (i - requester.run_begin[requester.run_number[i] - 1]) % kChunk == 0;
}

__global__ void __launch_bounds__(kThreads)
    MarkChunksKernel(BatchView batch, RequesterView requester) {
  const int64_t i = ThreadIndex();
  if (i < batch.occurrences) requester.chunk_number[i] = BeginsChunk(requester, i);
}

__device__ void PlaceChunk(const RequesterView& requester, int64_t i, int32_t width) {
  const int run = requester.run_number[i] - 1;
  const int64_t begin = requester.run_begin[run];
  const int64_t end = requester.run_begin[run + 1];
  SegmentChunk chunk;
  chunk.begin = static_cast<uint32_t>(i);
  chunk.count = static_cast<int32_t>(min(static_cast<int64_t>(kChunk), end - i));
  chunk.leaf = requester.leaves[i];
  chunk.of_run = i == begin ? static_cast<int32_t>((end - begin + kChunk - 1) / kChunk) : 0;
  chunk.width = width;
  requester.chunks[requester.chunk_number[i] - 1] = chunk;
}

// Gives every thread of the block that takes one a number of its own, from *count on, and counts
// them there: one atomic operation a block, because those of all blocks wait for each other. All
// threads must call it.
__device__ int64_t TakeNumber(bool takes, int64_t* count) {
  constexpr int kWarps = kThreads / kWarp;
  __shared__ int64_t first[kWarps];  // number of every warp
  const unsigned takers = __ballot_sync(0xffffffffu, takes);
  const unsigned lane = threadIdx.x % kWarp;
  const unsigned warp = threadIdx.x / kWarp;
  if (lane == 0) first[warp] = __popc(takers);
  __syncthreads();
  if (threadIdx.x == 0) {
    unsigned long long total = 0;
    for (int w = 0; w < kWarps; ++w) total += first[w];
    int64_t next = 0;
    if (total > 0) {
      next = static_cast<int64_t>(atomicAdd(reinterpret_cast<unsigned long long*>(count), total));
    }
    for (int w = 0; w < kWarps; ++w) {
      const int64_t of_warp = first[w];
      first[w] = next;
      next += of_warp;
    }
  }
  __syncthreads();
  return first[warp] + __popc(takers & ((1u << lane) - 1));
}

__global__ void __launch_bounds__(kThreads)
    PlaceChunksKernel(BatchView batch, RequesterView requester, bool one_rank, int64_t* counts) {
  const int64_t i = ThreadIndex();
  bool lists = false;  // whether i begins a segment that is listed
  int v = 0;
  int32_t width = 0;
  uint32_t end = 0;
  if (i < batch.occurrences) {
    if (i + 1 == batch.occurrences) counts[kChunks] = requester.chunk_number[i];
    width = batch.field_views[batch.Bag(requester.sorted[i]) % batch.fields].width;
    if (BeginsChunk(requester, i)) PlaceChunk(requester, i, width);
    v = requester.segment_number[i] - 1;
    if (requester.segment_begin[v] == i) {
      end = requester.segment_begin[v + 1];
      lists = !one_rank || end != i + 1;
      if (!lists) requester.direct[v] = ~i;
    }
  }
  const int64_t listed = one_rank ? TakeNumber(lists, &counts[kListed]) : v;
  if (!lists) return;
  GradientSegment segment;
  segment.begin = static_cast<uint32_t>(i);
  segment.end = end;
  segment.chunk_end = static_cast<uint32_t>(requester.chunk_number[end - 1]);
  segment.chunk_begin = end - i <= kLongSegment
                            ? segment.chunk_end
                            : static_cast<uint32_t>(requester.chunk_number[i] - 1);
  segment.width = width;
  requester.segments[listed] = segment;
  if (one_rank) requester.direct[v] = listed;
}

// Each thread takes one cell; one more takes the end.
__global__ void __launch_bounds__(kThreads)
    FindCellsKernel(BatchView batch, RequesterView requester, int64_t ranks, int64_t tables,
                    const int64_t* counts, int64_t* cells) {
  const int64_t s = ThreadIndex();
  const int64_t total = ranks * tables;
  if (s > total) return;
  const int64_t uniques = counts[kUniques];
  const int64_t u = s == total ? uniques
                               : LowerBound(requester.unique_keys, uniques,
                                            batch.format.Make(s / tables, s % tables, 0));
  cells[s] = u;
  cells[total + 1 + s] = requester.unique_segment[u];
}

}  // namespace

void ExpandBags(Stream& stream, const BatchView& batch, uint32_t* bags) {
  if (batch.rows * batch.fields == 0) return;
  Launch(stream, Blocks(batch.rows * batch.fields, kThreads), kThreads, ExpandBagsKernel, batch,
         bags);
}

void ExpandLeaves(Stream& stream, const int64_t* leaf_offsets, int64_t count, int64_t first_leaf,
                  int64_t rows, int32_t* leaves) {
  if (rows == 0) return;
  Launch(stream, Blocks(rows, kThreads), kThreads, ExpandLeavesKernel, leaf_offsets, count,
         first_leaf, rows, leaves);
}

void MakeKeys(Stream& stream, const BatchView& batch, SortKeys keys, uint32_t* values,
              int64_t* counts) {
  Launch(stream, Blocks(batch.occurrences, kThreads), kThreads, MakeKeysKernel, batch, keys, values,
         counts);
}

void MarkHeads(Stream& stream, const BatchView& batch, const RequesterView& requester) {
  Launch(stream, Blocks(batch.occurrences, kThreads), kThreads, MarkHeadsKernel, batch, requester);
}

void PlaceHeads(Stream& stream, const BatchView& batch, const RequesterView& requester,
                int64_t* counts) {
  Launch(stream, Blocks(batch.occurrences, kThreads), kThreads, PlaceHeadsKernel, batch, requester,
         counts);
}

void MarkChunks(Stream& stream, const BatchView& batch, const RequesterView& requester) {
  Launch(stream, Blocks(batch.occurrences, kThreads), kThreads, MarkChunksKernel, batch, requester);
}

void PlaceChunks(Stream& stream, const BatchView& batch, const RequesterView& requester,
                 bool one_rank, int64_t* counts) {
  Launch(stream, Blocks(batch.occurrences, kThreads), kThreads, PlaceChunksKernel, batch, requester,
         one_rank, counts);
}

void FindCells(Stream& stream, const BatchView& batch, const RequesterView& requester,
               int64_t ranks, int64_t tables, const int64_t* counts, int64_t* cells) {
  Launch(stream, Blocks(ranks * tables + 1, kThreads), kThreads, FindCellsKernel, batch, requester,
         ranks, tables, counts, cells);
}

}  // namespace elastor::cuda
