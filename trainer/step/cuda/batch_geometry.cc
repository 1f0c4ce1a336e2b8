#include "trainer/step/cuda/batch_geometry.h"

#include <limits>

#include "core/base/leaves.h"
#include "core/base/log.h"

namespace elastor::cuda {
BatchGeometry::BatchGeometry(int64_t global_rows, int64_t leaves, const SparseBatch& sparse,
                             Stream* stream)
    : global_rows_(global_rows),
      local_rows_(sparse.rows),
      local_row_(stream),
      device_row_(stream),
      leaf_counts_(stream) {
  const std::vector<int64_t>& begin = sparse.leaf_offsets;
  shape_.leaves = static_cast<int64_t>(begin.size()) - 1;
  // The longest leaf of the whole batch: the same sums on any number of ranks.
  shape_.leaf_rows = (global_rows + leaves - 1) / leaves;
  CHECK_LT(shape_.rows(), std::numeric_limits<int32_t>::max());
  std::vector<int32_t> local_row(shape_.rows(), -1);
  std::vector<int32_t> counts;
  host_device_row_.resize(sparse.rows);
  for (int64_t leaf = 0; leaf < shape_.leaves; ++leaf) {
    counts.push_back(static_cast<int32_t>(begin[leaf + 1] - begin[leaf]));
    CHECK_LE(counts.back(), shape_.leaf_rows);
    for (int64_t row = begin[leaf]; row < begin[leaf + 1]; ++row) {
      const int64_t device_row = leaf * shape_.leaf_rows + (row - begin[leaf]);
      local_row[device_row] = static_cast<int32_t>(row);
      host_device_row_[row] = static_cast<int32_t>(device_row);
    }
  }
  Upload(*stream, local_row, &local_row_);
  Upload(*stream, host_device_row_, &device_row_);
  Upload(*stream, counts, &leaf_counts_);
}

}  // namespace elastor::cuda
