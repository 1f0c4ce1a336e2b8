#ifndef ELASTOR_EMBEDDING_CUDA_REQUESTER_KERNELS_H_
#define ELASTOR_EMBEDDING_CUDA_REQUESTER_KERNELS_H_

#include <cstdint>

#include "core/cuda/runtime.h"
#include "embedding/cuda/key_format.h"
#include "embedding/cuda/table_view.h"

namespace elastor::cuda {

// The requester's work on the ids of its batch: a stable sort finds its unique ids and brings the
// occurrences of each together in order (row, field, position). All work is enqueued on one stream.

// A batch and the tables that its ids are routed by, in device memory.
struct BatchView {
  // Ids by occurrence: one of the two arrays is set. In short_ids, an id outside its table is
  // kNoId.
  const int64_t* ids = nullptr;
  const uint32_t* short_ids = nullptr;
  int64_t occurrences = 0;
  int64_t rows = 0;
  int64_t fields = 0;
  const int64_t* offsets = nullptr;  // by bag; null: every bag has one id
  const uint32_t* bags = nullptr;    // by occurrence; null: occurrence o is bag o
  const int32_t* leaves = nullptr;   // by row
  const FieldView* field_views = nullptr;
  const int64_t* table_rows = nullptr;
  const int32_t* owners = nullptr;  // [table][partition]; null: one rank
  KeyFormat format;

  ELASTOR_HOST_DEVICE int64_t Bag(int64_t o) const { return bags == nullptr ? o : bags[o]; }
  ELASTOR_HOST_DEVICE int64_t Id(int64_t o) const {
    return short_ids != nullptr ? int64_t{short_ids[o]} : ids[o];
  }
};

// If every table has at most 2^31 rows, ids travel to the device in 32 bits. kNoId stands for an id
// outside its table.
inline constexpr uint32_t kNoId = 0xffffffffu;

// Within a leaf, an id's occurrences are summed in chunks of this many (occurrence_sum.h).
inline constexpr int kChunk = 32;
// A segment of more occurrences is long: several groups of threads sum it, a chunk each.
inline constexpr int kLongSegment = 64;

// The bag in whose gradient an occurrence's gradient lies.
struct alignas(8) OccurrenceSource {
  uint32_t row;      // index among the rank's rows
  uint32_t feature;  // first feature of the occurrence's field
};

// A part of a long segment: up to kChunk occurrences in one leaf.
struct SegmentChunk {
  uint32_t begin;  // sorted occurrence
  int32_t count;
  int32_t leaf;
  int32_t of_run;  // in the first chunk of an id in a leaf: how many chunks there are; else 0
  int32_t width;
};

// The occurrences of an id in one canonical node of this rank's leaves. Their sum is one gradient
// vector, which goes to the row's owner.
struct GradientSegment {
  uint32_t begin, end;              // sorted occurrences
  uint32_t chunk_begin, chunk_end;  // the chunks of a long segment; equal in a short one
  int32_t width;
};

// The routing of one batch on the side of the requester. Arrays have an element for each sorted
// occurrence (o), unique id (u) or segment (v, ascending by unique id). With one rank, an id that
// occurs once needs no sum: only the other segments are listed, under numbers of their own.
struct RequesterView {
  SortKeys sorted_keys;       // o
  uint32_t* sorted;           // o: the occurrence, in the batch's order
  OccurrenceSource* sources;  // o
  float* scales;              // o: 1 / length of a bag that is averaged, else 1; null: all are 1
  int32_t* leaves;            // o
  int32_t* unique_number;     // o: 1 + u
  int32_t* run_number;        // o: 1 + the number of the run of this id in this leaf
  int32_t* segment_number;    // o: 1 + v; this is unique_number when all leaves are one node
  int32_t* chunk_number;      // o: how many chunks begin up to here
  uint32_t* run_begin;        // by run, and the end
  uint32_t* segment_begin;    // v, and the end
  uint32_t* unique_of;        // u, by occurrence in the batch's order
  uint64_t* unique_keys;      // u
  uint32_t* unique_segment;   // u: its first segment, and the end
  uint64_t* node_masks;       // u: a bit for each node in which it occurs; null: one node
  SegmentChunk* chunks;
  GradientSegment* segments;    // listed
  int64_t* direct;              // u, one rank: ~o of the one occurrence, or a listed segment
  const int32_t* node_of_leaf;  // leaf - first_leaf -> node
  int32_t first_leaf;
};

// The array of counts that the host reads begins with these. After them comes the first unique id
// of each cell owner * tables + table, and the end; then each cell's first segment, and the end.
enum RequesterCount { kBadOccurrence, kUniques, kSegments, kChunks, kListed, kRequesterCounts };

// Writes the bag of every occurrence.
void ExpandBags(Stream& stream, const BatchView& batch, uint32_t* bags);
// Writes the leaf of every local row. leaf_offsets: first rows of `count` leaves, and the end.
void ExpandLeaves(Stream& stream, const int64_t* leaf_offsets, int64_t count, int64_t first_leaf,
                  int64_t rows, int32_t* leaves);
// Writes the key of every occurrence o, and values[o] = o, to be sorted together. Where ids lie
// outside their tables, counts[kBadOccurrence] becomes the largest of 2^31 - 1 - BadOrder(o) over
// them; it stays 0 when all are good.
void MakeKeys(Stream& stream, const BatchView& batch, SortKeys keys, uint32_t* values,
              int64_t* counts);
// Returns the rank of occurrence o in the order in which bad ids are looked for. It is the order of
// UniqueIds, so that the same bad id is reported.
ELASTOR_HOST_DEVICE inline int64_t BadOrder(const BatchView& batch, int64_t o) {
  return batch.offsets != nullptr ? o : o % batch.fields * batch.rows + o / batch.fields;
}

// The next four calls are made in this order. A running sum over each array of flags, which turns
// it into numbers, comes between them.
//
// Writes sources, scales and leaves, and flags (0 or 1) of the occurrences that begin an id, a run
// or a segment.
void MarkHeads(Stream& stream, const BatchView& batch, const RequesterView& requester);
// Writes where ids, runs and segments begin, the unique keys, and how many there are of each.
void PlaceHeads(Stream& stream, const BatchView& batch, const RequesterView& requester,
                int64_t* counts);
// Writes flags of the occurrences that begin a chunk of a long segment.
void MarkChunks(Stream& stream, const BatchView& batch, const RequesterView& requester);
// Writes chunks and listed segments and counts them. With one_rank, segments of ids that occur once
// are not listed.
void PlaceChunks(Stream& stream, const BatchView& batch, const RequesterView& requester,
                 bool one_rank, int64_t* counts);
// Writes where the cells begin, as RequesterCount says. The key format's table bits are enough for
// the number `tables`.
void FindCells(Stream& stream, const BatchView& batch, const RequesterView& requester,
               int64_t ranks, int64_t tables, const int64_t* counts, int64_t* cells);

}  // namespace elastor::cuda

#endif  // ELASTOR_EMBEDDING_CUDA_REQUESTER_KERNELS_H_
