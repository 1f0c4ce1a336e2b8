#ifndef ELASTOR_EMBEDDING_CUDA_ID_ROUTE_H_
#define ELASTOR_EMBEDDING_CUDA_ID_ROUTE_H_

#include <cstdint>

#include "core/cuda/runtime.h"
#include "embedding/cuda/key_format.h"
#include "embedding/cuda/owner_kernels.h"
#include "embedding/cuda/requester_kernels.h"
#include "embedding/exchange_places.h"
#include "embedding/table.h"

namespace elastor::cuda {

// A batch's offsets, leaf_offsets and ids, one after another, as they are copied to the device.
struct PinnedIds : StagedIds {
  PinnedBuffer<int64_t> words;  // the three arrays; short ids take half a word each
  int64_t offsets = 0;          // number of offsets: rows * fields + 1, or 0 with single-id bags
  int64_t leaves = 0;           // number of leaf_offsets: leaves + 1
  int64_t ids = 0;              // number of ids
  bool short_ids = false;       // ids are uint32_t; kNoId stands for ids outside their table
};

// The routing of one batch: which rank sends which rows and gradients to which rank, and which
// gradients are summed together. IdRouter fills it; the step's other kernels read the views.
// Buffers are in device memory, belong to the stream of ids, and only grow: their contents are
// those of the last batch. Sizes below are in elements. n: occurrences of the batch; m: items.
struct IdRoute {
  explicit IdRoute(Stream* stream);

  // ---- The batch, and `batch`, which points at it.
  int64_t rows = 0;
  int64_t occurrences = 0;       // ids of all bags, below 2^31
  bool single_id_bags = true;    // every bag has one id; offsets and bags are empty then
  Buffer<int64_t> ids;           // [n]; empty if short_ids is set
  Buffer<int64_t> offsets;       // [rows * fields + 1]
  Buffer<int64_t> leaf_offsets;  // [leaves + 1], first rows
  Buffer<uint32_t> short_ids;    // [n]
  Buffer<uint32_t> bags;         // [n], bag of every occurrence
  Buffer<int32_t> row_leaves;    // [rows]
  PinnedIds staged;              // staged copy of a batch that came without one
  BatchView batch;

  // ---- Where this rank is the requester. The numbers are known when the ids have been sorted. The
  // buffers are the memory behind `requester` and have room for n elements, n + 1 where a list has
  // an end; RequesterView says what they hold.
  int64_t uniques = 0;   // different ids
  int64_t segments = 0;  // gradient segments, at least `uniques`
  int64_t chunks = 0;    // chunks of long segments
  int64_t listed = 0;    // segments whose sums are written to memory
  Buffer<uint64_t> sorted_keys, unique_keys, node_masks;
  Buffer<uint32_t> sorted, run_begin, segment_begin, unique_of, unique_segment;
  Buffer<OccurrenceSource> sources;
  Buffer<float> scales;
  Buffer<int32_t> leaves, unique_number, run_number, segment_number, chunk_number;
  Buffer<SegmentChunk> chunk_list;
  Buffer<GradientSegment> segment_list;
  Buffer<int64_t> direct;
  // [kRequesterCounts + 2 * (ranks * tables + 1)]: RequesterCount, and where the cells begin. Once
  // the host has its copy, the owner's side keeps the number of owned keys in it.
  Buffer<int64_t> counts;
  PinnedBuffer<int64_t> host_counts;  // the copy
  RequesterView requester;

  // ---- Several ranks; empty with one. The buffers by item and by node are the memory behind
  // `owner`; OwnerView says what they hold.
  int64_t items = 0;                  // entries of the lists from all ranks, this one included
  PinnedBuffer<int64_t> cell_upload;  // columns of `cells` and `replica_copies`, on the host
  Buffer<int64_t> cell_words;         // the same on the device
  CellsView cells;
  Buffer<int64_t> words;           // messages of keys: those sent to, then those from other ranks
  Buffer<int64_t> vector_offsets;  // [segments], element of the gradient array where each begins
  Buffer<uint64_t> item_masks, owner_sorted_keys, owned_keys;  // [m]
  Buffer<int32_t> item_vectors, owned_number, node_number;     // [m]
  Buffer<uint32_t> item_owned, owner_sorted;                   // [m]
  Buffer<uint32_t> node_begin;                                 // [m + 1]
  Buffer<int32_t> node_leaves;                                 // [gradient vectors received]
  Buffer<int64_t> node_gradients;                              // [the same]
  OwnerView owner;
  VectorExchange row_exchange, gradient_exchange;  // elements to and from every rank
  Pieces replica_copies;  // gradients of replicated tables: from the kept part to each sent one

  // Keys whose rows this rank updates: with one rank its unique ids, else the owned keys.
  OwnedKeys owned;
};

}  // namespace elastor::cuda

#endif  // ELASTOR_EMBEDDING_CUDA_ID_ROUTE_H_
