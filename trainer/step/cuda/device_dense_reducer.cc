#include "trainer/step/cuda/device_dense_reducer.h"

#include <algorithm>
#include <numeric>

#include "collective/leaf_tree.h"
#include "core/base/log.h"

namespace elastor::cuda {
namespace {

constexpr int64_t kBytes = sizeof(float);

}  // namespace

DeviceDenseReducer::DeviceDenseReducer(const ParameterLayout* layout,
                                       DeviceCommunicator* communicator, int64_t leaves, bool fast,
                                       Stream* stream)
    : layout_(layout),
      communicator_(communicator),
      leaves_(leaves),
      fast_(fast),
      stream_(stream),
      own_fold_(stream),
      all_fold_(stream) {
  for (const Range& bucket : layout->buckets()) {
    slices_.push_back(SliceOfRank(bucket, communicator->rank(), communicator->size()));
    send_.emplace_back(stream);
    receive_.emplace_back(stream);
    received_run_.emplace_back(stream);
    SizeSlices(bucket, communicator->size(), kBytes, &slice_bytes_.emplace_back());
    exchanges_.emplace_back();
  }
}

void DeviceDenseReducer::SetBatch(int64_t batch_rows) {
  if (batch_rows == batch_rows_) return;
  batch_rows_ = batch_rows;
  const int rank = communicator_->rank();
  const int ranks = communicator_->size();
  const Range own = LeavesOfRank(rank, ranks, leaves_);
  std::vector<int64_t> leaves(own.size());
  std::iota(leaves.begin(), leaves.end(), own.begin);
  std::vector<bool> counted;
  for (const int64_t leaf : leaves) {
    counted.push_back(RowsOfLeaf(leaf, leaves_, batch_rows).size() > 0);
  }
  std::vector<int64_t> node_leaves = NodeLeaves(rank, ranks, leaves_, batch_rows);
  // In fast mode the rank's leaves are those of a tree of their own, one node.
  if (fast_) {
    for (int64_t& leaf : leaves) leaf -= own.begin;
    for (int64_t& leaf : node_leaves) leaf -= own.begin;
    node_leaves.resize(std::min<size_t>(node_leaves.size(), 1));
  }
  own_fold_.SetLeaves(leaves, counted, node_leaves);
  nodes_ = BatchNodes(ranks, leaves_, batch_rows);
  if (!fast_ && !nodes_.leaves.empty()) {
    all_fold_.SetLeaves(nodes_.leaves, std::vector<bool>(nodes_.leaves.size(), true),
                        std::span(nodes_.leaves).first(1));
  }
  if (alone()) return;
  const int64_t own_nodes = fast_ ? 1 : nodes_.OfRank(rank);
  for (size_t b = 0; b < slices_.size(); ++b) {
    send_[b].Resize(own_nodes * BucketOf(static_cast<int>(b)).size());
    if (fast_) continue;
    exchanges_[b].Size(BucketOf(static_cast<int>(b)), nodes_, rank, kBytes);
    receive_[b].Resize(static_cast<int64_t>(nodes_.leaves.size()) * slices_[b].size());
    const FoldRun run = {.begin = 0,
                         .size = slices_[b].size(),
                         .inner = std::max<int64_t>(slices_[b].size(), 1),
                         .data = receive_[b].data()};
    Copy(*stream_, received_run_[b].Resize(1), &run, 1);
  }
}

void DeviceDenseReducer::Fold(Stream& stream, int bucket, LeafGradients* gradients, float* slice) {
  const Range range = BucketOf(bucket);
  const FoldRun* const runs = gradients->runs(bucket);
  const int64_t run_count = gradients->run_count(bucket);
  if (alone()) return own_fold_.Fold(stream, runs, run_count, range, slice, range.size());
  // A rank without rows in the batch sends nothing.
  if (!fast_ && nodes_.OfRank(communicator_->rank()) == 0) return;
  float* to = send_[bucket].data();
  // One node lies as its slices do, one after another; several are cut by destination.
  if (fast_ || own_fold_.nodes() == 1) {
    return own_fold_.Fold(stream, runs, run_count, range, to, range.size());
  }
  for (int r = 0; r < communicator_->size(); ++r) {
    const Range part = SliceOfRank(range, r, communicator_->size());
    own_fold_.Fold(stream, runs, run_count, part, to, part.size());
    to += own_fold_.nodes() * part.size();
  }
}

Status DeviceDenseReducer::Exchange(Stream& stream, int bucket, float* slice) {
  if (alone()) return OkStatus();
  const Range own = slices_[bucket];
  float* const send = send_[bucket].data();
  if (fast_) {
    const Range range = BucketOf(bucket);
    ELASTOR_RETURN_IF_ERROR(
        communicator_->AllReduceSum(Phase::kDenseReduce, stream, send, range.size()));
    Copy(stream, slice, send + (own.begin - range.begin), own.size());
    return OkStatus();
  }
  const SliceExchange& exchange = exchanges_[bucket];
  ELASTOR_RETURN_IF_ERROR(communicator_->AllToAllV(Phase::kDenseReduce, stream, send, exchange.send,
                                                   receive_[bucket].data(), exchange.receive));
  if (own.size() == 0) return OkStatus();
  if (batch_rows_ == 0) {
    FillZero(stream, slice, own.size());
    return OkStatus();
  }
  all_fold_.Fold(stream, received_run_[bucket].data(), 1, {0, own.size()}, slice, own.size());
  return OkStatus();
}

Status DeviceDenseReducer::Gather(Stream& stream, float* weights) {
  if (alone()) return OkStatus();
  for (int b = 0; b < static_cast<int>(slices_.size()); ++b) {
    ELASTOR_RETURN_IF_ERROR(
        communicator_->AllGatherV(Phase::kDenseGather, stream, weights + slices_[b].begin,
                                  weights + BucketOf(b).begin, slice_bytes_[b]));
  }
  return OkStatus();
}

}  // namespace elastor::cuda
