#ifndef ELASTOR_TRAINER_DATA_BATCH_H_
#define ELASTOR_TRAINER_DATA_BATCH_H_

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "core/base/leaves.h"
#include "core/base/status.h"
#include "core/graph/graph.h"
#include "embedding/table.h"
#include "trainer/data/dataset.h"

namespace elastor {

// The rows of one global batch that one rank computes: the rows of its leaves, in order.
struct LocalBatch {
  int64_t global_rows = 0;       // rows of the whole batch, over all ranks
  int64_t first_index = 0;       // epoch index of local row 0
  std::vector<float> labels;     // [rows][labels], NaN = missing
  std::vector<float> numeric;    // [rows][numeric fields], NaN = missing
  std::vector<float> weights;    // [rows]; empty: all 1
  std::vector<uint64_t> groups;  // [rows]; empty: the data set has none
  std::vector<int32_t> lengths;  // [rows][encoded sequences]: positions that the row fills
  SparseBatch sparse;            // ids, and the leaves' rows

  int64_t rows() const { return sparse.rows; }
};

// Returns the positions of `rank`'s rows within a batch of `batch_rows` rows.
inline Range LocalPositions(int64_t batch_rows, int rank, int ranks, int64_t leaves) {
  const Range own = LeavesOfRank(rank, ranks, leaves);
  return {RowsOfLeaf(own.begin, leaves, batch_rows).begin,
          RowsOfLeaf(own.end - 1, leaves, batch_rows).end};
}

// Moves `rows` into *batch. They were read from the rank's positions of a batch that starts at
// epoch index `batch_begin`.
inline void FillLocalBatch(int64_t batch_begin, int64_t batch_rows, int rank, int ranks,
                           int64_t leaves, int64_t categorical_fields, Rows* rows,
                           LocalBatch* batch) {
  const Range positions = LocalPositions(batch_rows, rank, ranks, leaves);
  const Range own = LeavesOfRank(rank, ranks, leaves);
  batch->global_rows = batch_rows;
  batch->first_index = batch_begin + positions.begin;
  batch->labels.swap(rows->labels);
  batch->numeric.swap(rows->numeric);
  batch->weights.swap(rows->weights);
  batch->groups.swap(rows->groups);
  SparseBatch& sparse = batch->sparse;
  sparse.latest = 0;
  for (const int64_t time : rows->times) sparse.latest = std::max(sparse.latest, time);
  sparse.rows = positions.size();
  sparse.fields = categorical_fields;
  sparse.ids.swap(rows->ids);
  sparse.offsets.swap(rows->offsets);
  sparse.first_leaf = own.begin;
  sparse.leaf_offsets.clear();
  for (int64_t leaf = own.begin; leaf < own.end; ++leaf) {
    sparse.leaf_offsets.push_back(RowsOfLeaf(leaf, leaves, batch_rows).begin - positions.begin);
  }
  sparse.leaf_offsets.push_back(positions.size());
  sparse.staged = nullptr;
}

// Turns the sequences' bags into the bags that the model reads. Of each sequence it keeps the
// latest ids, at most SequenceShape::positions. A pooled sequence keeps them as its bag. An encoded
// sequence gets one bag per position behind the fields' bags, with one id each, oldest first; its
// own bag and the bags of positions that the row lacks are empty. Sequences follow one another in
// their order. User error if parallel sequences have different numbers of ids in a row; *batch then
// holds no rows to use.
Status LayOutSequences(std::span<const SequenceShape> sequences, LocalBatch* batch);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_DATA_BATCH_H_
