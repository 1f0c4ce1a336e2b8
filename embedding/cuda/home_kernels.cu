#include "core/cuda/launch.h"
#include "embedding/cuda/home_kernels.h"
#include "embedding/cuda/search.h"

namespace elastor::cuda {
namespace {

constexpr int kThreads = 256;

__device__ int64_t ThreadIndex() {
  return static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
}

// A thread a bag.
__global__ void __launch_bounds__(kThreads) ExpandBagsKernel(BatchView batch, uint32_t* bags) {
  const int64_t bag = ThreadIndex();
  if (bag >= batch.rows * batch.fields) return;
  for (int64_t o = batch.offsets[bag]; o < batch.offsets[bag + 1]; ++o) {
    bags[o] = static_cast<uint32_t>(bag);
  }
}

// A thread a row.
__global__ void __launch_bounds__(kThreads)
    ExpandLeavesKernel(const int64_t* leaf_offsets, int64_t count, int64_t first_leaf, int64_t rows,
                       int32_t* leaves) {
  const int64_t row = ThreadIndex();
  if (row >= rows) return;
  leaves[row] = static_cast<int32_t>(first_leaf + SegmentOf(leaf_offsets, count, row));
}

// A thread an occurrence.
__global__ void __launch_bounds__(kThreads)
    MakeKeysKernel(BatchView batch, uint64_t* keys, uint32_t* values, int64_t* counts) {
  const int64_t o = ThreadIndex();
  if (o >= batch.occurrences) return;
  const FieldView& field = batch.field_views[batch.Bag(o) % batch.fields];
  int64_t id = batch.ids[o];
  if (id < 0 || id >= batch.table_rows[field.table]) {
    id = 0;  // a key like any other, until the host has seen it
    atomicMax(reinterpret_cast<unsigned long long*>(&counts[kBadOccurrence]),
              static_cast<unsigned long long>(INT32_MAX - BadOrder(batch, o)));
  }
  const int owner =
      batch.owners == nullptr ? 0 : batch.owners[field.table * kPartitions + id % kPartitions];
  keys[o] = batch.format.Make(owner, field.table, id);
  values[o] = static_cast<uint32_t>(o);
}

// A thread a sorted occurrence, here and below.
__global__ void __launch_bounds__(kThreads) MarkHeadsKernel(BatchView batch, HomeView home) {
  const int64_t i = ThreadIndex();
  if (i >= batch.occurrences) return;
  const int64_t bag = batch.Bag(home.sorted[i]);
  const int64_t row = bag / batch.fields;
  const FieldView& field = batch.field_views[bag % batch.fields];
  home.sources[i] = {static_cast<uint32_t>(row), static_cast<uint32_t>(field.first_feature)};
  if (home.scales != nullptr) {
    const int64_t length = batch.offsets[bag + 1] - batch.offsets[bag];
    home.scales[i] = field.mean ? 1.0f / static_cast<float>(length) : 1.0f;
  }
  const int32_t leaf = batch.leaves[row];
  home.leaves[i] = leaf;
  bool unique = true, run = true, vector = true;
  if (i > 0 && home.sorted_keys[i] == home.sorted_keys[i - 1]) {
    unique = false;
    const int32_t previous = batch.leaves[batch.Bag(home.sorted[i - 1]) / batch.fields];
    run = leaf != previous;
    vector =
        home.node_of_leaf[leaf - home.first_leaf] != home.node_of_leaf[previous - home.first_leaf];
  }
  home.unique_number[i] = unique;
  home.run_number[i] = run;
  if (home.vector_number != home.unique_number) home.vector_number[i] = vector;
}

__global__ void __launch_bounds__(kThreads)
    PlaceHeadsKernel(BatchView batch, HomeView home, int64_t* counts) {
  const int64_t i = ThreadIndex();
  if (i >= batch.occurrences) return;
  const auto here = static_cast<uint32_t>(i);
  const int u = home.unique_number[i] - 1;
  const int run = home.run_number[i] - 1;
  const int v = home.vector_number[i] - 1;
  home.unique_of[home.sorted[i]] = static_cast<uint32_t>(u);
  if (i == 0 || home.run_number[i - 1] != run + 1) home.run_begin[run] = here;
  if (i == 0 || home.vector_number[i - 1] != v + 1) {
    home.vector_begin[v] = here;
    if (home.node_masks != nullptr) {
      // Different bits of one word, all 0 before.
      atomicOr(reinterpret_cast<unsigned long long*>(&home.node_masks[u]),
               1ull << home.node_of_leaf[home.leaves[i] - home.first_leaf]);
    }
  }
  if (i == 0 || home.unique_number[i - 1] != u + 1) {
    home.unique_keys[u] = home.sorted_keys[i];
    home.unique_vector[u] = static_cast<uint32_t>(v);
  }
  if (i + 1 < batch.occurrences) return;
  home.run_begin[run + 1] = here + 1;
  home.vector_begin[v + 1] = here + 1;
  home.unique_vector[u + 1] = static_cast<uint32_t>(v) + 1;
  counts[kUniques] = u + 1;
  counts[kVectors] = v + 1;
}

// Whether sorted occurrence i begins a chunk of a long vector.
__device__ bool BeginsChunk(const HomeView& home, int64_t i) {
  const int v = home.vector_number[i] - 1;
  if (home.vector_begin[v + 1] - home.vector_begin[v] <= kLongVector) return false;
  return (i - home.run_begin[home.run_number[i] - 1]) % kChunk == 0;
}

__global__ void __launch_bounds__(kThreads) MarkChunksKernel(BatchView batch, HomeView home) {
  const int64_t i = ThreadIndex();
  if (i < batch.occurrences) home.chunk_number[i] = BeginsChunk(home, i);
}

__device__ void PlaceChunk(const HomeView& home, int64_t i, int32_t width) {
  const int run = home.run_number[i] - 1;
  const int64_t begin = home.run_begin[run];
  const int64_t end = home.run_begin[run + 1];
  Chunk chunk;
  chunk.begin = static_cast<uint32_t>(i);
  chunk.count = static_cast<int32_t>(min(static_cast<int64_t>(kChunk), end - i));
  chunk.leaf = home.leaves[i];
  chunk.of_run = i == begin ? static_cast<int32_t>((end - begin + kChunk - 1) / kChunk) : 0;
  chunk.width = width;
  home.chunks[home.chunk_number[i] - 1] = chunk;
}

__global__ void __launch_bounds__(kThreads)
    PlaceChunksKernel(BatchView batch, HomeView home, bool one_rank, int64_t* counts) {
  const int64_t i = ThreadIndex();
  if (i >= batch.occurrences) return;
  if (i + 1 == batch.occurrences) counts[kChunks] = home.chunk_number[i];
  const int32_t width = batch.field_views[batch.Bag(home.sorted[i]) % batch.fields].width;
  if (BeginsChunk(home, i)) PlaceChunk(home, i, width);
  const int v = home.vector_number[i] - 1;
  if (home.vector_begin[v] != i) return;
  const uint32_t end = home.vector_begin[v + 1];
  if (one_rank && end == i + 1) {
    home.direct[v] = ~i;
    return;
  }
  const int64_t listed = one_rank
                             ? static_cast<int64_t>(atomicAdd(
                                   reinterpret_cast<unsigned long long*>(&counts[kListed]), 1ull))
                             : v;
  Vector vector;
  vector.begin = static_cast<uint32_t>(i);
  vector.end = end;
  vector.chunk_end = static_cast<uint32_t>(home.chunk_number[end - 1]);
  vector.chunk_begin =
      end - i <= kLongVector ? vector.chunk_end : static_cast<uint32_t>(home.chunk_number[i] - 1);
  vector.width = width;
  home.vectors[listed] = vector;
  if (one_rank) home.direct[v] = listed;
}

// A thread a segment, and one for the end.
__global__ void __launch_bounds__(kThreads)
    FindSegmentsKernel(BatchView batch, HomeView home, int64_t ranks, int64_t tables,
                       const int64_t* counts, int64_t* segments) {
  const int64_t s = ThreadIndex();
  const int64_t total = ranks * tables;
  if (s > total) return;
  const int64_t uniques = counts[kUniques];
  const int64_t u = s == total ? uniques
                               : LowerBound(home.unique_keys, uniques,
                                            batch.format.Make(s / tables, s % tables, 0));
  segments[s] = u;
  segments[total + 1 + s] = home.unique_vector[u];
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

void MakeKeys(Stream& stream, const BatchView& batch, uint64_t* keys, uint32_t* values,
              int64_t* counts) {
  Launch(stream, Blocks(batch.occurrences, kThreads), kThreads, MakeKeysKernel, batch, keys, values,
         counts);
}

void MarkHeads(Stream& stream, const BatchView& batch, const HomeView& home) {
  Launch(stream, Blocks(batch.occurrences, kThreads), kThreads, MarkHeadsKernel, batch, home);
}

void PlaceHeads(Stream& stream, const BatchView& batch, const HomeView& home, int64_t* counts) {
  Launch(stream, Blocks(batch.occurrences, kThreads), kThreads, PlaceHeadsKernel, batch, home,
         counts);
}

void MarkChunks(Stream& stream, const BatchView& batch, const HomeView& home) {
  Launch(stream, Blocks(batch.occurrences, kThreads), kThreads, MarkChunksKernel, batch, home);
}

void PlaceChunks(Stream& stream, const BatchView& batch, const HomeView& home, bool one_rank,
                 int64_t* counts) {
  Launch(stream, Blocks(batch.occurrences, kThreads), kThreads, PlaceChunksKernel, batch, home,
         one_rank, counts);
}

void FindSegments(Stream& stream, const BatchView& batch, const HomeView& home, int64_t ranks,
                  int64_t tables, const int64_t* counts, int64_t* segments) {
  Launch(stream, Blocks(ranks * tables + 1, kThreads), kThreads, FindSegmentsKernel, batch, home,
         ranks, tables, counts, segments);
}

}  // namespace elastor::cuda
