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
  PinnedBuffer<int64_t> words;
  int64_t offsets = 0;
  int64_t leaves = 0;  // place of leaf_offsets in words
  int64_t ids = 0;
  bool short_ids = false;  // ids are uint32_t; kNoId stands for ids outside their table
};

// The routing of one batch: which rank sends which rows and gradients to which rank, and which
// gradients are summed together. Arrays are in device memory, belong to the stream of ids, and only
// grow.
struct IdRoute {
  explicit IdRoute(Stream* stream);

  // ---- The batch.
  int64_t rows = 0;
  int64_t occurrences = 0;
  bool single_id_bags = true;
  Buffer<int64_t> ids, offsets, leaf_offsets;
  Buffer<uint32_t> short_ids, bags;
  Buffer<int32_t> row_leaves;
  PinnedIds staged;  // staged copy of a batch that came without one
  BatchView batch;

  // ---- Where this rank is the requester.
  int64_t uniques = 0, segments = 0, chunks = 0;
  int64_t listed = 0;  // segments whose sums are written to memory
  Buffer<uint64_t> sorted_keys, unique_keys, node_masks;
  Buffer<uint32_t> sorted, run_begin, segment_begin, unique_of, unique_segment;
  Buffer<OccurrenceSource> sources;
  Buffer<float> scales;
  Buffer<int32_t> leaves, unique_number, run_number, segment_number, chunk_number;
  Buffer<SegmentChunk> chunk_list;
  Buffer<GradientSegment> segment_list;
  Buffer<int64_t> direct;
  Buffer<int64_t> counts;  // see RequesterCount
  PinnedBuffer<int64_t> host_counts;
  RequesterView requester;

  // ---- Several ranks.
  int64_t items = 0;
  PinnedBuffer<int64_t> cell_upload;
  Buffer<int64_t> cell_words;
  CellsView cells;
  Buffer<int64_t> words;           // messages: sent, received
  Buffer<int64_t> vector_offsets;  // by segment: where its vector lies in the gradient array
  Buffer<uint64_t> item_masks, owner_sorted_keys, owned_keys;
  Buffer<int32_t> item_vectors, owned_number, node_number, node_leaves;
  Buffer<uint32_t> item_owned, owner_sorted, node_begin;
  Buffer<int64_t> node_gradients;
  OwnerView owner;
  VectorExchange row_exchange, gradient_exchange;
  Pieces replica_copies;

  OwnedKeys owned;
};

}  // namespace elastor::cuda

#endif  // ELASTOR_EMBEDDING_CUDA_ID_ROUTE_H_
