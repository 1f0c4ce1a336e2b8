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
// the leaf tree. Uses the cut and the tree of collective/dense_reduce.h, and gives the same bits
// for the same leaves. In fast mode the rank adds its leaves, and the library adds the ranks' sums.
//
// A bucket takes two calls: Fold on the computing stream, which can be captured in a graph, then
// Exchange on the communication stream. The caller orders the streams.
class DeviceDenseReducer {
 public:
  // layout and communicator outlive the object. leaves: V. fast: fast mode.
  DeviceDenseReducer(const ParameterLayout* layout, DeviceCommunicator* communicator,
                     int64_t leaves, bool fast, Stream* stream);

  // The slices that this rank owns, one per bucket.
  const std::vector<Range>& slices() const { return slices_; }

  // Sets the rows of the whole batch for the calls that follow. REQUIRES: no graph is being
  // captured.
  void SetBatch(int64_t batch_rows);
  // Folds this rank's leaves into its nodes. With one rank, writes the whole sum to `slice`.
  void Fold(Stream& stream, int bucket, LeafGradients* gradients, float* slice);
  // Exchanges the nodes of all ranks and folds them into this rank's slice.
  Status Exchange(Stream& stream, int bucket, float* slice);

  // All-gathers new weights. REQUIRES: this rank's slices of `weights` are up to date. Afterwards
  // all slices are.
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
  BatchNodes nodes_;   // nodes of a batch of batch_rows_ rows
  LeafFold own_fold_;  // leaves of this rank -> its nodes
  LeafFold all_fold_;  // nodes of all ranks -> the root
  // State of each bucket: the bytes of the ranks' slices, the plan of Exchange, this rank's nodes
  // in order of their destinations, the nodes that arrived, and the run that describes the arrived
  // nodes.
  std::vector<std::vector<int64_t>> slice_bytes_;
  std::vector<SliceExchange> exchanges_;
  std::vector<Buffer<float>> send_;
  std::vector<Buffer<float>> receive_;
  std::vector<Buffer<FoldRun>> received_run_;
};

}  // namespace elastor::cuda

#endif  // ELASTOR_TRAINER_STEP_CUDA_DEVICE_DENSE_REDUCER_H_
