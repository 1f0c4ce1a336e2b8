#include "trainer/step/cuda/device_dense_reducer.h"

#include <numeric>

#include "collective/dense_reduce.h"
#include "collective/leaf_tree.h"
#include "glog/logging.h"

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
    Lengths& lengths = lengths_.emplace_back();
    for (int r = 0; r < communicator->size(); ++r) {
      lengths.slice.push_back(SliceOfRank(bucket, r, communicator->size()).size());
      lengths.slice_bytes.push_back(lengths.slice.back() * kBytes);
    }
  }
}

void DeviceDenseReducer::SetBatch(int64_t batch_rows) {
  if (batch_rows == batch_rows_) return;
  batch_rows_ = batch_rows;
  const int rank = communicator_->rank();
  const int ranks = communicator_->size();
  if (fast_) {
    const int64_t one[] = {0};
    own_fold_.SetLeaves(one, {true}, one);
  } else {
    const Range own = LeavesOfRank(rank, ranks, leaves_);
    std::vector<int64_t> leaves(own.size());
    std::iota(leaves.begin(), leaves.end(), own.begin);
    std::vector<bool> counted;
    for (const int64_t leaf : leaves) {
      counted.push_back(RowsOfLeaf(leaf, leaves_, batch_rows).size() > 0);
    }
    own_fold_.SetLeaves(leaves, counted, NodeLeaves(rank, ranks, leaves_, batch_rows));
  }
  std::vector<int64_t> all_leaves;
  nodes_of_.clear();
  for (int r = 0; r < ranks; ++r) {
    const std::vector<int64_t> nodes = NodeLeaves(r, ranks, leaves_, batch_rows);
    nodes_of_.push_back(static_cast<int64_t>(nodes.size()));
    all_leaves.insert(all_leaves.end(), nodes.begin(), nodes.end());
  }
  if (!fast_ && !all_leaves.empty()) {
    all_fold_.SetLeaves(all_leaves, std::vector<bool>(all_leaves.size(), true),
                        std::span(all_leaves).first(1));
  }
  if (alone()) return;
  const int64_t own_nodes = fast_ ? 1 : nodes_of_[rank];
  for (size_t b = 0; b < slices_.size(); ++b) {
    send_[b].Resize(own_nodes * BucketOf(static_cast<int>(b)).size());
    if (fast_) continue;
    Lengths& lengths = lengths_[b];
    lengths.send_bytes = lengths.slice_bytes;
    for (int64_t& bytes : lengths.send_bytes) bytes *= nodes_of_[rank];
    lengths.receive_bytes = nodes_of_;
    for (int64_t& bytes : lengths.receive_bytes) bytes *= lengths.slice_bytes[rank];
    const int64_t received = static_cast<int64_t>(all_leaves.size());
    receive_[b].Resize(received * slices_[b].size());
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
  if (!fast_ && nodes_of_[communicator_->rank()] == 0) return;
  float* to = send_[bucket].data();
  // One node lies as its slices do, one after another; several are cut by destination.
  if (fast_ || own_fold_.nodes() == 1) {
    return own_fold_.Fold(stream, runs, run_count, range, to, range.size());
  }
  int64_t begin = range.begin;
  for (const int64_t size : lengths_[bucket].slice) {
    if (size > 0) {
      own_fold_.Fold(stream, runs, run_count, {begin, begin + size}, to, size);
    }
    begin += size;
    to += own_fold_.nodes() * size;
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
  const Lengths& lengths = lengths_[bucket];
  ELASTOR_RETURN_IF_ERROR(communicator_->AllToAllV(Phase::kDenseReduce, stream, send,
                                                   lengths.send_bytes, receive_[bucket].data(),
                                                   lengths.receive_bytes));
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
                                  weights + BucketOf(b).begin, lengths_[b].slice_bytes));
  }
  return OkStatus();
}

}  // namespace elastor::cuda
