#ifndef ELASTOR_EMBEDDING_CUDA_TABLE_VIEW_H_
#define ELASTOR_EMBEDDING_CUDA_TABLE_VIEW_H_

#include <cstdint>

#include "core/base/build_config.h"
#include "embedding/row_index.h"

namespace elastor::cuda {

// The rows of one table on one rank as kernels see them: weights, then slots, then padding.
struct TableView {
  float* rows = nullptr;        // device memory, or page-locked host memory
  uint32_t* present = nullptr;  // one bit a row
  RowIndex index;               // in device memory
  int64_t stored_rows = 0;
  uint64_t random_key = 0;
  double stddev = 0;
  float initial_slot = 0;
  int32_t width = 0;
  int32_t slots = 0;
  int32_t stride = 0;       // elements
  bool in_host = false;     // rows lie in the host's memory
  bool replicated = false;  // every rank has a copy

  ELASTOR_HOST_DEVICE float* RowAt(int64_t index) const { return rows + index * stride; }
  // Whether `rank` has the primary replica of a row, as ShardPlan::PrimaryRank says.
  ELASTOR_HOST_DEVICE bool HasPrimary(int64_t key, int rank, int ranks) const {
    return !replicated || RowIndex::PartitionOf(key) % ranks == rank;
  }
};

// A field as kernels see it.
struct FieldView {
  int32_t table = 0;
  int32_t first_feature = 0;
  int32_t width = 0;
  bool mean = false;
};

}  // namespace elastor::cuda

#endif  // ELASTOR_EMBEDDING_CUDA_TABLE_VIEW_H_
