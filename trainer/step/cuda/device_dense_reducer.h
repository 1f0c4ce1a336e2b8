#ifndef ELASTOR_TRAINER_STEP_CUDA_DEVICE_DENSE_REDUCER_H_
#define ELASTOR_TRAINER_STEP_CUDA_DEVICE_DENSE_REDUCER_H_

#include <cstdint>
#include <vector>

#include "collective/cuda/device_communicator.h"
#include "collective/dense_reduce.h"
#include "core/base/leaves.h"
#include "core/cuda/runtime.h"
#include "core/kernels/cuda/leaf_fold.h"
#include "core/ops/cuda/leaf_gradients.h"
#include "core/parameters/parameter_layout.h"

namespace elastor::cuda {

// Sums dense gradients over leaves and ranks, bucket by bucket, by direct exchange of slices along
// the leaf tree (collective/dense_reduce.h: the same cut, the same tree, the same bits given the
// same leaves). In fast mode the rank adds its leaves, and the library the ranks' sums.
//
// A bucket goes in two parts, Fold on the computing stream (can be captured in a graph), then
// Exchange on the communication stream; the caller orders the streams.
class DeviceDenseReducer {
 public:
  // layout and communicator outlive the object. leaves: V. fast: fast mode.
  DeviceDenseReducer(const ParameterLayout* layout, DeviceCommunicator* communicator,
                     int64_t leaves, bool fast, Stream* stream);

  // The slice of every bucket that this rank owns.
  const std::vector<Range>& slices() const { return slices_; }

  // Sets the rows of the whole batch for the calls that follow. REQUIRES: no graph is being
  // captured.
  void SetBatch(int64_t batch_rows);
  // Folds this rank's leaves into its nodes. With one rank the result is the whole sum and goes to
  // `slice`.
  void Fold(Stream& stream, int bucket, LeafGradients* gradients, float* slice);
  // Exchanges the nodes of all ranks and folds them into this rank's slice.
  Status Exchange(Stream& stream, int bucket, float* slice);

  // All-gathers new weights: this rank's slices are up to date in place, afterwards all are.
  Status Gather(Stream& stream, float* weights);

 private:
  bool alone() const { return communicator_->size() == 1; }
  Range BucketOf(int bucket) const { return layout_->buckets()[bucket]; }

  const ParameterLayout* layout_;
  DeviceCommunicator* communicator_;
  int64_t leaves_;
  bool fast_;
  Stream* stream_;
  std::vector<Range> slices_;
  int64_t batch_rows_ = -1;
  BatchNodes nodes_;   // of batch_rows_ rows
  LeafFold own_fold_;  // leaves of this rank -> its nodes
  LeafFold all_fold_;  // nodes of all ranks -> the root
  // By bucket: the bytes of the ranks' slices, what Exchange moves, this rank's nodes in order of
  // their destinations, the nodes that arrived, and the run that describes those.
  std::vector<std::vector<int64_t>> slice_bytes_;
  std::vector<SliceExchange> exchanges_;
  std::vector<Buffer<float>> send_;
  std::vector<Buffer<float>> receive_;
  std::vector<Buffer<FoldRun>> received_run_;
};

}  // namespace elastor::cuda

#endif  // ELASTOR_TRAINER_STEP_CUDA_DEVICE_DENSE_REDUCER_H_
