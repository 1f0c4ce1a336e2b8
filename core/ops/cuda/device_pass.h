#ifndef ELASTOR_CORE_OPS_CUDA_DEVICE_PASS_H_
#define ELASTOR_CORE_OPS_CUDA_DEVICE_PASS_H_

#include <cstdint>

#include "core/cuda/matmul.h"
#include "core/kernels/cuda/activations.h"
#include "core/kernels/cuda/device_lengths.h"
#include "core/kernels/cuda/elementwise.h"

namespace elastor::cuda {

// The inputs of a pass that change from batch to batch. They lie in device memory at fixed
// addresses, so that a pass can be captured once.
struct PassInputs {
  const float* numeric = nullptr;        // [local rows][numeric fields], NaN = missing
  const int32_t* local_row = nullptr;    // [rows]: by device row; -1: padding
  const int32_t* leaf_counts = nullptr;  // [leaves]: real rows
  const int64_t* first_row = nullptr;    // epoch index of local row 0
  const uint32_t* step = nullptr;        // numbers random choices
  const int64_t* batch_rows = nullptr;   // rows of the whole batch
  // [local rows][encoded sequences]: positions that the row has; null without sequences.
  const int32_t* lengths = nullptr;
};

struct DevicePass {
  LeafShape shape;
  PassInputs inputs;
  bool training = false;  // false: no dropout, running statistics, nothing saved for Backward

  // Returns the lengths of encoded sequence `sequence` of `sequences`.
  DeviceLengths LengthsOf(int64_t sequence, int64_t sequences) const {
    return {inputs.lengths + sequence, sequences, inputs.local_row};
  }
  // Returns the dropout of this pass for a key (MakeRandomKey).
  DeviceDropout Dropout(uint64_t key, double rate) const {
    return {key, rate, inputs.step, inputs.first_row, inputs.local_row};
  }

  // Returns the leaves' shape for views of `rows` rows, in which every device row stands for
  // equally many rows.
  LeafShape LeavesOf(int64_t rows) const {
    const int64_t device_rows = shape.rows();
    CHECK_EQ(rows % device_rows, 0);
    return {shape.leaves, shape.leaf_rows * (rows / device_rows)};
  }
};

struct DeviceModelOptions {
  Precision precision = Precision::kFloat32;
  uint64_t seed = 0;             // seed of dropout
  int64_t canonical_rows = 0;    // device rows of the whole job's training batch: V * S (matmul.h)
  int64_t canonical_leaves = 0;  // V
  bool reproducible = true;      // false: fast mode, products may split their sums
  bool fused_network = true;     // false: eq. 4's network uses separate products
};

}  // namespace elastor::cuda

#endif  // ELASTOR_CORE_OPS_CUDA_DEVICE_PASS_H_
