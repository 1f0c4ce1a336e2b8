#ifndef ELASTOR_TRAINER_STEP_CUDA_BATCH_UPLOAD_H_
#define ELASTOR_TRAINER_STEP_CUDA_BATCH_UPLOAD_H_

#include <cstdint>

#include "core/cuda/runtime.h"
#include "trainer/data/batch.h"

namespace elastor::cuda {

// Numbers of one step that kernels read from device memory, so that a captured graph serves all
// steps.
struct StepScalars {
  int64_t first_row;     // epoch index of local row 0
  int64_t batch_rows;    // rows of the whole batch, over all ranks
  uint32_t step;         // the step's number, which random choices depend on
  float inverse_weight;  // 1 / weight of the batch; 0 when no row has weight
  double weight;         // weight of the batch
};

// Copies the dense part of a batch to the device. Begin copies it from the host's vectors to
// page-locked memory and, on a separate stream, to the device while the previous batch is computed.
// Finish copies it, when the step begins, to the addresses that captured kernels read.
class BatchUpload {
 public:
  explicit BatchUpload(Stream* upload)
      : upload_(upload), numeric_(upload), labels_(upload), weights_(upload), lengths_(upload) {}

  // Begins the upload. Has read the batch when it returns. REQUIRES: the copies that the last
  // Finish enqueued are done.
  void Begin(const LocalBatch& batch);

  // Copies the batch, on the computing stream, to the given device arrays (weights may be null).
  void Finish(Stream& compute, float* numeric, float* labels, float* weights, int32_t* lengths);

 private:
  Stream* upload_;
  Event uploaded_;
  PinnedBuffer<float> pinned_;
  PinnedBuffer<int32_t> pinned_lengths_;
  Buffer<float> numeric_;
  Buffer<float> labels_;
  Buffer<float> weights_;
  Buffer<int32_t> lengths_;
};

}  // namespace elastor::cuda

#endif  // ELASTOR_TRAINER_STEP_CUDA_BATCH_UPLOAD_H_
