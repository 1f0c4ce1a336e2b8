#ifndef ELASTOR_EMBEDDING_CUDA_HOME_KERNELS_H_
#define ELASTOR_EMBEDDING_CUDA_HOME_KERNELS_H_

#include <cstdint>

#include "core/cuda/runtime.h"
#include "embedding/cuda/key_format.h"
#include "embedding/cuda/table_view.h"

namespace elastor::cuda {

// From the ids of a rank's batch to its unique ids and their occurrences in order (row, field,
// position), on one stream. Sorting ids (stable) brings an id's occurrences together, in order.

// The batch and what it is routed by; device memory.
struct BatchView {
  const int64_t* ids = nullptr;
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
};

// Within a leaf, an id's occurrences are summed in chunks of so many (occurrence_sum.h).
inline constexpr int kChunk = 32;
// Ids with more occurrences are summed by several groups of threads.
inline constexpr int kLongVector = 64;

// Where an occurrence's gradient lies, by place in the sorted order.
struct alignas(8) Source {
  uint32_t row;
  uint32_t feature;
};

// Up to kChunk occurrences of one id in one leaf, of a long vector.
struct Chunk {
  uint32_t begin;  // sorted occurrences
  int32_t count;
  int32_t leaf;
  int32_t of_run;  // of the first chunk of an id in a leaf: how many there are; else 0
  int32_t width;
};

// The sum of an id's occurrences in one node of this rank's leaves.
struct Vector {
  uint32_t begin, end;              // sorted occurrences
  uint32_t chunk_begin, chunk_end;  // equal: not long
  int32_t width;
};

// What the routing of one batch yields at home, by sorted occurrence (o), unique id (u) and vector
// (v, ascending by unique id). Vectors that are listed are numbered anew when there is one rank:
// an id that occurs once then needs none.
struct HomeView {
  uint64_t* sorted_keys;    // o
  uint32_t* sorted;         // o: the occurrence
  Source* sources;          // o
  float* scales;            // o: of mean pooling; null: all are 1
  int32_t* leaves;          // o
  int32_t* unique_number;   // o: 1 + u
  int32_t* run_number;      // o: 1 + the run of one id in one leaf
  int32_t* vector_number;   // o: 1 + v; unique_number when all leaves are one node
  int32_t* chunk_number;    // o: chunks that begin up to here
  uint32_t* run_begin;      // run, and the end
  uint32_t* vector_begin;   // v, and the end
  uint32_t* unique_of;      // by occurrence in the batch's order
  uint64_t* unique_keys;    // u
  uint32_t* unique_vector;  // u: its first vector, and the end
  uint64_t* node_masks;     // u: nodes of the leaves in which it occurs; null: one node
  Chunk* chunks;
  Vector* vectors;  // listed
  int64_t* direct;  // u, one rank: ~o when it occurs once, else a listed vector's number
  const int32_t* node_of_leaf;  // leaf - first_leaf -> node
  int32_t first_leaf;
};

// Counts that the host reads, then segments: for s = owner * tables + table, and the end, the first
// unique id and the first vector.
enum HomeCount { kBadOccurrence, kUniques, kVectors, kChunks, kListed, kHomeCounts };

// bags[o] = bag of occurrence o.
void ExpandBags(Stream& stream, const BatchView& batch, uint32_t* bags);
// leaves[row]: of local rows, from leaf_offsets[0..count].
void ExpandLeaves(Stream& stream, const int64_t* leaf_offsets, int64_t count, int64_t first_leaf,
                  int64_t rows, int32_t* leaves);
// keys[o] and values[o] = o. counts[kBadOccurrence] becomes the largest of 2^31 - 1 - n over ids
// outside their tables, n as BadOrder has it; 0: none.
void MakeKeys(Stream& stream, const BatchView& batch, uint64_t* keys, uint32_t* values,
              int64_t* counts);
// In which order bad ids are looked for: that of UniqueIds.
ELASTOR_HOST_DEVICE inline int64_t BadOrder(const BatchView& batch, int64_t o) {
  return batch.offsets != nullptr ? o : o % batch.fields * batch.rows + o / batch.fields;
}

// After sorting: sources, scales, leaves; flags (0, 1) of heads in the three number arrays.
void MarkHeads(Stream& stream, const BatchView& batch, const HomeView& home);
// After running sums: begins, unique keys, counts.
void PlaceHeads(Stream& stream, const BatchView& batch, const HomeView& home, int64_t* counts);
// Flags of chunks of long vectors; then, after the running sum, chunks and vectors. one_rank: only
// vectors of ids that occur more than once are listed.
void MarkChunks(Stream& stream, const BatchView& batch, const HomeView& home);
void PlaceChunks(Stream& stream, const BatchView& batch, const HomeView& home, bool one_rank,
                 int64_t* counts);
// segments[0..count], then as many of vectors; table_bits of the format are enough for `tables`.
void FindSegments(Stream& stream, const BatchView& batch, const HomeView& home, int64_t ranks,
                  int64_t tables, const int64_t* counts, int64_t* segments);

}  // namespace elastor::cuda

#endif  // ELASTOR_EMBEDDING_CUDA_HOME_KERNELS_H_
