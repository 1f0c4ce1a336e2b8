#ifndef ELASTOR_TRAINER_STEP_CUDA_BATCH_GEOMETRY_H_
#define ELASTOR_TRAINER_STEP_CUDA_BATCH_GEOMETRY_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "core/cuda/runtime.h"
#include "core/kernels/cuda/activations.h"
#include "embedding/table.h"

namespace elastor::cuda {

// Maps the rows of a batch to their places on the device and back: local row <-> device row
// (core/kernels/cuda/activations.h). Depends on the batch's size alone.
class BatchGeometry {
 public:
  // global_rows: rows of the whole batch, over all ranks. leaves: V. sparse: this rank's leaves and
  // rows.
  BatchGeometry(int64_t global_rows, int64_t leaves, const SparseBatch& sparse, Stream* stream);

  int64_t global_rows() const { return global_rows_; }
  int64_t local_rows() const { return local_rows_; }
  const LeafShape& shape() const { return shape_; }
  // Arrays in device memory: the local row of every device row (-1: padding), the device row of
  // every local row, and the number of real rows of every leaf.
  const int32_t* local_row() const { return local_row_.data(); }
  const int32_t* device_row() const { return device_row_.data(); }
  const int32_t* leaf_counts() const { return leaf_counts_.data(); }
  // Returns the device row of a local row, from host memory.
  int64_t DeviceRowOf(int64_t row) const { return host_device_row_[row]; }

 private:
  int64_t global_rows_;
  int64_t local_rows_;
  LeafShape shape_;
  std::vector<int32_t> host_device_row_;
  Buffer<int32_t> local_row_;
  Buffer<int32_t> device_row_;
  Buffer<int32_t> leaf_counts_;
};

}  // namespace elastor::cuda

#endif  // ELASTOR_TRAINER_STEP_CUDA_BATCH_GEOMETRY_H_
